// Package schema knows shapes: a relation as the stream announces it, PostgreSQL's types as Avro
// types with the one function per type that turns PostgreSQL's text into Avro bytes (the same for
// stream, snapshot, reselect and trigger), and the names that Kafka and Avro take.
//
// It is a leaf: it imports no package of ours but internal/fault. The packages below it that do
// I/O are schema/catalog (PostgreSQL) and schema/registry (HTTP).
package schema

// Identity is pg_class.relreplident as the Relation message carries it.
type Identity byte

// Replica identities.
const (
	IdentityDefault Identity = 'd'
	IdentityNothing Identity = 'n'
	IdentityFull    Identity = 'f'
	IdentityIndex   Identity = 'i'
)

// Relation is one version of a table's shape, as a pgoutput Relation message announced it. It is
// immutable; a new message makes a new Relation, and compiled encoders hang on the pointer.
type Relation struct {
	OID       uint32
	Namespace string // "pg_catalog" when the message has the empty string
	Name      string
	Identity  Identity
	Columns   []Column
}

// Column is a column of a Relation. Key is the message's flag "part of the identity": under FULL
// it is set on every column.
type Column struct {
	Name    string
	TypeOID uint32
	TypeMod int32 // -1 is none; a domain's own typmod is not here but in its TypeInfo
	Key     bool
}

// DatumKind is the kind byte of a column in a tuple.
type DatumKind byte

// Datum kinds: pgoutput's TupleData kind bytes ('b' is never asked for).
const (
	DatumNull      DatumKind = 'n' // null, or, in a 'K' tuple, not carried
	DatumUnchanged DatumKind = 'u' // unchanged TOAST value: the log does not carry it
	DatumText      DatumKind = 't' // Text is the type's text output
)

// Datum is one column's value. Text is borrowed: it is valid as long as its tuple is.
type Datum struct {
	Kind DatumKind
	Text []byte
}

// Tuple is a row in the order of its Relation's columns.
type Tuple []Datum

// TypeInfo is what pg_type says of one type.
type TypeInfo struct {
	OID      uint32
	Schema   string // pg_namespace.nspname
	Name     string // pg_type.typname
	Kind     byte   // typtype: b base, c composite, d domain, e enum, p pseudo, r range, m multirange
	Category byte   // typcategory
	Elem     uint32 // element type of a true array (typsubscript = array_subscript_handler), else 0
	Delim    byte   // typdelim of the *element* type; ',' for all but box
	Base     uint32 // domain: the type it is over, else 0
	BaseMod  int32  // domain: typtypmod, else -1
}

// TypeSource answers what is known of a type; it does no I/O. ok is false for a type that the
// catalog no longer has: it is then treated as text.
type TypeSource interface {
	Type(oid uint32) (info TypeInfo, ok bool)
}

// TableInfo is what the stream does not say of a relation and the catalog is asked for, once per
// relation version. Missing is true when the catalog no longer has the OID: everything else is
// then zero.
type TableInfo struct {
	Missing bool
	// PrimaryKey has names in table order; it is used as key under FULL only. A deferrable one is
	// not here: two rows may hold it between two rows of one statement, and the delete of the one
	// would undo the other's create.
	PrimaryKey []string
	// LeavesFull is false when the relation is a partitioned root of which the catalog knows a
	// leaf whose identity is not FULL.
	IsRoot     bool
	LeavesFull bool
	Types      TypeSource
}
