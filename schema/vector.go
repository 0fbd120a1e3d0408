package schema

import "bytes"

// pgvector's vector and halfvec print as "[1,2.5,-3e-07]" (vector_out, halfvec_out): shortest
// decimal texts of the elements, which are finite and never null.
func vectorType(name string, typmod int32) Type {
	if typmod > 0 {
		name += parenthesised(typmod)
	}
	return rawType(name, `{"type":"array","items":"float"}`, appendVector)
}

func appendVector(dst, text []byte) ([]byte, error) {
	if len(text) < 2 || text[0] != '[' || text[len(text)-1] != ']' {
		return dst, ErrUnrepresentable
	}
	rest := text[1 : len(text)-1]
	if len(rest) == 0 {
		return append(dst, blockEnd), nil
	}
	start := len(dst)
	count := bytes.Count(rest, []byte{','}) + 1
	dst = appendLong(dst, int64(count))
	for range count {
		var item []byte
		item, rest, _ = bytes.Cut(rest, []byte{','})
		var err error
		if dst, err = appendReal(dst, item); err != nil {
			return dst[:start], err
		}
	}
	return append(dst, blockEnd), nil
}
