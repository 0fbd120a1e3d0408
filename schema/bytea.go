package schema

// bytea prints, with bytea_output hex, as \x and two lower-case hexadecimal digits a byte.
func byteaType(name string) Type { return rawType(name, `"bytes"`, appendBytea) }

func appendBytea(dst, text []byte) ([]byte, error) {
	if len(text) < 2 || text[0] != '\\' || text[1] != 'x' {
		return dst, ErrUnrepresentable
	}
	return appendHex(dst, text[2:])
}

// appendHex appends hexadecimal digits as Avro bytes.
func appendHex(dst, digits []byte) ([]byte, error) {
	if len(digits)%2 != 0 {
		return dst, ErrUnrepresentable
	}
	start := len(dst)
	dst = appendLong(dst, int64(len(digits)/2))
	for i := 0; i < len(digits); i += 2 {
		high, low := unhex(digits[i]), unhex(digits[i+1])
		if high < 0 || low < 0 {
			return dst[:start], ErrUnrepresentable
		}
		dst = append(dst, byte(high<<4|low))
	}
	return dst, nil
}

// unhex is the value of a hexadecimal digit, or -1.
func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
