package schema

// uuid prints as 8-4-4-4-12 lower-case hexadecimal digits (uuid_out).
func uuidType(name string) Type {
	return rawType(name, `{"type":"string","logicalType":"uuid"}`, appendUUID)
}

const uuidLength = 36

func appendUUID(dst, text []byte) ([]byte, error) {
	if len(text) != uuidLength {
		return dst, ErrUnrepresentable
	}
	for i, c := range text {
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return dst, ErrUnrepresentable
			}
		default:
			if unhex(c) < 0 {
				return dst, ErrUnrepresentable
			}
		}
	}
	return appendBytes(dst, text), nil
}
