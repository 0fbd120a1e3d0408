package decode

import (
	"fmt"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/offsets"
	"github.com/tidemark-cdc/tidemark/schema"
)

// Session decodes the frames of one replication session, from the first after START_REPLICATION to
// the last. It holds what later frames refer to: the relations announced so far and the open
// transaction. It is not safe for concurrent use.
//
//	        Begin                     Commit
//	idle ----------> in transaction ----------> idle
//	                 Insert, Update, Delete, Truncate, transactional Message
//
// Relation, Type, Origin, Stream Abort and non-transactional Message may come in both states and
// change neither.
type Session struct {
	relations map[uint32]*schema.Relation

	open bool // a Begin was seen, its Commit was not
	tx   Tx   // valid while open, and in the Commit event itself
	rows int64

	failure error // the first; every later call returns it

	r      reader
	event  Event
	old    schema.Tuple // storage behind Event.Old, reused
	new    schema.Tuple // storage behind Event.New, reused
	named  []*schema.Relation
	origin string // last origin name, so that a repeated one costs no allocation
}

// NewSession returns a Session that knows no relation and has no open transaction.
func NewSession() *Session {
	return &Session{relations: make(map[uint32]*schema.Relation)}
}

// Open reports whether a transaction is open in the stream: its Begin was decoded, its Commit not.
func (s *Session) Open() bool { return s.open }

// Decode decodes one message of pgoutput. frame is the payload of an XLogData message, without the
// header of 25 bytes; start is the header's start LSN. The frame is borrowed: the returned Event
// and everything in it but Event.Relation is valid until the next call, and only as long as the
// caller leaves frame alone. An Event of KindNone carries nothing for the caller.
//
// Every error is a fault with code protocol_error that names the message, the byte offset within
// frame and the LSN. After an error the session is over: every later call returns that error.
func (s *Session) Decode(start offsets.LSN, frame []byte) (*Event, error) {
	if s.failure != nil {
		return nil, s.failure
	}
	s.r = reader{buf: frame}
	s.event = Event{LSN: start}
	if s.open {
		s.event.Tx = &s.tx
		s.event.Index = s.rows
	}
	kind := s.r.uint8("the message kind")
	s.message(kind)
	s.r.end()
	if s.r.failed {
		s.failure = s.fault(kind)
		return nil, s.failure
	}
	s.settle()
	return &s.event, nil
}

// message hands the rest of the frame to the parser of its kind.
func (s *Session) message(kind byte) {
	switch kind {
	case 'B':
		s.begin()
	case 'C':
		s.commit()
	case 'O':
		s.originName()
	case 'R':
		s.relation()
	case 'Y':
		s.typeName()
	case 'I':
		s.insert()
	case 'U':
		s.update()
	case 'D':
		s.delete()
	case 'T':
		s.truncate()
	case 'M':
		s.logicalMessage()
	case 'A':
		s.streamAbort()
	default:
		s.r.fail(0, "the message kind is unknown")
	}
}

// settle moves the session's state, once the message is known to be whole.
func (s *Session) settle() {
	switch {
	case s.event.Kind == KindBegin:
		s.open, s.rows = true, 0
		s.event.Tx = &s.tx
	case s.event.Kind == KindCommit:
		s.open = false
	case s.event.RowMessage():
		s.rows++
	}
}

// inTransaction fails when no transaction is open: a row must belong to one.
func (s *Session) inTransaction() {
	if !s.open {
		s.r.fail(0, "the message belongs to a transaction, and none is open")
	}
}

// related reads a relation OID and returns the relation, which must have been announced before.
func (s *Session) related() *schema.Relation {
	at := s.r.off
	oid := s.r.uint32("the relation OID")
	if s.r.failed {
		return nil
	}
	rel := s.relations[oid]
	if rel == nil {
		s.r.fail(at, fmt.Sprintf("relation OID %d was not announced in this session", oid))
	}
	return rel
}

// fault makes the error of the frame that just failed.
func (s *Session) fault(kind byte) error {
	name := "empty frame"
	if len(s.r.buf) > 0 {
		name = kindName(kind)
	}
	return fault.New(fault.ProtocolError, fmt.Sprintf("%s at LSN %s, byte %d of %d: %s",
		name, s.event.LSN, s.r.failAt, len(s.r.buf), s.r.what))
}

// kindName is the manual's word for a message kind.
func kindName(kind byte) string {
	switch kind {
	case 'B':
		return "Begin message"
	case 'C':
		return "Commit message"
	case 'O':
		return "Origin message"
	case 'R':
		return "Relation message"
	case 'Y':
		return "Type message"
	case 'I':
		return "Insert message"
	case 'U':
		return "Update message"
	case 'D':
		return "Delete message"
	case 'T':
		return "Truncate message"
	case 'M':
		return "Message message"
	case 'A':
		return "Stream Abort message"
	}
	return fmt.Sprintf("message of kind 0x%02X", kind)
}
