package capture

import "github.com/tidemark-cdc/tidemark/offsets"

// FrameKind tells what a Frame is.
type FrameKind byte

// Kinds of frames.
const (
	Data      FrameKind = iota + 1 // one message of pgoutput
	Keepalive                      // the server's position, in its place among the data
	Notice                         // a NoticeResponse of severity WARNING or above
)

// Frame is one message of the stream.
type Frame struct {
	Kind FrameKind
	// Start is the XLogData header's start LSN: of the change's record; 0 for Relation, Type and
	// Origin. Never a position.
	Start offsets.LSN
	// ServerEnd is, in a Keepalive, the position up to which the server has decoded and sent all
	// that concerns us. In Data it repeats Start and means nothing more.
	ServerEnd    offsets.LSN
	ServerMicros int64  // the server's clock when it sent, microseconds since the Unix epoch
	Reply        bool   // Keepalive: the server asked for a status update; it is already on its way
	Payload      []byte // Data: borrowed until the next call of Next
	Warning      Warning
}

// Warning is the content of a Notice frame. DETAIL and HINT are left out.
type Warning struct {
	Severity string // as it is in English: WARNING, ERROR, ...
	Code     string // SQLSTATE
	Message  string
}
