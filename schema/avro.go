package schema

import "encoding/json"

// Avro's binary encoding, as far as the types need it: a long (and an int) is a zigzag varint,
// low seven bits first; bytes and strings are a long with the length and then the bytes; an array
// or map is one block (a long with the count, then the items) and a block of count 0 behind it.

// appendLong appends an Avro long or int.
func appendLong(dst []byte, v int64) []byte {
	u := uint64(v)<<1 ^ uint64(v>>63)
	for u >= 0x80 {
		dst = append(dst, byte(u)|0x80)
		u >>= 7
	}
	return append(dst, byte(u))
}

// appendBytes appends Avro bytes or an Avro string.
func appendBytes(dst, b []byte) []byte {
	return append(appendLong(dst, int64(len(b))), b...)
}

// Branches of the union ["null", T], and the end of an array's or map's blocks.
const (
	branchNull  = 0x00
	branchValue = 0x02
	blockEnd    = 0x00
)

// avroJSON is a Type's schema as JSON text, to be put into that of a type around it.
func avroJSON(t Type) string {
	raw, _ := t.Avro.(json.RawMessage)
	return string(raw)
}
