package schema

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"strings"
	"testing"
)

// masked encodes a value of a column under a mask and returns the field's string.
func masked(t *testing.T, m *Mask, col Column, types TypeSource, text string) string {
	t.Helper()
	of, ok := m.Of(col, Resolve(col, types, Options{}), types)
	if !ok {
		t.Fatalf("type %d cannot be masked", col.TypeOID)
	}
	got, err := of.Append([]byte("before"), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	got = got[len("before"):]
	length, n := binary.Varint(got)
	if int(length) != len(got)-n {
		t.Fatalf("length %d in front of %d bytes", length, len(got)-n)
	}
	return string(got[n:])
}

var (
	textColumn = Column{TypeOID: 25, TypeMod: -1}
	salt123    = []byte("salt123")
)

func TestMasks(t *testing.T) {
	stars, none := &Mask{Kind: MaskStars, Length: 4}, &Mask{Kind: MaskStars}
	cut := &Mask{Kind: MaskTruncate, Length: 3}
	v1 := &Mask{Kind: MaskHash, New: sha256.New, Salt: salt123, Java: true}
	v2 := &Mask{Kind: MaskHash, New: sha256.New, Salt: salt123}
	for _, tc := range []struct {
		mask       *Mask
		text, want string
	}{
		{stars, "secret", "****"},
		{stars, "", "****"},
		{none, "secret", ""},
		{cut, "abcdef", "abc"},
		{cut, "abc", "abc"},
		{cut, "", ""},
		{cut, "äöüß", "äöü"},
		{cut, "ab\U0001F600c", "ab"},          // two code units do not fit behind ab
		{cut, "a\U0001F600bc", "a\U0001F600"}, // one and two are three
		// The two hashes that Debezium's own tests of this salt and value hold.
		{v1, "12345678901234567890", "5944c66655670e4ce234df8529d452ba1cae10a641b9cd1583abf62585b8515a"},
		{v2, "12345678901234567890", "b65875d34a3dedf070f3a012970bf3b5da424560d7be3d2c23b986b525d2d7f3"},
		// printf '%s' 'pepper€' | md5sum
		{
			&Mask{Kind: MaskHash, New: md5.New, Salt: []byte("pepper")}, "€",
			"9c77cd559112088bfa54896f728f3984",
		},
	} {
		if got := masked(t, tc.mask, textColumn, nil, tc.text); got != tc.want {
			t.Errorf("kind %d of %q: %q, want %q", tc.mask.Kind, tc.text, got, tc.want)
		}
	}
	// A long text's length takes two bytes, the cut one's takes one.
	long := &Mask{Kind: MaskTruncate, Length: 10}
	if got := masked(t, long, textColumn, nil, strings.Repeat("x", 5000)); got != "xxxxxxxxxx" {
		t.Errorf("a long text is cut to %q", got)
	}
}

// What Java's ObjectOutputStream writes for a String, by hand from its specification.
func TestJavaSerialization(t *testing.T) {
	const head = "\xac\xed\x00\x05"
	for text, want := range map[string]string{
		"":                         head + "t\x00\x00",
		"ab":                       head + "t\x00\x02ab",
		"é":                        head + "t\x00\x02\xc3\xa9",
		"\U0001F600":               head + "t\x00\x06\xed\xa0\xbd\xed\xb8\x80", // D83D DE00
		strings.Repeat("x", 65535): head + "t\xff\xff" + strings.Repeat("x", 65535),
		strings.Repeat("x", 65536): head + "|\x00\x00\x00\x00\x00\x01\x00\x00" +
			strings.Repeat("x", 65536),
	} {
		if got := appendJava(nil, []byte(text)); string(got) != want {
			t.Errorf("%.10q: % x, want % x", text, got[:min(20, len(got))], want[:min(20, len(want))])
		}
	}
}

// Hashes are as long as the column at most, for char(n), varchar(n) and domains over them.
func TestHashLength(t *testing.T) {
	types := typeMap{
		90001: {OID: 90001, Name: "code", Kind: 'd', Base: 90002, BaseMod: -1},
		90002: {OID: 90002, Name: "base", Kind: 'd', Base: 1043, BaseMod: 14},
	}
	m := &Mask{Kind: MaskHash, New: sha512.New, Salt: salt123}
	for _, tc := range []struct {
		col  Column
		want int
	}{
		{textColumn, 128},
		{Column{TypeOID: 1043, TypeMod: -1}, 128},
		{Column{TypeOID: 1043, TypeMod: 24}, 20},
		{Column{TypeOID: 1042, TypeMod: 5}, 1},
		{Column{TypeOID: 1043, TypeMod: 504}, 128},
		{Column{TypeOID: 90001, TypeMod: -1}, 10},
	} {
		got := masked(t, m, tc.col, types, "v")
		if len(got) != tc.want {
			t.Errorf("%+v: %d digits, want %d", tc.col, len(got), tc.want)
		}
		if whole := masked(t, m, textColumn, nil, "v"); !strings.HasPrefix(whole, got) {
			t.Errorf("%+v: %s is not the beginning of %s", tc.col, got, whole)
		}
	}
}

// bytea is cut to bytes, as Debezium does it; other fields that are bytes are never cut.
func TestBytesAreCut(t *testing.T) {
	types := typeMap{
		90001: {OID: 90001, Name: "blob", Kind: 'd', Base: 17, BaseMod: -1},
		90002: {OID: 90002, Schema: "public", Name: "geometry", Kind: 'b', BaseMod: -1},
	}
	m := &Mask{Kind: MaskTruncate, Length: 3}
	for _, oid := range []uint32{17, 90001} {
		for text, want := range map[string]string{
			`\x`: "", `\x00ff`: "\x00\xff", `\xc3a4c3b6`: "\xc3\xa4\xc3",
			`\x` + strings.Repeat("61", 5000): "aaa",
		} {
			if got := masked(t, m, Column{TypeOID: oid, TypeMod: -1}, types, text); got != want {
				t.Errorf("type %d, %.20s: %q, want %q", oid, text, got, want)
			}
		}
	}
	for _, col := range []Column{{TypeOID: 90002, TypeMod: -1}, {TypeOID: 1700, TypeMod: 10<<16 + 6}} {
		typ := Resolve(col, types, Options{})
		if _, ok := m.Of(col, typ, types); ok || !strings.Contains(avroJSON(typ), "bytes") {
			t.Errorf("type %d (%s) is cut", col.TypeOID, avroJSON(typ))
		}
	}
}

// Only fields that are strings take a mask; what the type refuses stays refused.
func TestWhatCannotBeMasked(t *testing.T) {
	m := &Mask{Kind: MaskStars, Length: 4}
	for _, oid := range []uint32{16, 17, 20, 23, 701, 790, 1082, 1114, 2950, 1009} {
		col := Column{TypeOID: oid, TypeMod: -1}
		if of, ok := m.Of(col, Resolve(col, nil, Options{}), nil); ok || of.Fixed != nil {
			t.Errorf("type %d takes asterisks", oid)
		}
	}
	for _, kind := range []Mask{
		{Kind: MaskTruncate, Length: 3}, {Kind: MaskHash, New: sha256.New},
	} {
		of, _ := kind.Of(textColumn, Resolve(textColumn, nil, Options{}), nil)
		got, err := of.Append([]byte("x"), []byte("a\xff"))
		if err != ErrUnrepresentable || !bytes.Equal(got, []byte("x")) { //nolint:errorlint // as it is
			t.Errorf("invalid UTF-8 under kind %d: %q, %v", kind.Kind, got, err)
		}
	}
}
