package decode

import "github.com/tidemark-cdc/tidemark/offsets"

// logicalMessage parses Message, what pg_logical_emit_message wrote.
//
//	Byte1('M')
//	Int8   flags: 0, or 1 for a transactional message
//	Int64  LSN of the message
//	String prefix
//	Int32  length of the content
//	Byten  content
//
// A message that is not transactional is sent when it is decoded: possibly before the BEGIN of the
// transaction that wrote it, also when that rolls back, and amid the rows of none. It belongs to no
// transaction and does not count in one.
//
// Source: "Logical Replication Message Formats", Message.
func (s *Session) logicalMessage() {
	at := s.r.off
	flags := s.r.uint8("the flags")
	if flags > 1 {
		s.r.fail(at, "the flags are neither 0 nor 1")
	}
	s.event.Kind = KindMessage
	s.event.Transactional = flags == 1
	if s.event.Transactional {
		s.inTransaction()
	} else {
		s.event.Tx, s.event.Index = nil, 0
	}
	s.event.MessageLSN = offsets.LSN(s.r.uint64("the message's LSN"))
	s.event.Prefix = s.r.cstring("the prefix")
	n := s.r.uint32("the length of the content")
	s.event.Content = s.r.take(int(n), "the content")
}
