package decode

// originName parses Origin, which follows Begin when the transaction was replicated from elsewhere.
//
//	Byte1('O')
//	Int64  LSN of the commit on the origin server
//	String name of the origin
//
// Source: "Logical Replication Message Formats", Origin.
func (s *Session) originName() {
	s.r.uint64("the origin LSN")
	name := s.r.cstring("the origin name")
	if s.r.failed || !s.open {
		return
	}
	if s.origin != string(name) {
		s.origin = string(name)
	}
	s.tx.Origin = s.origin
}
