package schema

import "testing"

func TestDate(t *testing.T) {
	typ := builtinColumn(oidDate, -1)
	checkAvro(t, typ, "date", `{"type":"int","logicalType":"date"}`)
	checkFixtures(t, typ, []fixture{
		{Text: "1970-01-01", Hex: "00"},
		{Text: "1969-12-31", Hex: "01"},
		{Text: "2000-02-29", Hex: "90 ac 01"},          // 11 016
		{Text: "2024-03-01", Hex: "8e b5 02"},          // 19 783
		{Text: "0001-01-01", Hex: "f3 e4 57"},          // -719 162
		{Text: "0001-12-31 BC", Hex: "f5 e4 57"},       // the day before
		{Text: "0044-03-15 BC", Hex: "ef de 59"},       // -735 160
		{Text: "4714-11-24 BC", Hex: "97 f6 a9 02"},    // Julian day 0, the first that there is
		{Text: "5874897-12-31", Hex: "b2 87 d6 fd 0f"}, // 2 145 042 905, the last
		{Text: "infinity"},
		{Text: "-infinity"},
		{Text: ""},
		{Text: "2023-02-29"},
		{Text: "1900-02-29"},
		{Text: "2024-13-01"},
		{Text: "2024-00-01"},
		{Text: "2024-04-31"},
		{Text: "2024-01-00"},
		{Text: "0000-01-01"},
		{Text: "24-01-01"},
		{Text: "2024-1-1"},
		{Text: "01.03.2024"},
		{Text: "2024-03-01 AD"},
		{Text: "99999999-01-01"},
		{Text: "2024-03-01 00:00:00"},
		{Text: " BC"},
		{Text: "-2024-03-01"},
	})
}

func TestTime(t *testing.T) {
	typ := builtinColumn(oidTime, -1)
	checkAvro(t, typ, "time without time zone", `{"type":"long","logicalType":"time-micros"}`)
	checkFixtures(t, typ, []fixture{
		{Text: "00:00:00", Hex: "00"},
		{Text: "00:00:00.000001", Hex: "02"},
		{Text: "00:00:00.5", Hex: "c0 84 3d"},
		{Text: "23:59:59.999999", Hex: "fe ff ba dd 83 05"}, // 86 399 999 999
		{Text: "24:00:00"},
		{Text: ""},
		{Text: "24:00:00.000001"},
		{Text: "24:00:01"},
		{Text: "25:00:00"},
		{Text: "00:60:00"},
		{Text: "00:00:60"},
		{Text: "00:00"},
		{Text: "00:00:00."},
		{Text: "00:00:00.1234567"},
		{Text: "00:00:00+00"},
		{Text: "0:00:00"},
	})
}

func TestTimestamp(t *testing.T) {
	typ := builtinColumn(oidTimestamp, -1)
	checkAvro(t, typ, "timestamp without time zone",
		`{"type":"long","logicalType":"local-timestamp-micros"}`)
	checkFixtures(t, typ, []fixture{
		{Text: "1970-01-01 00:00:00", Hex: "00"},
		{Text: "1969-12-31 23:59:59.999999", Hex: "01"},
		{Text: "2000-01-01 00:00:00", Hex: "80 80 bf b3 a7 c0 ae 03"}, // 946 684 800 000 000
		{Text: "1970-01-01 00:00:00.000001", Hex: "02"},
		// The last microsecond that 64 bits hold, and the first that they do not.
		{Text: "294247-01-10 04:00:54.775807", Hex: "fe ff ff ff ff ff ff ff ff 01"},
		{Text: "294247-01-10 04:00:54.775808"},
		{Text: "294276-12-31 23:59:59.999999"},
		{Text: "infinity"},
		{Text: "-infinity"},
		{Text: ""},
		{Text: "2000-01-01"},
		{Text: "2000-01-01 24:00:00"},
		{Text: "2000-01-01T00:00:00"},
		{Text: "2000-01-01 00:00:00+00"},
		{Text: "15.03.0044 12:00:00 BC"},
		{Text: "9999999-01-01 00:00:00 BC"},
		{Text: "9999999-12-31 00:00:00"},
	})
}

func TestTimestamptz(t *testing.T) {
	typ := builtinColumn(oidTimestampTZ, -1)
	checkAvro(t, typ, "timestamp with time zone",
		`{"type":"long","logicalType":"timestamp-micros"}`)
	checkFixtures(t, typ, []fixture{
		{Text: "1970-01-01 00:00:00+00", Hex: "00"},
		{Text: "1970-01-01 01:00:00+01", Hex: "00"},
		{Text: "1969-12-31 18:30:00-05:30", Hex: "00"},
		{Text: "1969-12-31 19:03:58-04:56:02", Hex: "00"},
		{Text: "2000-01-01 00:00:00+00", Hex: "80 80 bf b3 a7 c0 ae 03"},
		{Text: "infinity"},
		{Text: "-infinity"},
		{Text: "1970-01-01 00:00:00"},
		{Text: "1970-01-01 00:00:00+"},
		{Text: "1970-01-01 00:00:00+0"},
		{Text: "1970-01-01 00:00:00+00:"},
		{Text: "1970-01-01 00:00:00+00:00:00:00"},
		{Text: "1970-01-01 00:00:00 UTC"},
		{Text: "294277-01-01 00:00:00+00"},
	})
}
