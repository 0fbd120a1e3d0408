package sim

import (
	"encoding/binary"
	"strconv"

	"github.com/tidemark-cdc/tidemark/offsets"
)

// wire builds messages of pgoutput as the server does: what the connector's decoder reads.
type wire []byte

func (w wire) u8(v byte) wire    { return append(w, v) }
func (w wire) u16(v int) wire    { return binary.BigEndian.AppendUint16(w, uint16(v)) }
func (w wire) u32(v uint32) wire { return binary.BigEndian.AppendUint32(w, v) }
func (w wire) u64(v uint64) wire { return binary.BigEndian.AppendUint64(w, v) }
func (w wire) str(s string) wire { return append(append(w, s...), 0) }

func (w wire) number(n int) wire {
	w = append(w, 't', 0, 0, 0, 0)
	at := len(w)
	w = strconv.AppendInt(w, int64(n), 10)
	binary.BigEndian.PutUint32(w[at-4:], uint32(len(w)-at))
	return w
}

func beginFrame(final offsets.LSN, xid uint32) []byte {
	return wire("B").u64(uint64(final)).u64(uint64(xid)).u32(xid)
}

func commitFrame(final, end offsets.LSN) []byte {
	return wire("C").u8(0).u64(uint64(final)).u64(uint64(end)).u64(0)
}

// relationFrame announces a table with replica identity FULL and two columns, key and change.
func relationFrame(table int) []byte {
	w := wire("R").u32(relid(table)).str("public").str(tableNames[table]).u8('f').u16(2)
	for _, name := range []string{"key", "change"} {
		w = w.u8(1).str(name).u32(23).u32(0xFFFFFFFF)
	}
	return w
}

// rowFrame carries the number of the change, by which the checks know it.
func rowFrame(r *row) []byte {
	tuple := func(w wire, change int) wire { return w.u16(2).number(r.key).number(change) }
	switch r.op {
	case 'I':
		return tuple(wire("I").u32(relid(r.table)).u8('N'), r.id)
	case 'U':
		return tuple(tuple(wire("U").u32(relid(r.table)).u8('O'), 0).u8('N'), r.id)
	case 'D':
		return tuple(wire("D").u32(relid(r.table)).u8('O'), r.id)
	}
	return messageFrame(1, r, "elsewhere")
}

func messageFrame(flags byte, r *row, prefix string) []byte {
	content := strconv.Itoa(r.id)
	w := wire("M").u8(flags).u64(uint64(r.lsn)).str(prefix).u32(uint32(len(content)))
	return append(w, content...)
}
