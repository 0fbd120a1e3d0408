package decode

// delete parses Delete.
//
//	Byte1('D')
//	Int32  OID of the relation
//	either Byte1('K') TupleData  the old identity: its columns, all others null, or
//	       Byte1('O') TupleData  the old row
//
// Source: "Logical Replication Message Formats", Delete.
func (s *Session) delete() {
	s.inTransaction()
	rel := s.related()
	at := s.r.off
	tag := s.r.uint8("the tuple's tag")
	if tag != 'K' && tag != 'O' {
		s.r.fail(at, "the tuple's tag is neither K nor O")
	}
	s.old = s.tuple(rel, s.old)
	s.event.Kind = KindDelete
	s.event.Relation = rel
	s.event.OldKind = tag
	s.event.Old = s.old
}
