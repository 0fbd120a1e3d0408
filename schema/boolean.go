package schema

// boolean prints as t or f (boolout).
func booleanType(name string) Type { return rawType(name, `"boolean"`, appendBoolean) }

func appendBoolean(dst, text []byte) ([]byte, error) {
	if len(text) == 1 {
		switch text[0] {
		case 't':
			return append(dst, 1), nil
		case 'f':
			return append(dst, 0), nil
		}
	}
	return dst, ErrUnrepresentable
}
