package decode

// update parses Update.
//
//	Byte1('U')
//	Int32  OID of the relation
//	either Byte1('K') TupleData  the old identity: its columns, all others null, or
//	       Byte1('O') TupleData  the old row, or nothing
//	Byte1('N')
//	TupleData  the new row
//
// Source: "Logical Replication Message Formats", Update.
func (s *Session) update() {
	s.inTransaction()
	rel := s.related()
	at := s.r.off
	tag := s.r.uint8("the tuple's tag")
	if tag == 'K' || tag == 'O' {
		s.old = s.tuple(rel, s.old)
		s.event.OldKind = tag
		s.event.Old = s.old
		at = s.r.off
		tag = s.r.uint8("the tuple's tag")
	}
	s.newTag(at, tag)
	s.new = s.tuple(rel, s.new)
	s.event.Kind = KindUpdate
	s.event.Relation = rel
	s.event.New = s.new
}
