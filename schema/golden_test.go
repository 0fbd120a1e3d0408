package schema

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
)

// fixture is one value: what PostgreSQL prints for it, and what its Avro body is; Hex is empty for
// what the Avro type cannot hold or the type does not print. schema/catalog's tests hold that
// servers do print such texts.
type fixture struct {
	Text string
	Hex  string
}

func checkFixtures(t *testing.T, typ Type, fixtures []fixture) {
	t.Helper()
	for _, f := range fixtures {
		want, err := hex.DecodeString(strings.ReplaceAll(f.Hex, " ", ""))
		if err != nil {
			t.Fatalf("%q: the fixture is wrong: %v", f.Text, err)
		}
		text := []byte(f.Text)
		prefix := []byte("before")
		got, err := typ.Append(prefix, text)
		if string(text) != f.Text {
			t.Errorf("%s %q: its text was changed to %q", typ.PGName, f.Text, text)
		}
		if !bytes.HasPrefix(got, prefix) {
			t.Fatalf("%s %q: what was in dst is gone", typ.PGName, f.Text)
		}
		got = got[len(prefix):]
		switch {
		case f.Hex == "" && (!errors.Is(err, ErrUnrepresentable) || len(got) != 0):
			t.Errorf("%s %q: got % x, %v; want unrepresentable", typ.PGName, f.Text, got, err)
		case f.Hex != "" && err != nil:
			t.Errorf("%s %q: %v", typ.PGName, f.Text, err)
		case f.Hex != "" && !bytes.Equal(got, want):
			t.Errorf("%s %q: got % x, want % x", typ.PGName, f.Text, got, want)
		}
	}
}

// builtinColumn resolves a type that needs no TypeSource.
func builtinColumn(oid uint32, typmod int32) Type {
	return Resolve(Column{TypeOID: oid, TypeMod: typmod}, nil, Options{})
}

func checkAvro(t *testing.T, typ Type, name, avro string) {
	t.Helper()
	if typ.PGName != name {
		t.Errorf("its name is %q, want %q", typ.PGName, name)
	}
	if got := avroJSON(typ); got != avro {
		t.Errorf("%s: its Avro type is %s, want %s", name, got, avro)
	}
}

func TestBoolean(t *testing.T) {
	typ := builtinColumn(oidBool, -1)
	checkAvro(t, typ, "boolean", `"boolean"`)
	checkFixtures(t, typ, []fixture{
		{Text: "t", Hex: "01"},
		{Text: "f", Hex: "00"},
		{Text: ""},
		{Text: "true"},
		{Text: "T"},
		{Text: "1"},
	})
}

func TestIntegers(t *testing.T) {
	malformed := []fixture{
		{Text: ""},
		{Text: "-"},
		{Text: "+1"},
		{Text: "1.0"},
		{Text: " 1"},
		{Text: "1e3"},
		{Text: "9223372036854775808"},
		{Text: "-9223372036854775809"},
		{Text: "18446744073709551617"},
		{Text: "99999999999999999999"},
	}
	for _, c := range []struct {
		oid      uint32
		name     string
		avro     string
		fixtures []fixture
	}{
		{oidInt2, "smallint", `"int"`, []fixture{
			{Text: "0", Hex: "00"},
			{Text: "-1", Hex: "01"},
			{Text: "32767", Hex: "fe ff 03"},
			{Text: "-32768", Hex: "ff ff 03"},
			{Text: "32768"},
			{Text: "-32769"},
		}},
		{oidInt4, "integer", `"int"`, []fixture{
			{Text: "1", Hex: "02"},
			{Text: "64", Hex: "80 01"},
			{Text: "2147483647", Hex: "fe ff ff ff 0f"},
			{Text: "-2147483648", Hex: "ff ff ff ff 0f"},
			{Text: "2147483648"},
			{Text: "-2147483649"},
		}},
		{oidInt8, "bigint", `"long"`, []fixture{
			{Text: "9223372036854775807", Hex: "fe ff ff ff ff ff ff ff ff 01"},
			{Text: "-9223372036854775808", Hex: "ff ff ff ff ff ff ff ff ff 01"},
		}},
		{oidOID, "oid", `"long"`, []fixture{
			{Text: "4294967295", Hex: "fe ff ff ff 1f"},
			{Text: "4294967296"},
			{Text: "-1"},
		}},
		{oidXID, "xid", `"long"`, []fixture{{Text: "4294967295", Hex: "fe ff ff ff 1f"}}},
	} {
		typ := builtinColumn(c.oid, -1)
		checkAvro(t, typ, c.name, c.avro)
		checkFixtures(t, typ, c.fixtures)
		checkFixtures(t, typ, malformed)
	}
}

func TestFloats(t *testing.T) {
	malformed := []fixture{
		{Text: ""},
		{Text: "nan"},
		{Text: "inf"},
		{Text: "+Infinity"},
		{Text: "0x1p-2"},
		{Text: "1_000"},
		{Text: "+1"},
		{Text: "1e999"},
		{Text: "1,5"},
		{Text: "e"},
		{Text: "-"},
	}
	real := builtinColumn(oidFloat4, -1)
	checkAvro(t, real, "real", `"float"`)
	checkFixtures(t, real, malformed)
	checkFixtures(t, real, []fixture{
		{Text: "1.5", Hex: "00 00 c0 3f"},
		{Text: "0.1", Hex: "cd cc cc 3d"},
		{Text: "-0", Hex: "00 00 00 80"},
		{Text: "3.4028235e+38", Hex: "ff ff 7f 7f"},
		{Text: "1e-45", Hex: "01 00 00 00"},
		{Text: "Infinity", Hex: "00 00 80 7f"},
		{Text: "-Infinity", Hex: "00 00 80 ff"},
		{Text: "NaN", Hex: "00 00 c0 7f"},
		{Text: "1e39"},
	})
	double := builtinColumn(oidFloat8, -1)
	checkAvro(t, double, "double precision", `"double"`)
	checkFixtures(t, double, malformed)
	checkFixtures(t, double, []fixture{
		{Text: "1.5", Hex: "00 00 00 00 00 00 f8 3f"},
		{Text: "0.30000000000000004", Hex: "34 33 33 33 33 33 d3 3f"},
		{Text: "0", Hex: "00 00 00 00 00 00 00 00"},
		{Text: "-0", Hex: "00 00 00 00 00 00 00 80"},
		{Text: "1.7976931348623157e+308", Hex: "ff ff ff ff ff ff ef 7f"},
		{Text: "5e-324", Hex: "01 00 00 00 00 00 00 00"},
		{Text: "Infinity", Hex: "00 00 00 00 00 00 f0 7f"},
		{Text: "-Infinity", Hex: "00 00 00 00 00 00 f0 ff"},
		{Text: "NaN", Hex: "01 00 00 00 00 00 f8 7f"},
	})
}

func TestNumeric(t *testing.T) {
	checkFixtures(t, builtinColumn(oidNumeric, numericMod(10, 2)), []fixture{
		{Text: "0.00", Hex: "02 00"},
		{Text: "0.01", Hex: "02 01"},
		{Text: "-0.01", Hex: "02 ff"},
		{Text: "1.27", Hex: "02 7f"},
		{Text: "1.28", Hex: "04 00 80"},
		{Text: "-1.28", Hex: "02 80"},
		{Text: "-1.29", Hex: "04 ff 7f"},
		{Text: "2.55", Hex: "04 00 ff"},
		{Text: "-2.56", Hex: "04 ff 00"},
		{Text: "99999999.99", Hex: "0a 02 54 0b e3 ff"},
		{Text: "-99999999.99", Hex: "0a fd ab f4 1c 01"},
		{Text: "1", Hex: "02 64"},
		{Text: "1.5", Hex: "04 00 96"},
		{Text: "1.500", Hex: "04 00 96"},
		{Text: "1.505"},
		{Text: "100000000.00"},
		{Text: "NaN"},
		{Text: "Infinity"},
		{Text: "-Infinity"},
		{Text: ""},
		{Text: "-"},
		{Text: "."},
		{Text: "1."},
		{Text: ".5"},
		{Text: "1e5"},
		{Text: "1.2.3"},
		{Text: "--1"},
		{Text: "+1"},
	})
	checkFixtures(t, builtinColumn(oidNumeric, numericMod(38, 0)), []fixture{
		{Text: "18446744073709551615", Hex: "12 00 ff ff ff ff ff ff ff ff"},
		{Text: "18446744073709551616", Hex: "12 01 00 00 00 00 00 00 00 00"},
		{Text: "-18446744073709551616", Hex: "12 ff 00 00 00 00 00 00 00 00"},
		{Text: "-9223372036854775808", Hex: "10 80 00 00 00 00 00 00 00"},
		{Text: "9223372036854775808", Hex: "12 00 80 00 00 00 00 00 00 00"},
		{
			Text: "99999999999999999999999999999999999999",
			Hex:  "20 4b 3b 4c a8 5a 86 c4 7a 09 8a 22 3f ff ff ff ff",
		},
	})
}

// numericMod is make_numeric_typmod of numeric.c.
func numericMod(precision, scale int32) int32 { return precision<<16 | scale&0x7ff + 4 }

func TestNumericTypmods(t *testing.T) {
	decimal := func(precision, scale string) string {
		return `{"type":"bytes","logicalType":"decimal","precision":` + precision +
			`,"scale":` + scale + `}`
	}
	checkAvro(t, builtinColumn(oidNumeric, numericMod(10, 2)), "numeric(10,2)", decimal("10", "2"))
	checkAvro(t, builtinColumn(oidNumeric, numericMod(3, 5)), "numeric(3,5)", decimal("5", "5"))
	negative := builtinColumn(oidNumeric, numericMod(3, -2))
	checkAvro(t, negative, "numeric(3,-2)", decimal("5", "0"))
	checkFixtures(t, negative, []fixture{
		{Text: "99900", Hex: "06 01 86 3c"}, {Text: "100000"},
	})
	checkFixtures(t, builtinColumn(oidNumeric, numericMod(3, 5)), []fixture{
		{Text: "0.00999", Hex: "04 03 e7"}, {Text: "1.00000"},
	})
	// The largest there is, and its end: 2 000 digits do not overflow.
	widest := builtinColumn(oidNumeric, numericMod(1000, -1000))
	checkAvro(t, widest, "numeric(1000,-1000)", decimal("2000", "0"))
	body, err := widest.Append(nil, []byte(strings.Repeat("9", 2000)))
	if err != nil || len(body) != 2+831 {
		t.Errorf("2 000 nines: %d bytes, %v; want the 831 of their 6 644 bits", len(body), err)
	}
	checkFixtures(t, widest, []fixture{{Text: strings.Repeat("9", 2001)}})
}

func TestNumericWithoutTypmod(t *testing.T) {
	text := builtinColumn(oidNumeric, -1)
	checkAvro(t, text, "numeric", `"string"`)
	checkFixtures(t, text, []fixture{
		{Text: "1.50", Hex: "08 31 2e 35 30"},
		{Text: "NaN", Hex: "06 4e 61 4e"},
		{Text: "-Infinity", Hex: "12 2d 49 6e 66 69 6e 69 74 79"},
	})
	col := Column{TypeOID: oidNumeric, TypeMod: numericMod(10, 2)}
	asString := Resolve(col, nil, Options{DecimalMode: DecimalString})
	checkAvro(t, asString, "numeric(10,2)", `"string"`)
	asDouble := Resolve(col, nil, Options{DecimalMode: DecimalDouble})
	checkAvro(t, asDouble, "numeric(10,2)", `"double"`)
	checkFixtures(t, asDouble, []fixture{
		{Text: "1.50", Hex: "00 00 00 00 00 00 f8 3f"},
		{Text: "NaN", Hex: "01 00 00 00 00 00 f8 7f"},
	})
}

func TestMoney(t *testing.T) {
	typ := Resolve(Column{TypeOID: oidMoney, TypeMod: -1}, nil, Options{MoneyDigits: 2})
	checkAvro(t, typ, "money",
		`{"type":"bytes","logicalType":"decimal","precision":19,"scale":2}`)
	checkFixtures(t, typ, []fixture{
		{Text: "$0.00", Hex: "02 00"},
		{Text: "-$0.01", Hex: "02 ff"},
		{Text: "$1,234.56", Hex: "06 01 e2 40"},
		{Text: "$92,233,720,368,547,758.07", Hex: "10 7f ff ff ff ff ff ff ff"},
		{Text: "-$92,233,720,368,547,758.08", Hex: "10 80 00 00 00 00 00 00 00"},
		{Text: "$92,233,720,368,547,758.08"},
		{Text: "-$92,233,720,368,547,758.09"},
		{Text: "$992,233,720,368,547,758.08"},
		{Text: ""},
		{Text: "$"},
		{Text: "$.00"},
		{Text: "$,1.00"},
		{Text: "1.00"},
		{Text: "$1,00"},
		{Text: "1,00 €"},
		{Text: "($1.00)"},
		{Text: "$1.2.34"},
		{Text: "$1.0-"},
	})
	// The stored integer is the unscaled value in a currency without fractions as well.
	yen := Resolve(Column{TypeOID: oidMoney, TypeMod: -1}, nil, Options{MoneyDigits: 0})
	checkAvro(t, yen, "money",
		`{"type":"bytes","logicalType":"decimal","precision":19,"scale":0}`)
	checkFixtures(t, yen, []fixture{{Text: "$0.05", Hex: "02 05"}})
}

func TestText(t *testing.T) {
	for oid, name := range map[uint32]string{
		25: "text", 18: `"char"`, 19: "name", 114: "json", 3802: "jsonb", 142: "xml",
		3904: "int4range", 4451: "int4multirange", 3614: "tsvector", 869: "inet", 650: "cidr",
		829: "macaddr", 600: "point", 22: "int2vector", 30: "oidvector", 5069: "xid8",
		oidTimeTZ: "time with time zone", oidInterval: "interval", oidVarbit: "bit varying",
	} {
		typ := builtinColumn(oid, -1)
		checkAvro(t, typ, name, `"string"`)
		checkFixtures(t, typ, []fixture{
			{Text: "", Hex: "00"},
			{Text: "ab   ", Hex: "0a 61 62 20 20 20"},
			{Text: "é", Hex: "04 c3 a9"},
			{Text: "NULL", Hex: "08 4e 55 4c 4c"},
			{Text: "\xe9"},
			{Text: "\xed\xa0\x80"},
		})
	}
}

func TestUUID(t *testing.T) {
	typ := builtinColumn(oidUUID, -1)
	checkAvro(t, typ, "uuid", `{"type":"string","logicalType":"uuid"}`)
	checkFixtures(t, typ, []fixture{
		{
			Text: "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
			Hex: "48 61306565626339392d396330622d346566382d62623664" +
				"2d366262396264333830613131",
		},
		{Text: ""},
		{Text: "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1"},
		{Text: "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1g"},
		{Text: "a0eebc9909c0b-4ef8-bb6d-6bb9bd380a11"},
	})
}

func TestBytea(t *testing.T) {
	typ := builtinColumn(oidBytea, -1)
	checkAvro(t, typ, "bytea", `"bytes"`)
	checkFixtures(t, typ, []fixture{
		{Text: `\x`, Hex: "00"},
		{Text: `\xdeadbeef00`, Hex: "0a de ad be ef 00"},
		{Text: ""},
		{Text: `\`},
		{Text: `\xa`},
		{Text: `\xzz`},
		{Text: `\336\255`},
		{Text: "deadbeef"},
	})
}
