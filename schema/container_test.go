package schema

import (
	"strings"
	"testing"
)

// typeMap is a TypeSource for tests.
type typeMap map[uint32]TypeInfo

func (m typeMap) Type(oid uint32) (TypeInfo, bool) {
	info, ok := m[oid]
	return info, ok
}

// userTypes are types as a database with the extensions and the domains of case K06 has them.
var userTypes = typeMap{
	90001: {Schema: "public", Name: "hstore", Kind: 'b', BaseMod: -1},
	90002: {Schema: "public", Name: "_hstore", Kind: 'b', Elem: 90001, Delim: ',', BaseMod: -1},
	90003: {Schema: "vectors", Name: "vector", Kind: 'b', BaseMod: -1},
	90004: {Schema: "public", Name: "halfvec", Kind: 'b', BaseMod: -1},
	90005: {Schema: "public", Name: "geometry", Kind: 'b', BaseMod: -1},
	90006: {Schema: "public", Name: "_geometry", Kind: 'b', Elem: 90005, Delim: ':', BaseMod: -1},
	90007: {Schema: "public", Name: "vector", Kind: 'c', BaseMod: -1},
	90008: {Schema: "public", Name: "citext", Kind: 'b', BaseMod: -1},
	90009: {Schema: "public", Name: "_citext", Kind: 'b', Elem: 90008, Delim: ',', BaseMod: -1},
	90010: {Schema: "public", Name: "mood", Kind: 'e', BaseMod: -1},
	90020: {Schema: "public", Name: "amt", Kind: 'd', Base: oidNumeric, BaseMod: numericMod(8, 3)},
	90021: {Schema: "app", Name: "Amt 2", Kind: 'd', Base: 90020, BaseMod: -1},
	90022: {Schema: "public", Name: "_amt", Kind: 'b', Elem: 90020, Delim: ',', BaseMod: -1},
	90023: {Schema: "public", Name: "ints", Kind: 'd', Base: 1007, BaseMod: -1},
	90024: {Schema: "public", Name: "_ints", Kind: 'b', Elem: 90023, Delim: ',', BaseMod: -1},
	90030: {Schema: "public", Name: "loop", Kind: 'd', Base: 90030, BaseMod: -1},
}

func userColumn(oid uint32, typmod int32) Type {
	return Resolve(Column{TypeOID: oid, TypeMod: typmod}, userTypes, Options{})
}

func TestArrayOfText(t *testing.T) {
	typ := builtinColumn(1009, -1)
	checkAvro(t, typ, "text[]", `{"type":"array","items":["null","string"]}`)
	checkFixtures(t, typ, []fixture{
		{Text: "{}", Hex: "00"},
		{Text: `{""}`, Hex: "02 02 00 00"},
		{Text: "{NULL}", Hex: "02 00 00"},
		{Text: `{"NULL"}`, Hex: "02 02 08 4e 55 4c 4c 00"},
		{
			Text: `{"a,b","q\"x",NULL,"back\\slash"," sp ","{}"}`,
			Hex: "0c 02 06 61 2c 62  02 06 71 22 78  00  02 14 62 61 63 6b 5c 73 6c 61 73 68" +
				"02 08 20 73 70 20  02 04 7b 7d  00",
		},
		{Text: "{é}", Hex: "02 02 04 c3 a9 00"},
		// Another shape than one dimension from 1 on.
		{Text: "{{a,b},{c,NULL}}"},
		{Text: "[0:1]={a,b}"},
		{Text: "[-1:0][2:3]={{a,b},{c,d}}"},
		// An element that is not UTF-8 takes the whole array with it.
		{Text: "{a,\xe9}"},
		{Text: ""},
		{Text: "{"},
		{Text: "}"},
		{Text: "{a"},
		{Text: "{a,}"},
		{Text: "{,a}"},
		{Text: `{"a}`},
		{Text: `{"a\"}`},
		{Text: `{"a"b}`},
		{Text: "{a}b"},
		{Text: "{a}}"},
		{Text: `{a"b"}`},
		{Text: `{a\b}`},
		{Text: "a,b"},
		{Text: `{"\`},
		{Text: "{a,b"},
	})
}

func TestArraysOfOtherTypes(t *testing.T) {
	ints := builtinColumn(1007, -1)
	checkAvro(t, ints, "integer[]", `{"type":"array","items":["null","int"]}`)
	checkFixtures(t, ints, []fixture{
		{Text: "{1,NULL,3}", Hex: "06 02 02 00 02 06 00"},
		{Text: "{1,x}"},
		{Text: "{2147483648}"},
		{Text: "{{1,2},{NULL,4}}"},
		{Text: "[0:2]={7,8,9}"},
	})

	boxes := builtinColumn(1020, -1)
	checkAvro(t, boxes, "box[]", `{"type":"array","items":["null","string"]}`)
	checkFixtures(t, boxes, []fixture{
		{
			Text: "{(3,4),(1,2);(7,8),(5,6)}",
			Hex: "04 02 16 28 33 2c 34 29 2c 28 31 2c 32 29" +
				"02 16 28 37 2c 38 29 2c 28 35 2c 36 29 00",
		},
	})

	checkFixtures(t, builtinColumn(1001, -1), []fixture{
		{Text: `{"\\x00","\\xff22"}`, Hex: "04 02 02 00 02 04 ff 22 00"},
	})
	checkFixtures(t, builtinColumn(3807, -1), []fixture{
		{
			Text: `{"{\"k\": 1}","null",NULL}`,
			Hex:  "06 02 10 7b 22 6b 22 3a 20 31 7d 02 08 6e 75 6c 6c 00 00",
		},
		{Text: `{null}`, Hex: "02 02 08 6e 75 6c 6c 00"},
	})

	numerics := builtinColumn(1231, numericMod(10, 2))
	checkAvro(t, numerics, "numeric(10,2)[]", `{"type":"array","items":["null",`+
		`{"type":"bytes","logicalType":"decimal","precision":10,"scale":2}]}`)
	checkFixtures(t, numerics, []fixture{
		{Text: "{1.50,NULL}", Hex: "04 02 04 00 96 00 00"}, {Text: "{1.50,NaN}"},
	})
	checkFixtures(t, builtinColumn(1182, -1), []fixture{
		{Text: "{1970-01-02,NULL}", Hex: "04 02 02 00 00"}, {Text: "{1970-01-02,infinity}"},
	})
	timestamps := builtinColumn(1115, -1)
	checkFixtures(t, timestamps, []fixture{{Text: `{"1970-01-01 00:00:00"}`, Hex: "02 02 00 00"}})

	citexts := userColumn(90009, -1)
	checkAvro(t, citexts, "citext[]", `{"type":"array","items":["null","string"]}`)
	checkFixtures(t, citexts, []fixture{{Text: "{Ab,NULL}", Hex: "04 02 04 41 62 00 00"}})
	checkFixtures(t, userColumn(90006, -1), []fixture{
		{Text: "{0101:02}", Hex: "04 02 04 01 01 02 02 02 00"},
	})
}

func TestHstore(t *testing.T) {
	typ := userColumn(90001, -1)
	checkAvro(t, typ, "hstore", `{"type":"map","values":["null","string"]}`)
	checkFixtures(t, typ, []fixture{
		{Text: "", Hex: "00"},
		{Text: `"a"=>"1"`, Hex: "02 02 61 02 02 31 00"},
		{
			Text: `"a"=>"1", "b"=>NULL, "c d"=>"x\"y"`,
			Hex:  "06 02 61 02 02 31  02 62 00  06 63 20 64 02 06 78 22 79  00",
		},
		{Text: `"NULL"=>"NULL"`, Hex: "02 08 4e 55 4c 4c 02 08 4e 55 4c 4c 00"},
		{Text: `""=>""`, Hex: "02 00 02 00 00"},
		{Text: `"\\"=>"é"`, Hex: "02 02 5c 02 04 c3 a9 00"},
		{Text: `a=>1`},
		{Text: `"a"`},
		{Text: `"a"=>`},
		{Text: `"a"=>"1`},
		{Text: `"a"=>"1",`},
		{Text: `"a"=>"1", `},
		{Text: `"a"=>"1","b"=>"2"`},
		{Text: `"a"=>null`},
		{Text: `"a"=>NULLx`},
		{Text: "\"\xe9\"=>NULL"},
		{Text: `"a\`},
	})
	checkFixtures(t, userColumn(90002, -1), []fixture{
		{Text: `{"\"a\\\\\"=>\"b\"",NULL}`, Hex: "04 02 02 04 61 5c 02 02 62 00 00 00"},
	})
}

func TestVector(t *testing.T) {
	typ := userColumn(90003, 3)
	checkAvro(t, typ, "vectors.vector(3)", `{"type":"array","items":"float"}`)
	checkAvro(t, userColumn(90004, -1), "halfvec", `{"type":"array","items":"float"}`)
	checkFixtures(t, typ, []fixture{
		{Text: "[1,2.5,-3e-07]", Hex: "06 00 00 80 3f 00 00 20 40 b0 0f a1 b4 00"},
		{Text: "[]", Hex: "00"},
		{Text: ""},
		{Text: "["},
		{Text: "[1"},
		{Text: "[1,]"},
		{Text: "[,1]"},
		{Text: "{1}"},
		{Text: "[1,x]"},
	})
	checkAvro(t, userColumn(90007, -1), "vector", `"string"`) // a table's row type of that name
}

func TestGeometry(t *testing.T) {
	typ := userColumn(90005, -1)
	checkAvro(t, typ, "geometry", `"bytes"`)
	checkFixtures(t, typ, []fixture{
		{
			Text: "0101000020E6100000000000000000F03F0000000000000040",
			Hex:  "32 0101000020E6100000000000000000F03F0000000000000040",
		},
		{Text: ""},
		{Text: "010"},
		{Text: "POINT(1 2)"},
	})
}

func TestDomain(t *testing.T) {
	const amt = `{"type":"bytes","logicalType":"decimal","precision":8,"scale":3}`
	checkAvro(t, userColumn(90020, -1), "amt", amt)
	checkAvro(t, userColumn(90021, -1), `app."Amt 2"`, amt)
	checkFixtures(t, userColumn(90021, -1), []fixture{{Text: "1.500", Hex: "04 05 dc"}})
	checkAvro(t, userColumn(90022, -1), "amt[]", `{"type":"array","items":["null",`+amt+`]}`)
	checkFixtures(t, userColumn(90022, -1), []fixture{
		{Text: "{1.500,NULL}", Hex: "04 02 04 05 dc 00 00"},
	})
	checkAvro(t, userColumn(90023, -1), "ints", `{"type":"array","items":["null","int"]}`)
	checkAvro(t, userColumn(90024, -1), "ints[]",
		`{"type":"array","items":["null",{"type":"array","items":["null","int"]}]}`)
	checkFixtures(t, userColumn(90024, -1), []fixture{
		{Text: `{"{1,NULL}","{}"}`, Hex: "04 02 04 02 02 00 00 02 00 00"},
	})
}

func TestTypesWithoutACloserAvroType(t *testing.T) {
	checkAvro(t, userColumn(90008, -1), "citext", `"string"`)
	checkAvro(t, userColumn(90010, -1), "mood", `"string"`)
	checkAvro(t, userColumn(99999, -1), "unknown", `"string"`)
	checkAvro(t, builtinColumn(99999, -1), "unknown", `"string"`)
	if typ := userColumn(90030, -1); !strings.Contains(avroJSON(typ), "string") {
		t.Errorf("a domain over itself is %v", typ)
	}
}

func TestTextTypeKeepsTheName(t *testing.T) {
	typ := TextType(Column{TypeOID: oidTime, TypeMod: 3}, nil)
	checkAvro(t, typ, "time(3) without time zone", `"string"`)
	checkFixtures(t, typ, []fixture{{Text: "24:00:00", Hex: "10 32 34 3a 30 30 3a 30 30"}})
}

func TestTypeNamesHaveTheirTypmod(t *testing.T) {
	for _, c := range []struct {
		oid    uint32
		typmod int32
		want   string
	}{
		{oidVarchar, 24, "character varying(20)"},
		{oidVarchar, -1, "character varying"},
		{oidBPChar, 9, "character(5)"},
		{oidBPChar, -1, "bpchar"},
		{oidBit, 3, "bit(3)"},
		{oidBit, -1, `"bit"`},
		{oidVarbit, 5, "bit varying(5)"},
		{oidTimestamp, 3, "timestamp(3) without time zone"},
		{oidTimestampTZ, 0, "timestamp(0) with time zone"},
		{oidTime, 6, "time(6) without time zone"},
		{oidTimeTZ, 2, "time(2) with time zone"},
		{oidInterval, 0x7fff<<16 | 3, "interval(3)"},
		{oidInterval, 6<<16 | 0xffff, "interval year to month"},
		{oidInterval, 0x1c08<<16 | 2, "interval day to second(2)"},
		{oidInterval, 0x1000<<16 | 0xffff, "interval second"},
		{1015, 24, "character varying(20)[]"},
		{1231, -1, "numeric[]"},
	} {
		if got := builtinColumn(c.oid, c.typmod).PGName; got != c.want {
			t.Errorf("type %d, typmod %d: %q, want %q", c.oid, c.typmod, got, c.want)
		}
	}
}
