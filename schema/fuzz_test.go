package schema

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// fuzzType holds for any text whatever that what a type makes of it is either nothing at all or a
// body that another library reads to its end, and that the text is left as it was.
func fuzzType(f *testing.F, typ Type, seeds ...string) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	codec := codecOf(f, avroJSON(typ))
	prefix := []byte("before")
	f.Fuzz(func(t *testing.T, text []byte) {
		kept := bytes.Clone(text)
		got, err := typ.Append(bytes.Clone(prefix), text)
		if !bytes.Equal(text, kept) {
			t.Fatalf("the text was changed to %q", text)
		}
		if !bytes.HasPrefix(got, prefix) {
			t.Fatalf("what was in dst is gone")
		}
		if err != nil {
			if !errors.Is(err, ErrUnrepresentable) || len(got) != len(prefix) {
				t.Fatalf("%v with %d bytes", err, len(got)-len(prefix))
			}
			return
		}
		_, rest, err := codec.NativeFromBinary(got[len(prefix):])
		if err != nil && strings.Contains(err.Error(), "duplicate key") {
			return // an hstore has each key once: no server prints this
		}
		if err != nil || len(rest) != 0 {
			t.Fatalf("% x: %d bytes left, %v", got[len(prefix):], len(rest), err)
		}
	})
}

// plain is a type without its logical type: other libraries have narrower ranges of time.
func plain(typ Type, avro string) Type { return rawType(typ.PGName, avro, typ.Append) }

func FuzzInteger(f *testing.F) {
	fuzzType(f, builtinColumn(oidInt8, -1), "0", "-9223372036854775808", "18446744073709551616")
}

func FuzzDouble(f *testing.F) {
	fuzzType(f, builtinColumn(oidFloat8, -1), "1e-7", "-Infinity", "NaN", "0x1p-2", "-0", "1_0")
}

func FuzzNumeric(f *testing.F) {
	fuzzType(f, builtinColumn(oidNumeric, numericMod(60, 20)), "-1.50", "NaN", "0.1", "1e5",
		"18446744073709551616.00000000000000000001")
}

func FuzzMoney(f *testing.F) {
	typ := Resolve(Column{TypeOID: oidMoney, TypeMod: -1}, nil, Options{MoneyDigits: 2})
	fuzzType(f, typ, "$1,234.56", "-$92,233,720,368,547,758.08", "$0.0")
}

func FuzzText(f *testing.F) { fuzzType(f, builtinColumn(25, -1), "é", "\xe9") }

func FuzzUUID(f *testing.F) {
	fuzzType(f, plain(builtinColumn(oidUUID, -1), `"string"`), "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")
}

func FuzzBytea(f *testing.F) { fuzzType(f, builtinColumn(oidBytea, -1), `\x`, `\xdead`, `\xd`) }

func FuzzDate(f *testing.F) {
	fuzzType(f, plain(builtinColumn(oidDate, -1), `"int"`), "2024-02-29", "0044-03-15 BC",
		"5874897-12-31", "infinity")
}

func FuzzTime(f *testing.F) {
	fuzzType(f, plain(builtinColumn(oidTime, -1), `"long"`), "23:59:59.999999", "24:00:00",
		"00:00:00.")
}

func FuzzTimestamp(f *testing.F) {
	fuzzType(f, plain(builtinColumn(oidTimestamp, -1), `"long"`), "2024-02-29 01:02:03.5",
		"294276-12-31 23:59:59.999999", "0044-03-15 12:00:00 BC")
}

func FuzzTimestamptz(f *testing.F) {
	fuzzType(f, plain(builtinColumn(oidTimestampTZ, -1), `"long"`), "2024-02-29 01:02:03+00",
		"0044-03-15 12:00:00-04:56:02 BC")
}

func FuzzArray(f *testing.F) {
	fuzzType(f, builtinColumn(1009, -1), "{}", `{a,"b\"c",NULL,"NULL"}`, "{{a}}",
		"[0:1]={a,b}", `{"\`)
}

func FuzzArrayOfArrays(f *testing.F) {
	fuzzType(f, userColumn(90024, -1), `{"{1,NULL}","{}"}`, `{"{\"1\"}"}`)
}

func FuzzHstore(f *testing.F) {
	fuzzType(f, userColumn(90001, -1), "", `"a"=>"1", "b"=>NULL`, `"a\`, `"a"=>`)
}

func FuzzVector(f *testing.F) { fuzzType(f, userColumn(90003, -1), "[1,2.5]", "[]", "[,]") }

func FuzzGeometry(f *testing.F) { fuzzType(f, userColumn(90005, -1), "0101", "010") }

// FuzzFieldName holds that an escaped name is legal and reads back as one name only.
func FuzzFieldName(f *testing.F) {
	f.Add("a", "_x0061_")
	f.Add("_", "_x005F_")
	f.Add("\xe9", "\ufffd")
	f.Fuzz(func(t *testing.T, a, b string) {
		if a != b && FieldName(a) == FieldName(b) {
			t.Fatalf("%q and %q both become %q", a, b, FieldName(a))
		}
		for i, c := range FieldName(a) {
			if !avroLegal(c, i) {
				t.Fatalf("%q becomes %q", a, FieldName(a))
			}
		}
	})
}
