package schema

import (
	"bytes"
	"unicode/utf8"
)

// hstore prints (hstore_out) its pairs in the order that it stores them, always quoted:
//
//	hstore = [ pair { ", " pair } ]
//	pair   = quoted "=>" ( quoted | "NULL" )
//
// with the quotes and escapes of an array. The map has the order of the text.
func hstoreType(name string) Type {
	return rawType(name, `{"type":"map","values":["null","string"]}`, appendHstore)
}

func appendHstore(dst, text []byte) ([]byte, error) {
	if len(text) == 0 {
		return append(dst, blockEnd), nil
	}
	count, ok := countPairs(text)
	if !ok || !utf8.Valid(text) {
		return dst, ErrUnrepresentable
	}
	dst = appendLong(dst, int64(count))
	scratch := scratches.Get().(*[]byte)
	defer scratches.Put(scratch)
	for rest := text; len(rest) > 0; {
		n := quotedLength(rest)
		dst = appendBytes(dst, unquote(rest[:n], scratch))
		rest = rest[n+len("=>"):]
		if rest[0] == 'N' {
			dst, n = append(dst, branchNull), len("NULL")
		} else {
			n = quotedLength(rest)
			dst = appendBytes(append(dst, branchValue), unquote(rest[:n], scratch))
		}
		rest = rest[min(n+len(", "), len(rest)):]
	}
	return append(dst, blockEnd), nil
}

// countPairs checks an hstore's text from end to end and counts its pairs.
func countPairs(text []byte) (count int, ok bool) {
	for rest := text; ; count++ {
		n := hstoreString(rest)
		if n < 0 || !bytes.HasPrefix(rest[n:], []byte("=>")) {
			return 0, false
		}
		rest = rest[n+len("=>"):]
		if bytes.HasPrefix(rest, []byte("NULL")) {
			n = len("NULL")
		} else if n = hstoreString(rest); n < 0 {
			return 0, false
		}
		if rest = rest[n:]; len(rest) == 0 {
			return count + 1, true
		}
		if !bytes.HasPrefix(rest, []byte(", ")) {
			return 0, false
		}
		rest = rest[len(", "):]
	}
}

// hstoreString is the length of the quoted text that text begins with, or -1.
func hstoreString(text []byte) int {
	if len(text) == 0 || text[0] != '"' {
		return -1
	}
	return quotedLength(text)
}
