package check

import "encoding/binary"

// hash is 32-bit MurmurHash2 with the seed of Kafka's Java client, written after Austin Appleby's
// description of the algorithm: four bytes at a time, little-endian, then the rest, then a final
// mix. Kafka's org.apache.kafka.common.utils.Utils.murmur2 gives the same for the same bytes.
func hash(data []byte) int32 {
	const m = uint32(0x5bd1e995)
	h := uint32(0x9747b28c) ^ uint32(len(data))
	whole := len(data) / 4 * 4
	for i := 0; i < whole; i += 4 {
		k := binary.LittleEndian.Uint32(data[i:]) * m
		h = h*m ^ (k^k>>24)*m
	}
	rest := data[whole:]
	switch len(rest) {
	case 3:
		h ^= uint32(rest[2])<<16 | uint32(rest[1])<<8 | uint32(rest[0])
		h *= m
	case 2:
		h ^= uint32(rest[1])<<8 | uint32(rest[0])
		h *= m
	case 1:
		h ^= uint32(rest[0])
		h *= m
	}
	h = (h ^ h>>13) * m
	return int32(h ^ h>>15)
}

// PartitionOf returns the partition of n that Java's default partitioner gives a key of those
// bytes: the hash without its sign bit, modulo n.
func PartitionOf(body []byte, n int32) int32 { return (hash(body) & 0x7fffffff) % n }

// KeyBody is the Avro body of a record of those fields: int64 (long or int alike), or string.
func KeyBody(fields ...any) []byte {
	var b []byte
	for _, f := range fields {
		switch v := f.(type) {
		case int64:
			b = binary.AppendVarint(b, v)
		case string:
			b = binary.AppendVarint(b, int64(len(v)))
			b = append(b, v...)
		default:
			panic("check: a key field is int64 or string")
		}
	}
	return b
}
