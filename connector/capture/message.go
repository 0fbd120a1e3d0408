package capture

import (
	"encoding/binary"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

const (
	// headerBytes is a message's kind and its length, which counts itself but not the kind.
	headerBytes = 1 + 4
	// maxMessageBytes is above what the server can send: it builds a message in one allocation,
	// which MaxAllocSize (src/include/utils/memutils.h) keeps below 1 GiB.
	maxMessageBytes = 1 << 30
	// bufferBytes is the read buffer's ordinary size. It holds some thousand rows, and still fits a
	// processor's cache.
	bufferBytes = 1 << 20
	// shrinkAfter is how many reads a buffer that grew is kept for the next large message.
	shrinkAfter = 16
)

// buffer is the read buffer: bytes r to w are read and not yet parsed. It grows as the bytes of a
// large message arrive, never by what a header claims.
type buffer struct {
	bytes    []byte
	r, w     int
	unneeded int // reads since more than bufferBytes were in use
}

// message returns the next whole message of the protocol, whose body is borrowed until the buffer
// is filled again. ok is false when it is not there as a whole.
//
//	Byte1  kind
//	Int32  length, with itself and without the kind
//	Byten  body
//
// Source: the manual's "Message Formats" (protocol-message-formats).
func (b *buffer) message() (kind byte, body []byte, ok bool, err error) {
	have := b.bytes[b.r:b.w]
	if len(have) < headerBytes {
		return 0, nil, false, nil
	}
	kind = have[0]
	length := int(binary.BigEndian.Uint32(have[1:]))
	if length < 4 || length > maxMessageBytes {
		return 0, nil, false, fault.New(fault.ProtocolError, fmt.Sprintf(
			"a message of kind 0x%02X has the impossible length %d", kind, length))
	}
	if len(have) < 1+length {
		return 0, nil, false, nil
	}
	b.r += 1 + length
	return kind, have[headerBytes : 1+length : 1+length], true, nil
}

// space makes room behind the unread bytes and returns it: what is missing of the next message, and
// at least what an ordinary buffer has left.
func (b *buffer) space() []byte {
	left := b.w - b.r
	if b.w > bufferBytes {
		b.unneeded = 0
	} else {
		b.unneeded++
	}
	switch {
	case left == len(b.bytes):
		grown := make([]byte, max(2*len(b.bytes), bufferBytes))
		copy(grown, b.bytes)
		b.bytes = grown
	case len(b.bytes) > bufferBytes && left < bufferBytes && b.unneeded >= shrinkAfter:
		shrunk := make([]byte, bufferBytes)
		copy(shrunk, b.bytes[b.r:b.w])
		b.bytes = shrunk
	case b.r > 0:
		copy(b.bytes, b.bytes[b.r:b.w])
	}
	b.r, b.w = 0, left
	end := bufferBytes
	if left >= headerBytes {
		end = max(end, 1+int(binary.BigEndian.Uint32(b.bytes[1:])))
	}
	return b.bytes[left:min(end, len(b.bytes))]
}

// serverErrorOf decodes an ErrorResponse or NoticeResponse.
func serverErrorOf(body []byte) (*pgconn.PgError, error) {
	var m pgproto3.ErrorResponse
	if err := m.Decode(body); err != nil {
		return nil, fault.Wrap(fault.ProtocolError, "an error response cannot be read", err)
	}
	return pgconn.ErrorResponseToPgError(&m), nil
}

// severe reports whether a notice's severity is WARNING or above.
func severe(severity string) bool {
	switch severity {
	case "DEBUG", "LOG", "INFO", "NOTICE":
		return false
	}
	return true
}
