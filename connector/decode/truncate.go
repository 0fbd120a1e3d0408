package decode

// Option bits of Truncate.
const (
	truncateCascade         = 1
	truncateRestartIdentity = 2
)

// truncate parses Truncate: one message for a whole statement, with every published table it
// emptied.
//
//	Byte1('T')
//	Int32  number of relations
//	Int8   options: 1 CASCADE, 2 RESTART IDENTITY
//	Int32  OID of a relation, as many times
//
// Source: "Logical Replication Message Formats", Truncate.
func (s *Session) truncate() {
	s.inTransaction()
	n := int(int32(s.r.uint32("the number of relations")))
	options := s.r.uint8("the options")
	n = s.r.count(n, 4, "relations")
	s.named = s.named[:0]
	for range n {
		s.named = append(s.named, s.related())
	}
	s.event.Kind = KindTruncate
	s.event.Truncated = s.named
	s.event.Cascade = options&truncateCascade != 0
	s.event.RestartIdentity = options&truncateRestartIdentity != 0
}
