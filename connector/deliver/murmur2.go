package deliver

// murmur2 is the 32-bit MurmurHash2 of Kafka's Java client (org.apache.kafka.common.utils.Utils,
// murmur2): seed 0x9747b28c, little-endian words. Every partition that a key ever had hangs on it.
func murmur2(b []byte) uint32 {
	const (
		seed  = 0x9747b28c
		m     = 0x5bd1e995
		shift = 24
	)
	h := seed ^ uint32(len(b))
	for ; len(b) >= 4; b = b[4:] {
		k := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
		k *= m
		k ^= k >> shift
		k *= m
		h *= m
		h ^= k
	}
	for i := len(b) - 1; i >= 0; i-- {
		h ^= uint32(b[i]) << (8 * i)
	}
	if len(b) > 0 {
		h *= m
	}
	h ^= h >> 13
	h *= m
	return h ^ h>>15
}

// toPartition is Java's toPositive(hash) % n: the sign bit is dropped, not the number negated.
func toPartition(hash uint32, n int) int {
	return int(hash&0x7fffffff) % n
}
