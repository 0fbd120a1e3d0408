package decode

// insert parses Insert.
//
//	Byte1('I')
//	Int32  OID of the relation
//	Byte1('N')
//	TupleData  the new row
//
// Source: "Logical Replication Message Formats", Insert.
func (s *Session) insert() {
	s.inTransaction()
	rel := s.related()
	at := s.r.off
	s.newTag(at, s.r.uint8("the tuple's tag"))
	s.new = s.tuple(rel, s.new)
	s.event.Kind = KindInsert
	s.event.Relation = rel
	s.event.New = s.new
}
