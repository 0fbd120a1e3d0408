package envelope

import (
	"time"

	"github.com/tidemark-cdc/tidemark/schema"
)

// Options are an Encoder's settings. All functions may be nil and are asked once per relation
// version, in Compile, never per row; Now is asked once per change.
type Options struct {
	Prefix   string // topic.prefix: first part of every topic, source.name
	Database string // source.db
	Version  string // source.version
	History  int64  // raised when LSNs start anew

	// Transactions fills the field transaction; BeginTransaction must be told of each Begin.
	Transactions bool

	Headers    bool          // write the tidemark.* headers
	Tombstones bool          // follow a delete by a record with the same key and a null value
	Skipped    map[byte]bool // operations ('c', 'u', 'd', 't', 'm') that give no record

	// HashWholeKey computes partitions from all bytes of the key, schema id included.
	HashWholeKey bool
	// FailUnrepresentable makes a value that its type cannot hold a fault instead of a flag.
	FailUnrepresentable bool
	Types               schema.Options

	// KeyText says of a key column that its Key field is a string with PostgreSQL's text.
	KeyText func(schema, table, column string) bool
	// KeyColumns returns message.key.columns of a table, in the order of the key; none is the
	// replica identity.
	KeyColumns func(schema, table string) []string
	// Columns says what becomes of a column.
	Columns func(schema, table, column string) ColumnRule
	// BeforeRequired says of a table that an UPDATE or DELETE without a full old row is a fault.
	BeforeRequired func(schema, table string) bool
	// Now returns the time of processing in microseconds since the Unix epoch.
	Now func() int64
	// Pool hands out the Buffers; nil makes a pool of the Encoder's own.
	Pool *BufferPool
}

// bufferCapacity is the size of a Buffer, in bytes: some hundred events, so that getting one is
// rare, and small enough that one slow record does not keep much else in memory.
const bufferCapacity = 128 << 10

func (o *Options) setDefaults() {
	if o.KeyText == nil {
		o.KeyText = func(_, _, _ string) bool { return false }
	}
	if o.KeyColumns == nil {
		o.KeyColumns = func(_, _ string) []string { return nil }
	}
	if o.Columns == nil {
		o.Columns = func(_, _, _ string) ColumnRule { return ColumnRule{} }
	}
	if o.BeforeRequired == nil {
		o.BeforeRequired = func(_, _ string) bool { return false }
	}
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixMicro() }
	}
	if o.Pool == nil {
		o.Pool = NewBufferPool(bufferCapacity)
	}
}
