package envelope

import (
	"encoding/binary"
	"strconv"

	"github.com/tidemark-cdc/tidemark/offsets"
)

// origin says where and when a change was made: what fills source and the headers.
type origin struct {
	op     byte
	pos    offsets.Position
	lsn    offsets.LSN
	micros int64 // commit time
	xid    uint32
	hasXID bool
	inTx   bool   // of a transaction of the stream
	marker string // source.snapshot
	name   string // replication origin; empty: none
}

// sourceText is the part of a table's source block that never changes, already encoded.
type sourceText struct {
	head  []byte // version, connector, name
	db    []byte
	names []byte // schema, table
}

func newSourceText(o *Options, schema, table string) sourceText {
	head := appendString(nil, o.Version)
	head = appendString(head, "postgresql")
	return sourceText{
		head:  appendString(head, o.Prefix),
		db:    appendString(nil, o.Database),
		names: appendString(appendString(nil, schema), table),
	}
}

// fixedSource is what the source blocks of one transaction's events of one table have in common,
// encoded: all but the LSN of the change and its index. It is made at the first of them.
type fixedSource struct {
	table *sourceText
	of    origin // lsn, op and pos.Index are not compared

	head, middle, tail []byte // in front of sequence, of lsn, of event_index
	sequence           []byte // `["<commit LSN>","`
	commitLSN          []byte // its decimal text
	row                []byte // scratch: a whole sequence
}

func (f *fixedSource) matches(s *sourceText, o *origin) bool {
	return f.table == s && f.of.pos.CommitLSN == o.pos.CommitLSN && f.of.micros == o.micros &&
		f.of.xid == o.xid && f.of.pos.History == o.pos.History && f.of.hasXID == o.hasXID &&
		f.of.marker == o.marker && f.of.name == o.name
}

func (f *fixedSource) set(s *sourceText, o *origin) {
	f.table, f.of = s, *o
	b := append(f.head[:0], s.head...)
	b = appendTimes(b, o.micros, false)
	b = append(b, 0) // snapshot: index 0 of ["string", "null"]
	b = appendString(b, o.marker)
	b = append(b, s.db...)
	f.head = append(b, branchValue)

	b = append(f.middle[:0], s.names...)
	if o.hasXID {
		b = append(b, branchValue)
		b = binary.AppendVarint(b, int64(o.xid))
	} else {
		b = append(b, branchNull)
	}
	f.middle = append(b, branchValue)

	b = append(f.tail[:0], branchNull) // xmin
	b = binary.AppendVarint(b, o.pos.History)
	b = append(b, branchValue)
	f.tail = binary.AppendVarint(b, int64(o.pos.CommitLSN))

	f.commitLSN = strconv.AppendUint(f.commitLSN[:0], uint64(o.pos.CommitLSN), 10)
	b = append(f.sequence[:0], `["`...)
	b = append(b, f.commitLSN...)
	f.sequence = append(b, `","`...)
}

// appendSource writes the Source record in the order of sourceSchema.
func (e *Encoder) appendSource(dst []byte, s *sourceText, o *origin) []byte {
	f := &e.source
	if !f.matches(s, o) {
		f.set(s, o)
	}
	dst = append(dst, f.head...)
	dst = appendBytes(dst, f.sequenceOf(o))
	dst = append(dst, f.middle...)
	dst = binary.AppendVarint(dst, int64(o.lsn))
	dst = append(dst, f.tail...)
	dst = binary.AppendVarint(dst, o.pos.Index)
	if o.name == "" {
		return append(dst, branchNull)
	}
	dst = append(dst, branchValue)
	return appendString(dst, o.name)
}

// sequenceOf is `["<commit LSN>","<LSN of the change>"]` in decimal; the package comment says why.
// The slice is valid until the next call.
func (f *fixedSource) sequenceOf(o *origin) []byte {
	b := append(f.row[:0], f.sequence...)
	b = strconv.AppendUint(b, uint64(o.lsn), 10)
	f.row = append(b, `"]`...)
	return f.row
}
