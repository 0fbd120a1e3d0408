package schema

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/linkedin/goavro/v2"
	"pgregory.net/rapid"
)

// Each property draws a value, prints it as PostgreSQL does (by another way than the one that reads
// it), and holds the bytes against those that another Avro library makes of the value.

func codecOf(t fataler, avro string) *goavro.Codec {
	codec, err := goavro.NewCodec(avro)
	if err != nil {
		t.Fatalf("%s: %v", avro, err)
	}
	return codec
}

type fataler interface {
	Fatalf(format string, args ...any)
}

// sameBytes appends text and compares with what codec makes of native.
func sameBytes(t fataler, typ Type, codec *goavro.Codec, text string, native any) {
	want, err := codec.BinaryFromNative(nil, native)
	if err != nil {
		t.Fatalf("%s %q: the oracle refuses: %v", typ.PGName, text, err)
	}
	got, err := typ.Append(nil, []byte(text))
	if err != nil {
		t.Fatalf("%s %q: %v", typ.PGName, text, err)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("%s %q: got % x, want % x", typ.PGName, text, got, want)
	}
}

func TestIntegersMatchTheOracle(t *testing.T) {
	long := codecOf(t, `"long"`)
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Int64().Draw(t, "v")
		text := strconv.FormatInt(v, 10)
		sameBytes(t, builtinColumn(oidInt8, -1), long, text, v)
		_, err := appendInteger(nil, []byte(text))
		if fits := v == int64(int32(v)); fits != (err == nil) {
			t.Fatalf("integer %s: %v", text, err)
		}
	})
}

func TestFloatsMatchTheOracle(t *testing.T) {
	double, float := codecOf(t, `"double"`), codecOf(t, `"float"`)
	print := func(v float64, bits int) string {
		switch {
		case math.IsNaN(v):
			return "NaN"
		case math.IsInf(v, 1):
			return "Infinity"
		case math.IsInf(v, -1):
			return "-Infinity"
		}
		return strconv.FormatFloat(v, 'g', -1, bits)
	}
	rapid.Check(t, func(t *rapid.T) {
		v := math.Float64frombits(rapid.Uint64().Draw(t, "bits"))
		if math.IsNaN(v) {
			v = math.NaN() // NaN has one text, so one pattern
		}
		sameBytes(t, builtinColumn(oidFloat8, -1), double, print(v, 64), v)
		f := math.Float32frombits(rapid.Uint32().Draw(t, "bits32"))
		if f != f {
			f = float32(math.NaN())
		}
		sameBytes(t, builtinColumn(oidFloat4, -1), float, print(float64(f), 32), f)
	})
}

func TestNumericsMatchTheOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		precision := rapid.IntRange(1, 90).Draw(t, "precision")
		scale := rapid.IntRange(-20, 100).Draw(t, "scale")
		digits := rapid.IntRange(1, precision).Draw(t, "digits")
		text := rapid.StringOfN(rapid.RuneFrom([]rune("0123456789")), digits, digits, -1).
			Draw(t, "unscaled")
		unscaled, _ := new(big.Int).SetString(text, 10)
		if rapid.Bool().Draw(t, "negative") {
			unscaled.Neg(unscaled)
		}
		// FloatString is how numeric_out prints it: all digits of the scale, no exponent.
		power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(scale, -scale))), nil)
		value := new(big.Rat).SetFrac(unscaled, power)
		if scale < 0 {
			value = new(big.Rat).SetInt(new(big.Int).Mul(unscaled, power))
		}
		typ := builtinColumn(oidNumeric, numericMod(int32(precision), int32(scale)))
		codec := codecOf(t, avroJSON(typ))
		sameBytes(t, typ, codec, value.FloatString(max(scale, 0)), value)
	})
}

func TestMoneyMatchesTheOracle(t *testing.T) {
	typ := Resolve(Column{TypeOID: oidMoney, TypeMod: -1}, nil, Options{MoneyDigits: 2})
	codec := codecOf(t, avroJSON(typ))
	rapid.Check(t, func(t *rapid.T) {
		stored := rapid.Int64().Draw(t, "stored")
		value := big.NewRat(stored, 100)
		whole, fraction, _ := strings.Cut(new(big.Rat).Abs(value).FloatString(2), ".")
		for i := len(whole) - 3; i > 0; i -= 3 {
			whole = whole[:i] + "," + whole[i:]
		}
		text := "$" + whole + "." + fraction
		if stored < 0 {
			text = "-" + text
		}
		sameBytes(t, typ, codec, text, value)
	})
}

func TestBytesMatchTheOracle(t *testing.T) {
	codec := codecOf(t, `"bytes"`)
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOf(rapid.Byte()).Draw(t, "v")
		sameBytes(t, builtinColumn(oidBytea, -1), codec, `\x`+hex.EncodeToString(v), v)
	})
}

func TestDatesMatchTheOracle(t *testing.T) {
	integer, long := codecOf(t, `"int"`), codecOf(t, `"long"`)
	rapid.Check(t, func(t *rapid.T) {
		// time.Time counts years of the Gregorian calendar as PostgreSQL does, 1 BC being 0.
		at := time.Unix(rapid.Int64Range(-210_866_803_200, 9_223_372_036_854).Draw(t, "seconds"), 0).UTC()
		micros := rapid.Int64Range(0, 999_999).Draw(t, "micros")
		if at.Unix() == math.MaxInt64/1_000_000 {
			micros %= 775_808
		}
		year, era := at.Year(), ""
		if year <= 0 {
			year, era = 1-year, " BC"
		}
		date := pad(year, 4) + at.Format("-01-02")
		clock := at.Format("15:04:05")
		if micros > 0 {
			clock += "." + strings.TrimRight(pad(int(micros), 6), "0")
		}
		day := at.Truncate(24 * time.Hour) // rounds to a day since year 1: midnight, down
		if day.After(at) {
			day = day.Add(-24 * time.Hour)
		}
		total := at.Unix()*1_000_000 + micros
		sameBytes(t, builtinColumn(oidDate, -1), integer, date+era, int32(day.Unix()/86_400))
		sameBytes(t, builtinColumn(oidTimestamp, -1), long, date+" "+clock+era, total)
		sameBytes(t, builtinColumn(oidTimestampTZ, -1), long, date+" "+clock+"+00"+era, total)
		ofDay := (at.Unix()-day.Unix())*1_000_000 + micros
		sameBytes(t, builtinColumn(oidTime, -1), long, clock, ofDay)
	})
}

func pad(n, width int) string {
	s := strconv.Itoa(n)
	return strings.Repeat("0", max(width-len(s), 0)) + s
}

// printArray is array_out for one dimension from 1 on.
func printArray(items []*string) string {
	var b strings.Builder
	for i, item := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		switch {
		case item == nil:
			b.WriteString("NULL")
		case *item == "", strings.EqualFold(*item, "NULL"),
			strings.ContainsAny(*item, "\"\\{}, \t\n\r\v\f"):
			b.WriteString(quotedAs(*item))
		default:
			b.WriteString(*item)
		}
	}
	return "{" + b.String() + "}"
}

func quotedAs(s string) string {
	return `"` + strings.NewReplacer(`"`, `\"`, `\`, `\\`).Replace(s) + `"`
}

// awkwardText draws texts of what arrays and hstores have to quote.
var awkwardText = rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{
	"NULL", "null", `"`, `\`, "{", "}", ",", " ", "=>", "a", "é", "", "\n", "'", "=",
}), 0, 6), func(parts []string) string { return strings.Join(parts, "") })

func TestArraysMatchTheOracle(t *testing.T) {
	typ := builtinColumn(1009, -1)
	codec := codecOf(t, avroJSON(typ))
	nested := userColumn(90024, -1)
	nestedCodec := codecOf(t, avroJSON(nested))
	rapid.Check(t, func(t *rapid.T) {
		items := rapid.SliceOfN(rapid.Ptr(awkwardText, true), 0, 200).Draw(t, "items")
		native := make([]any, len(items))
		for i, item := range items {
			if item != nil {
				native[i] = goavro.Union("string", *item)
			}
		}
		sameBytes(t, typ, codec, printArray(items), native)

		// An array of a domain over an array, whose items are arrays' texts.
		numbers := rapid.SliceOfN(rapid.SliceOfN(rapid.Int32(), 0, 3), 0, 4).Draw(t, "numbers")
		texts, outer := make([]*string, len(numbers)), make([]any, len(numbers))
		for i, row := range numbers {
			inner, words := make([]any, len(row)), make([]*string, len(row))
			for j, n := range row {
				word := strconv.Itoa(int(n))
				inner[j], words[j] = goavro.Union("int", n), &word
			}
			text := printArray(words)
			texts[i], outer[i] = &text, goavro.Union("array", inner)
		}
		sameBytes(t, nested, nestedCodec, printArray(texts), outer)
	})
}

func TestHstoresMatchTheOracle(t *testing.T) {
	typ := userColumn(90001, -1)
	codec := codecOf(t, avroJSON(typ))
	rapid.Check(t, func(t *rapid.T) {
		pairs := rapid.MapOfN(awkwardText, rapid.Ptr(awkwardText, true), 0, 20).Draw(t, "pairs")
		want := map[string]any{}
		var words []string
		for key, value := range pairs {
			word := quotedAs(key) + "=>NULL"
			want[key] = nil
			if value != nil {
				word = quotedAs(key) + "=>" + quotedAs(*value)
				want[key] = map[string]any{"string": *value}
			}
			words = append(words, word)
		}
		text := strings.Join(words, ", ")
		body, err := typ.Append(nil, []byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		got, rest, err := codec.NativeFromBinary(body)
		if err != nil || len(rest) != 0 {
			t.Fatalf("%s: %d bytes left, %v", text, len(rest), err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s: -want +got\n%s", text, diff)
		}
	})
}

func TestVectorsMatchTheOracle(t *testing.T) {
	typ := userColumn(90003, -1)
	codec := codecOf(t, avroJSON(typ))
	rapid.Check(t, func(t *rapid.T) {
		items := rapid.SliceOfN(rapid.Float32(), 1, 20).Draw(t, "items")
		native, words := make([]any, len(items)), make([]string, len(items))
		for i, f := range items {
			native[i], words[i] = f, strconv.FormatFloat(float64(f), 'g', -1, 32)
		}
		sameBytes(t, typ, codec, "["+strings.Join(words, ",")+"]", native)
	})
}

func TestEveryAvroTypeIsValidInAField(t *testing.T) {
	check := func(typ Type) {
		if _, ok := typ.Avro.(json.RawMessage); !ok {
			t.Errorf("%s: its Avro type is a %T", typ.PGName, typ.Avro)
		}
		codecOf(t, `{"type":"record","name":"Value","fields":[`+
			`{"name":"f","default":null,"type":["null",`+avroJSON(typ)+`]}]}`)
	}
	for oid, b := range builtins {
		check(builtinColumn(oid, -1))
		check(builtinColumn(b.array, -1))
	}
	for oid := range userTypes {
		check(userColumn(oid, -1))
	}
}
