package decode

import (
	"slices"

	"github.com/tidemark-cdc/tidemark/schema"
)

// columnMinBytes is the size of a column of a Relation message with an empty name.
const columnMinBytes = 1 + 1 + 4 + 4

// relation parses Relation.
//
//	Byte1('R')
//	Int32  OID of the relation
//	String namespace, empty for pg_catalog
//	String name
//	Int8   replica identity, pg_class.relreplident
//	Int16  number of columns; then for each
//	  Int8   flags: 1 is "part of the replica identity"
//	  String name
//	  Int32  OID of the type
//	  Int32  type modifier
//
// Source: "Logical Replication Message Formats", Relation.
func (s *Session) relation() {
	next := schema.Relation{OID: s.r.uint32("the relation OID")}
	namespace := s.r.cstring("the namespace")
	next.Name = string(s.r.cstring("the relation name"))
	next.Namespace = string(namespace)
	if len(namespace) == 0 {
		next.Namespace = "pg_catalog"
	}
	at := s.r.off
	next.Identity = schema.Identity(s.r.uint8("the replica identity"))
	switch next.Identity {
	case schema.IdentityDefault, schema.IdentityNothing, schema.IdentityFull, schema.IdentityIndex:
	default:
		s.r.fail(at, "the replica identity is none of d, n, f and i")
	}
	n := s.r.count(int(s.r.uint16("the number of columns")), columnMinBytes, "columns")
	next.Columns = make([]schema.Column, n)
	for i := range next.Columns {
		flags := s.r.uint8("a column's flags")
		next.Columns[i] = schema.Column{
			Key:     flags&1 != 0,
			Name:    string(s.r.cstring("a column's name")),
			TypeOID: s.r.uint32("a column's type"),
			TypeMod: int32(s.r.uint32("a column's type modifier")),
		}
	}
	s.r.end()
	if s.r.failed {
		return
	}
	s.event.Kind = KindRelation
	s.event.Relation = s.known(&next)
}

// known returns the session's relation that equals next, and makes next that relation when there is
// none. A repeated announcement keeps the pointer that compiled encoders hang on.
func (s *Session) known(next *schema.Relation) *schema.Relation {
	had := s.relations[next.OID]
	if had != nil && had.Namespace == next.Namespace && had.Name == next.Name &&
		had.Identity == next.Identity && slices.Equal(had.Columns, next.Columns) {
		return had
	}
	s.relations[next.OID] = next
	return next
}
