package schema

import "unicode/utf8"

// Everything that has no closer Avro type is a string with PostgreSQL's text, unchanged:
// character types (bpchar with its padding), json and jsonb, xml, enums, composites, ranges,
// bit strings, network addresses, timetz, types that are not known.
func textType(name string) Type { return rawType(name, `"string"`, appendText) }

// appendText refuses what is not UTF-8: a database of encoding SQL_ASCII sends any bytes, whatever
// client_encoding says, and an Avro string with them breaks its reader.
func appendText(dst, text []byte) ([]byte, error) {
	if !utf8.Valid(text) {
		return dst, ErrUnrepresentable
	}
	return appendBytes(dst, text), nil
}
