package decode

import (
	"encoding/binary"
	"fmt"

	"github.com/tidemark-cdc/tidemark/schema"
)

// newTag fails when a tuple's tag at offset at is not that of a new row.
func (s *Session) newTag(at int, tag byte) {
	if tag != 'N' {
		s.r.fail(at, "the tuple's tag is not N")
	}
}

// tuple parses TupleData into dst's storage and returns it. The column count must be the
// relation's.
//
//	Int16  number of columns; then for each
//	  Byte1('n')  null; in a 'K' tuple: not carried
//	  Byte1('u')  an unchanged TOAST value that the log does not carry
//	  Byte1('t') Int32 Byten  length and bytes of the text output
//	  Byte1('b') Int32 Byten  binary output; never asked for, refused
//
// Source: "Logical Replication Message Formats", TupleData.
func (s *Session) tuple(rel *schema.Relation, dst schema.Tuple) schema.Tuple {
	r := &s.r
	at := r.off
	n := int(r.uint16("the number of columns"))
	if r.failed {
		return dst
	}
	if n != len(rel.Columns) {
		r.fail(at, fmt.Sprintf("the tuple has %d columns, but relation %s.%s has %d",
			n, rel.Namespace, rel.Name, len(rel.Columns)))
		return dst
	}
	if n > cap(dst) || dst == nil { // a nil tuple is "none", even where a table has no columns
		dst = make(schema.Tuple, n)
	}
	dst = dst[:n]
	// The loop is the hot spot of the whole connector, so it walks the frame with a local offset
	// and makes the same checks as reader.take.
	buf, off := r.buf, r.off
	for i := range dst {
		if off >= len(buf) {
			r.fail(off, "the frame ends within a tuple")
			return dst
		}
		kind := schema.DatumKind(buf[off])
		off++
		switch kind {
		case schema.DatumText:
			if len(buf)-off < 4 {
				r.fail(off, "the frame ends within a value's length")
				return dst
			}
			size := int(binary.BigEndian.Uint32(buf[off:]))
			off += 4
			if size > len(buf)-off {
				r.fail(off-4, "a value is longer than the rest of the frame")
				return dst
			}
			dst[i] = schema.Datum{Kind: kind, Text: buf[off : off+size : off+size]}
			off += size
		case schema.DatumNull:
			dst[i] = schema.Datum{Kind: kind}
		case schema.DatumUnchanged:
			dst[i] = schema.Datum{Kind: kind}
			s.event.Unchanged = true
		default:
			r.fail(off-1, datumFailure(byte(kind)))
			return dst
		}
	}
	r.off = off
	return dst
}

func datumFailure(kind byte) string {
	if kind == 'b' {
		return "a value is in binary, which was not asked for"
	}
	return fmt.Sprintf("a value's kind is 0x%02X, none of n, u and t", kind)
}
