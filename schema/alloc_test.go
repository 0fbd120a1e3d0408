package schema

import "testing"

// allocationTexts are a text of each scalar type; numerics of every length.
var allocationTexts = []struct {
	oid    uint32
	typmod int32
	text   string
}{
	{oidBool, -1, "t"},
	{oidInt2, -1, "-32768"},
	{oidInt4, -1, "2147483647"},
	{oidInt8, -1, "-9223372036854775808"},
	{oidOID, -1, "4294967295"},
	{oidFloat4, -1, "3.4028235e+38"},
	{oidFloat8, -1, "-1.7976931348623157e+308"},
	{oidFloat8, -1, "-Infinity"},
	{oidNumeric, numericMod(10, 2), "99999999.99"},
	{oidNumeric, numericMod(38, 10), "-9999999999999999999999999999.9999999999"},
	{oidNumeric, -1, "12345678901234567890.123456789"},
	{oidMoney, -1, "-$92,233,720,368,547,758.08"},
	{25, -1, "a text"},
	{oidUUID, -1, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"},
	{oidBytea, -1, `\xdeadbeef`},
	{oidDate, -1, "2024-03-01"},
	{oidTime, -1, "23:59:59.999999"},
	{oidTimestamp, -1, "2024-03-01 01:02:03.000004"},
	{oidTimestampTZ, -1, "2024-03-01 01:02:03.000004+00"},
	{oidInterval, -1, "P1Y2M3DT4H5M6S"},
	{1007, -1, "{1,2,NULL}"},
	{1009, -1, `{a,"b c",NULL}`},
	{1009, -1, `{"q\"x"}`},
}

// A value that fits costs no allocation, and neither does one that does not: a column full of
// infinities is as fast as another.
func TestAppendDoesNotAllocate(t *testing.T) {
	dst := make([]byte, 0, 1024)
	for _, c := range allocationTexts {
		typ, text := builtinColumn(c.oid, c.typmod), []byte(c.text)
		for _, text := range [][]byte{text, []byte("infinity"), []byte("NaN")} {
			n := testing.AllocsPerRun(100, func() { _, _ = typ.Append(dst, text) })
			if n > 0 {
				t.Errorf("%s %q: %v allocations", typ.PGName, text, n)
			}
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	dst := make([]byte, 0, 1024)
	for _, c := range allocationTexts {
		typ, text := builtinColumn(c.oid, c.typmod), []byte(c.text)
		b.Run(typ.PGName+"/"+c.text, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = typ.Append(dst, text)
			}
		})
	}
}
