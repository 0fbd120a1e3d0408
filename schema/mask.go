package schema

import (
	"encoding/binary"
	"encoding/hex"
	"hash"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"
)

// MaskKind is what a Mask does.
type MaskKind int

// The kinds, the one that shows least first.
const (
	MaskStars    MaskKind = iota + 1 // Length asterisks in every value's place, null's too
	MaskHash                         // hexadecimal digits of a salted hash
	MaskTruncate                     // the first Length characters, of bytea bytes
)

// Mask changes what a column's field holds. Only fields that are strings can be masked; bytea can be
// cut. The results are those of Debezium's masks, byte for byte.
type Mask struct {
	Kind   MaskKind
	Length int // asterisks, or characters that stay, counted as Java does: in UTF-16 code units

	New  func() hash.Hash // MaskHash
	Salt []byte
	// Java makes the hash one of the value as Java serializes it, not of its UTF-8 bytes: version 1
	// of Debezium's hashes.
	Java bool
}

// Masked is a column's type under a mask.
type Masked struct {
	Type
	// Fixed is the Avro body that stands in every value's place; nil: Append is to be asked.
	Fixed []byte
}

// Of puts a mask on a column's type, as Resolve or TextType gave it. ok is false when the field
// cannot have it.
func (m *Mask) Of(col Column, t Type, types TypeSource) (masked Masked, ok bool) {
	masked.Type = t
	if avroJSON(t) != `"string"` {
		if oid, _ := domainBase(col.TypeOID, col.TypeMod, types); m.Kind != MaskTruncate || oid != oidBytea {
			return masked, false
		}
		// Not of PostGIS's types, whose fields are bytes too: a part of one is no value.
		masked.Append = truncating(t.Append, func(whole []byte) int { return min(len(whole), m.Length) })
		return masked, true
	}
	switch m.Kind {
	case MaskStars:
		masked.Fixed = appendBytes(nil, []byte(strings.Repeat("*", m.Length)))
		fixed := masked.Fixed
		masked.Append = func(dst, _ []byte) ([]byte, error) { return append(dst, fixed...), nil }
	case MaskHash:
		masked.Append = m.hashing(t.Append, m.Digits(col, types))
	case MaskTruncate:
		masked.Append = truncating(t.Append, func(whole []byte) int { return utf16Prefix(whole, m.Length) })
	}
	return masked, true
}

// Digits is how many hexadecimal digits of the hash a column gets: all, or as many as a char(n) or
// varchar(n) column holds. Fewer than all may be the same for different values.
func (m *Mask) Digits(col Column, types TypeSource) int {
	all := 2 * m.New().Size()
	if n := charLength(col.TypeOID, col.TypeMod, types); n > 0 && n < all {
		return n
	}
	return all
}

// charLength is the n of char(n) and varchar(n), and of a domain over them; 0 for others.
func charLength(oid uint32, typmod int32, types TypeSource) int {
	if oid, typmod = domainBase(oid, typmod, types); oid == oidBPChar || oid == oidVarchar {
		return max(0, int(typmod-lengthHeader))
	}
	return 0
}

// domainBase is the type that a domain is over, or the type itself.
func domainBase(oid uint32, typmod int32, types TypeSource) (base uint32, baseMod int32) {
	for range maxNesting {
		if types == nil || builtins[oid].name != "" {
			break
		}
		info, ok := types.Type(oid)
		if !ok || info.Kind != 'd' {
			break
		}
		oid, typmod = info.Base, info.BaseMod
	}
	return oid, typmod
}

// stringAt returns the Avro string or bytes that begins at dst[mark] and ends with dst.
func stringAt(dst []byte, mark int) []byte {
	_, n := binary.Varint(dst[mark:])
	return dst[mark+n:]
}

// truncating cuts the string or bytes that inner appends to as many bytes as keep says.
func truncating(inner AppendFunc, keep func(whole []byte) int) AppendFunc {
	return func(dst, text []byte) ([]byte, error) {
		mark := len(dst)
		dst, err := inner(dst, text)
		if err != nil {
			return dst, err
		}
		whole := stringAt(dst, mark)
		kept := whole[:keep(whole)]
		if len(kept) == len(whole) {
			return dst, nil
		}
		// The length in front never grows, so that the text moves to the left or stays.
		dst = appendLong(dst[:mark], int64(len(kept)))
		return append(dst, kept...), nil
	}
}

// utf16Prefix is how many bytes of text hold at most n UTF-16 code units. A character of two units
// is never cut in two.
func utf16Prefix(text []byte, n int) int {
	at := 0
	for at < len(text) {
		r, size := utf8.DecodeRune(text[at:])
		if n -= utf16.RuneLen(r); n < 0 {
			break
		}
		at += size
	}
	return at
}

// hasher is what one hash needs; several goroutines may hash at once.
type hasher struct {
	hash hash.Hash
	java []byte
	sum  []byte
}

func (m *Mask) hashing(inner AppendFunc, digits int) AppendFunc {
	pool := sync.Pool{New: func() any { return &hasher{hash: m.New()} }}
	return func(dst, text []byte) ([]byte, error) {
		mark := len(dst)
		dst, err := inner(dst, text)
		if err != nil {
			return dst, err
		}
		h := pool.Get().(*hasher)
		defer pool.Put(h)
		h.hash.Reset()
		_, _ = h.hash.Write(m.Salt) // a hash takes all bytes
		value := stringAt(dst, mark)
		if m.Java {
			h.java = appendJava(h.java[:0], value)
			value = h.java
		}
		_, _ = h.hash.Write(value)
		h.sum = h.hash.Sum(h.sum[:0])
		dst = appendLong(dst[:mark], int64(digits))
		return hex.AppendEncode(dst, h.sum)[:len(dst)+digits], nil
	}
}

// The bytes of a string in Java's object serialization (its specification, section 6.4): magic and
// version of the stream, then TC_STRING with a length of two bytes or TC_LONGSTRING with one of
// eight, then modified UTF-8, in which characters beyond the basic plane are surrogates of three
// bytes each. PostgreSQL's text holds no NUL, which is the other modification.
func appendJava(dst, text []byte) []byte {
	dst = append(dst, 0xac, 0xed, 0x00, 0x05)
	length := len(text)
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		if at += size; r > 0xffff {
			length += 2
		}
	}
	if length <= 0xffff {
		dst = binary.BigEndian.AppendUint16(append(dst, 't'), uint16(length))
	} else {
		dst = binary.BigEndian.AppendUint64(append(dst, '|'), uint64(length))
	}
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		if r > 0xffff {
			high, low := utf16.EncodeRune(r)
			dst = appendUnit(appendUnit(dst, high), low)
		} else {
			dst = append(dst, text[at:at+size]...)
		}
		at += size
	}
	return dst
}

// appendUnit writes a surrogate as three bytes, which UTF-8 itself forbids.
func appendUnit(dst []byte, unit rune) []byte {
	return append(dst, 0xe0|byte(unit>>12), 0x80|byte(unit>>6)&0xbf, 0x80|byte(unit)&0xbf)
}
