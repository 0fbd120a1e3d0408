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

// appendSource writes the Source record in the order of sourceSchema.
func (e *Encoder) appendSource(dst []byte, s *sourceText, o *origin) []byte {
	dst = append(dst, s.head...)
	dst = appendTimes(dst, o.micros, false)
	dst = append(dst, 0) // snapshot: index 0 of ["string", "null"]
	dst = appendString(dst, o.marker)
	dst = append(dst, s.db...)
	dst = append(dst, branchValue)
	dst = appendBytes(dst, e.sequence(o))
	dst = append(dst, s.names...)
	if o.hasXID {
		dst = append(dst, branchValue)
		dst = binary.AppendVarint(dst, int64(o.xid))
	} else {
		dst = append(dst, branchNull)
	}
	dst = append(dst, branchValue)
	dst = binary.AppendVarint(dst, int64(o.lsn))
	dst = append(dst, branchNull) // xmin
	dst = binary.AppendVarint(dst, o.pos.History)
	dst = append(dst, branchValue)
	dst = binary.AppendVarint(dst, int64(o.pos.CommitLSN))
	dst = binary.AppendVarint(dst, o.pos.Index)
	if o.name == "" {
		return append(dst, branchNull)
	}
	dst = append(dst, branchValue)
	return appendString(dst, o.name)
}

// sequence is `["<commit LSN>","<LSN of the change>"]` in decimal; the package comment says why.
// The slice is valid until the next call.
func (e *Encoder) sequence(o *origin) []byte {
	b := append(e.sequenceText[:0], `["`...)
	b = strconv.AppendUint(b, uint64(o.pos.CommitLSN), 10)
	b = append(b, `","`...)
	b = strconv.AppendUint(b, uint64(o.lsn), 10)
	b = append(b, `"]`...)
	e.sequenceText = b
	return b
}
