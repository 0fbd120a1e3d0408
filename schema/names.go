package schema

import (
	"strings"
	"unicode/utf8"
)

// Names of PostgreSQL hold any character; Kafka's topics and Avro's names do not. What they do
// not hold becomes _xHHHH_, once for each of its UTF-16 code units, in upper-case hexadecimal. An
// underscore that is followed by x and four such digits is escaped itself, whether or not another
// underscore follows; so whoever reads _xHHHH from the left knows that it is an escape, and two
// names never become one. A byte that is not UTF-8 (names in a database of encoding SQL_ASCII)
// becomes the low surrogate DC00 + byte, which no text has on its own.

// FieldName is the Avro name of a column.
func FieldName(column string) string { return escape(column, avroLegal) }

// TopicName is <prefix>.<schema>.<table>; a dot inside a schema's or table's name is escaped, one
// in the prefix is not.
func TopicName(prefix, schema, table string) string {
	return escape(prefix, prefixLegal) + "." + escape(schema, kafkaLegal) + "." +
		escape(table, kafkaLegal)
}

// AvroNamespace is the namespace of a topic's records. Escapes that the topic has already are
// kept, so that its last two parts are what FieldName makes of schema and table.
func AvroNamespace(topic string) string {
	parts := strings.Split(topic, ".")
	for i, part := range parts {
		var b strings.Builder
		for at, r := range part {
			if avroLegal(r, at) {
				b.WriteRune(r)
			} else {
				writeEscaped(&b, r)
			}
		}
		parts[i] = b.String()
	}
	return strings.Join(parts, ".")
}

// avroLegal says whether an Avro name may have r at byte at.
func avroLegal(r rune, at int) bool {
	return r == '_' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || at > 0 && r >= '0' && r <= '9'
}

// kafkaLegal says whether a part of a topic's name may have r.
func kafkaLegal(r rune, _ int) bool { return r == '-' || avroLegal(r, 1) }

func prefixLegal(r rune, _ int) bool { return r == '.' || kafkaLegal(r, 1) }

func escape(name string, legal func(r rune, at int) bool) string {
	var b strings.Builder
	for at := 0; at < len(name); {
		r, size := utf8.DecodeRuneInString(name[at:])
		switch {
		case r == utf8.RuneError && size == 1:
			writeUnit(&b, 0xdc00+uint16(name[at]))
		case !legal(r, at), r == '_' && looksEscaped(name[at:]):
			writeEscaped(&b, r)
		default:
			b.WriteString(name[at : at+size])
		}
		at += size
	}
	return b.String()
}

// looksEscaped says whether name begins with _x and four upper-case hexadecimal digits.
func looksEscaped(name string) bool {
	if len(name) < len("_xHHHH") || name[1] != 'x' {
		return false
	}
	for _, c := range []byte(name[2:6]) {
		switch {
		case c >= '0' && c <= '9', c >= 'A' && c <= 'F':
		default:
			return false
		}
	}
	return true
}

func writeEscaped(b *strings.Builder, r rune) {
	if r < 0x10000 {
		writeUnit(b, uint16(r))
		return
	}
	r -= 0x10000
	writeUnit(b, 0xd800+uint16(r>>10))
	writeUnit(b, 0xdc00+uint16(r&0x3ff))
}

func writeUnit(b *strings.Builder, unit uint16) {
	const digits = "0123456789ABCDEF"
	b.WriteString("_x")
	for shift := 12; shift >= 0; shift -= 4 {
		b.WriteByte(digits[unit>>shift&0xf])
	}
	b.WriteByte('_')
}
