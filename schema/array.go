package schema

import (
	"bytes"
	"sync"
)

// An array prints (array_out) as
//
//	array    = [ bounds "=" ] "{" [ item { delimiter item } ] "}"
//	bounds   = "[" lower ":" upper "]" ...          unless every lower bound is 1
//	item     = array | "NULL" | word | quoted
//	quoted   = `"` { character | `\"` | `\\` } `"`
//
// The delimiter is the element type's. A word is neither empty nor NULL in any case, and has no
// quote, backslash, brace, delimiter or white space in it: whatever has is quoted. So a bare NULL
// is the null, and "NULL" the text.
//
// The Avro type does not depend on the row, so only one dimension with lower bound 1 has a value
// in it; what has bounds printed or an array inside is UNREPRESENTABLE. As is an array with an
// element that its type cannot hold: half an array is not the value.
func arrayType(element Type, delimiter byte) Type {
	avro := `{"type":"array","items":["null",` + avroJSON(element) + `]}`
	appendElement := element.Append
	return rawType(element.PGName+"[]", avro, func(dst, text []byte) ([]byte, error) {
		return appendArray(dst, text, delimiter, appendElement)
	})
}

func appendArray(dst, text []byte, delimiter byte, element AppendFunc) ([]byte, error) {
	count, ok := countItems(text, delimiter)
	if !ok {
		return dst, ErrUnrepresentable
	}
	if count == 0 {
		return append(dst, blockEnd), nil
	}
	start := len(dst)
	dst = appendLong(dst, int64(count))
	scratch := scratches.Get().(*[]byte)
	defer scratches.Put(scratch)
	rest := text[1:]
	for range count {
		var err error
		n, quoted := itemLength(rest, delimiter)
		switch item := rest[:n]; {
		case quoted:
			dst, err = element(append(dst, branchValue), unquote(item, scratch))
		case string(item) == "NULL":
			dst = append(dst, branchNull)
		default:
			dst, err = element(append(dst, branchValue), item)
		}
		if err != nil {
			return dst[:start], err
		}
		rest = rest[n+1:] // and the delimiter or the brace
	}
	return append(dst, blockEnd), nil
}

// countItems checks a one-dimensional array's text from end to end and counts its items.
func countItems(text []byte, delimiter byte) (count int, ok bool) {
	if len(text) < 2 || text[0] != '{' {
		return 0, false
	}
	if string(text) == "{}" {
		return 0, true
	}
	for rest := text[1:]; ; count++ {
		n, _ := itemLength(rest, delimiter)
		switch {
		case n <= 0 || n == len(rest):
			return 0, false
		case rest[n] == '}':
			return count + 1, n+1 == len(rest)
		case rest[n] != delimiter:
			return 0, false
		}
		rest = rest[n+1:]
	}
}

// itemLength is the length of the item that text begins with, quotes included; 0 when there is
// none, -1 when its quote does not end.
func itemLength(text []byte, delimiter byte) (n int, quoted bool) {
	if len(text) > 0 && text[0] == '"' {
		return quotedLength(text), true
	}
	for n < len(text) && text[n] != delimiter && text[n] != '}' {
		switch text[n] {
		case '{', '"', '\\':
			return 0, false
		}
		n++
	}
	return n, false
}

// quotedLength is the length of the quoted text that text begins with, both quotes included, or
// -1 when it does not end.
func quotedLength(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// unquote is a quoted text's content: a part of it, or, when something is escaped in it, in
// scratch, where it is valid until the next call with the same.
func unquote(quoted []byte, scratch *[]byte) []byte {
	content := quoted[1 : len(quoted)-1]
	i := bytes.IndexByte(content, '\\')
	if i < 0 {
		return content
	}
	out := append((*scratch)[:0], content[:i]...)
	for ; i < len(content); i++ {
		if content[i] == '\\' {
			i++
		}
		out = append(out, content[i])
	}
	*scratch = out
	return out
}

// scratches hold elements without their escapes. Each array being encoded has its own: an array
// of a domain over an array nests.
var scratches = sync.Pool{New: func() any { return new([]byte) }}
