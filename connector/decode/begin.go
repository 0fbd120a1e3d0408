package decode

import "github.com/tidemark-cdc/tidemark/offsets"

// epochMicros is PostgreSQL's epoch, 2000-01-01 00:00:00 UTC, in microseconds since the Unix epoch.
const epochMicros = 946_684_800_000_000

// begin parses Begin.
//
//	Byte1('B')
//	Int64  final LSN of the transaction: the LSN of its commit record
//	Int64  commit time, microseconds since PostgreSQL's epoch
//	Int32  transaction id
//
// Source: "Logical Replication Message Formats", Begin.
func (s *Session) begin() {
	if s.open {
		s.r.fail(0, "a transaction begins within another")
		return
	}
	at := s.r.off
	final := offsets.LSN(s.r.uint64("the final LSN"))
	micros := int64(s.r.uint64("the commit time"))
	xid := s.r.uint32("the transaction id")
	if final == 0 {
		s.r.fail(at, "the final LSN is 0")
	}
	s.tx = Tx{FinalLSN: final, CommitMicros: micros + epochMicros, XID: xid}
	s.event.Kind = KindBegin
}
