package decode

import (
	"github.com/tidemark-cdc/tidemark/offsets"
	"github.com/tidemark-cdc/tidemark/schema"
)

// Kind tells what an Event is.
type Kind byte

// Kinds of events. Relation is handed on so that the caller can drop what it compiled for an
// earlier version; Type, Origin and Stream Abort are consumed here and give KindNone.
const (
	KindNone Kind = iota
	KindBegin
	KindCommit
	KindRelation
	KindInsert
	KindUpdate
	KindDelete
	KindTruncate
	KindMessage
)

// Tx is the transaction that is open in the stream.
type Tx struct {
	FinalLSN     offsets.LSN // from Begin: LSN of the commit record; Commit repeats it as commit LSN
	CommitMicros int64       // commit time, microseconds since the Unix epoch
	XID          uint32
	Origin       string // name from the Origin message, else empty
}

// Event is one decoded message. It and everything it points to, except Relation, is borrowed: it
// is valid until the next call of Session.Decode.
type Event struct {
	Kind Kind
	// Tx is the open transaction; nil for a logical message outside of one.
	Tx *Tx
	// Index is the number of row messages (Insert, Update, Delete, Truncate, transactional Message)
	// that the stream held before this one in its transaction.
	Index int64
	// LSN is the XLogData header's start LSN: of the change's record. Never a position.
	LSN offsets.LSN

	Relation *schema.Relation // rows, and KindRelation
	OldKind  byte             // 0 none, 'K' or 'O': the tag of the old tuple
	Old      schema.Tuple
	New      schema.Tuple
	// Unchanged: a value of a tuple is unchanged TOAST, which the log does not carry.
	Unchanged bool

	Truncated       []*schema.Relation // KindTruncate
	Cascade         bool
	RestartIdentity bool

	Prefix        []byte // KindMessage
	Content       []byte
	Transactional bool
	MessageLSN    offsets.LSN // from the message body; its own LSN

	EndLSN offsets.LSN // KindCommit: end of the commit record, the only position of a transaction
}

// RowMessage reports whether the event is a row message, which counts in its transaction's Index.
func (e *Event) RowMessage() bool {
	switch e.Kind {
	case KindInsert, KindUpdate, KindDelete, KindTruncate:
		return true
	case KindMessage:
		return e.Transactional
	case KindNone, KindBegin, KindCommit, KindRelation:
	}
	return false
}
