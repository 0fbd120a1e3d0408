package schema

import "math"

// smallint, integer and bigint print as an optional minus and decimal digits.
func integerType(name string, bits uint) Type {
	switch bits {
	case 16:
		return rawType(name, `"int"`, appendSmallint)
	case 32:
		return rawType(name, `"int"`, appendInteger)
	}
	return rawType(name, `"long"`, appendBigint)
}

// oid and xid are unsigned 32-bit numbers: an Avro int does not hold them, a long does.
func unsignedType(name string) Type { return rawType(name, `"long"`, appendUnsigned) }

func appendSmallint(dst, text []byte) ([]byte, error) {
	return appendBounded(dst, text, math.MinInt16, math.MaxInt16)
}

func appendInteger(dst, text []byte) ([]byte, error) {
	return appendBounded(dst, text, math.MinInt32, math.MaxInt32)
}

func appendBigint(dst, text []byte) ([]byte, error) {
	return appendBounded(dst, text, math.MinInt64, math.MaxInt64)
}

func appendUnsigned(dst, text []byte) ([]byte, error) {
	return appendBounded(dst, text, 0, math.MaxUint32)
}

func appendBounded(dst, text []byte, low, high int64) ([]byte, error) {
	v, ok := parseInteger(text)
	if !ok || v < low || v > high {
		return dst, ErrUnrepresentable
	}
	return appendLong(dst, v), nil
}

// parseInteger reads an optional minus and digits. strconv would allocate for its error and take
// a plus sign, which PostgreSQL never prints.
func parseInteger(text []byte) (int64, bool) {
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		text = text[1:]
	}
	if len(text) == 0 || len(text) > 19 { // 19 digits fit into a uint64
		return 0, false
	}
	var magnitude uint64
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		magnitude = magnitude*10 + uint64(c-'0')
	}
	switch {
	case negative && magnitude <= 1<<63:
		return -int64(magnitude), true // 1<<63 negated is math.MinInt64
	case !negative && magnitude <= math.MaxInt64:
		return int64(magnitude), true
	}
	return 0, false
}
