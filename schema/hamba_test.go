package schema

import (
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hamba/avro/v2"
)

// A reader that takes the logical types at their word gets the values.
func TestAnotherLibraryReadsTheLogicalTypes(t *testing.T) {
	for _, c := range []struct {
		typ  Type
		text string
		want any
	}{
		{builtinColumn(oidNumeric, numericMod(10, 2)), "-1.29", big.NewRat(-129, 100)},
		{
			builtinColumn(oidNumeric, numericMod(38, 3)), "-18446744073709551616.125",
			new(big.Rat).SetFrac(bigInt("-18446744073709551616125"), big.NewInt(1000)),
		},
		{builtinColumn(oidDate, -1), "2024-03-01", time.Date(2024, 3, 1, 0, 0, 0, 0, time.UTC)},
		{
			builtinColumn(oidTime, -1), "04:05:06.000007",
			4*time.Hour + 5*time.Minute + 6*time.Second + 7*time.Microsecond,
		},
		{
			builtinColumn(oidTimestampTZ, -1), "2024-03-10 07:30:00.25+00",
			time.Date(2024, 3, 10, 7, 30, 0, 250_000_000, time.UTC),
		},
		{
			builtinColumn(oidUUID, -1), "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
			"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
		},
		{builtinColumn(oidInt4, -1), "-5", -5},
		{builtinColumn(oidInt8, -1), "-5", int64(-5)},
		{builtinColumn(oidFloat4, -1), "0.1", float32(0.1)},
		{builtinColumn(oidBytea, -1), `\xdead`, []byte{0xde, 0xad}},
		{
			userColumn(90001, -1), `"a"=>"1", "b"=>NULL`,
			map[string]any{"a": "1", "b": nil},
		},
		{userColumn(90003, -1), "[1,-2.5]", []any{float32(1), float32(-2.5)}},
		{builtinColumn(1007, -1), "{1,NULL}", []any{1, nil}},
	} {
		parsed, err := avro.Parse(avroJSON(c.typ))
		if err != nil {
			t.Errorf("%s: %v", c.typ.PGName, err)
			continue
		}
		body, err := c.typ.Append(nil, []byte(c.text))
		if err != nil {
			t.Errorf("%s %q: %v", c.typ.PGName, c.text, err)
			continue
		}
		var got any
		if err := avro.Unmarshal(parsed, body, &got); err != nil {
			t.Errorf("%s %q: %v", c.typ.PGName, c.text, err)
			continue
		}
		rats := cmp.Comparer(func(a, b *big.Rat) bool { return a.Cmp(b) == 0 })
		if diff := cmp.Diff(c.want, got, rats); diff != "" {
			t.Errorf("%s %q: -want +got\n%s", c.typ.PGName, c.text, diff)
		}
	}
}

func bigInt(digits string) *big.Int {
	n, _ := new(big.Int).SetString(digits, 10)
	return n
}
