package decode

// streamAbort parses Stream Abort and ignores it. The server sends it with protocol version 2 and
// up only; it says that rows of a streamed subtransaction are void, and version 1 never sends such
// rows.
//
//	Byte1('A')
//	Int32  transaction id
//	Int32  subtransaction id
//	Int64  LSN of the abort, protocol version 4 with parallel streaming only
//	Int64  time of the abort, likewise
//
// Source: "Logical Replication Message Formats", Stream Abort.
func (s *Session) streamAbort() {
	s.r.uint32("the transaction id")
	s.r.uint32("the subtransaction id")
	if s.r.remaining() > 0 {
		s.r.uint64("the abort's LSN")
		s.r.uint64("the abort's time")
	}
}
