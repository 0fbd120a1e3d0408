package decode

import (
	"encoding/binary"

	"github.com/tidemark-cdc/tidemark/offsets"
	"github.com/tidemark-cdc/tidemark/schema"
)

// wire builds messages of pgoutput, as the server would: the other direction of the decoder.
type wire []byte

func (w wire) u8(v byte) wire    { return append(w, v) }
func (w wire) u16(v int) wire    { return binary.BigEndian.AppendUint16(w, uint16(v)) }
func (w wire) u32(v uint32) wire { return binary.BigEndian.AppendUint32(w, v) }
func (w wire) u64(v uint64) wire { return binary.BigEndian.AppendUint64(w, v) }
func (w wire) str(s string) wire { return append(append(w, s...), 0) }

func (w wire) tuple(t schema.Tuple) wire {
	w = w.u16(len(t))
	for _, d := range t {
		w = w.u8(byte(d.Kind))
		if d.Kind == schema.DatumText {
			w = w.u32(uint32(len(d.Text)))
			w = append(w, d.Text...)
		}
	}
	return w
}

// row makes a tuple: "" is null, "u" an unchanged value, anything else text.
func row(values ...string) schema.Tuple {
	t := make(schema.Tuple, len(values))
	for i, v := range values {
		switch v {
		case "":
			t[i] = schema.Datum{Kind: schema.DatumNull}
		case "u":
			t[i] = schema.Datum{Kind: schema.DatumUnchanged}
		default:
			t[i] = schema.Datum{Kind: schema.DatumText, Text: []byte(v)}
		}
	}
	return t
}

func beginFrame(final offsets.LSN, pgMicros int64, xid uint32) []byte {
	return wire("B").u64(uint64(final)).u64(uint64(pgMicros)).u32(xid)
}

func commitFrame(lsn, end offsets.LSN) []byte {
	return wire("C").u8(0).u64(uint64(lsn)).u64(uint64(end)).u64(0)
}

func relationFrame(rel *schema.Relation) []byte {
	namespace := rel.Namespace
	if namespace == "pg_catalog" {
		namespace = ""
	}
	w := wire("R").u32(rel.OID).str(namespace).str(rel.Name).u8(byte(rel.Identity)).
		u16(len(rel.Columns))
	for _, c := range rel.Columns {
		flags := byte(0)
		if c.Key {
			flags = 1
		}
		w = w.u8(flags).str(c.Name).u32(c.TypeOID).u32(uint32(c.TypeMod))
	}
	return w
}

func insertFrame(oid uint32, t schema.Tuple) []byte {
	return wire("I").u32(oid).u8('N').tuple(t)
}

func updateFrame(oid uint32, tag byte, old, now schema.Tuple) []byte {
	w := wire("U").u32(oid)
	if tag != 0 {
		w = w.u8(tag).tuple(old)
	}
	return w.u8('N').tuple(now)
}

func deleteFrame(oid uint32, tag byte, old schema.Tuple) []byte {
	return wire("D").u32(oid).u8(tag).tuple(old)
}

func truncateFrame(options byte, oids ...uint32) []byte {
	w := wire("T").u32(uint32(len(oids))).u8(options)
	for _, oid := range oids {
		w = w.u32(oid)
	}
	return w
}

func messageFrame(flags byte, lsn offsets.LSN, prefix, content string) []byte {
	w := wire("M").u8(flags).u64(uint64(lsn)).str(prefix).u32(uint32(len(content)))
	return append(w, content...)
}

// orders is the relation of most tests: id int4 in the identity, note text not.
func orders() *schema.Relation {
	return &schema.Relation{
		OID: 16385, Namespace: "public", Name: "orders", Identity: schema.IdentityDefault,
		Columns: []schema.Column{
			{Name: "id", TypeOID: 23, TypeMod: -1, Key: true},
			{Name: "note", TypeOID: 25, TypeMod: -1},
		},
	}
}
