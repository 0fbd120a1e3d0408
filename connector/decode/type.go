package decode

// typeName parses Type, which announces a type that is not built in. It is consumed: for a domain
// it carries the base type's name, and a renamed label or type sends none, so the catalog is asked.
//
//	Byte1('Y')
//	Int32  OID of the type
//	String namespace, empty for pg_catalog
//	String name
//
// Source: "Logical Replication Message Formats", Type.
func (s *Session) typeName() {
	s.r.uint32("the type OID")
	s.r.cstring("the namespace")
	s.r.cstring("the type name")
}
