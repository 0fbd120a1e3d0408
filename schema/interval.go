package schema

import (
	"strconv"
	"strings"
)

// interval is three signed numbers, months, days and microseconds, that do not convert into each
// other. With IntervalStyle iso_8601 it prints each with its own sign
// (P-1Y-2M3DT-4H-5M-6.000007S: -14 months, 3 days, -14706000007 microseconds), which loses
// nothing, so the text is the value; and infinity from PostgreSQL 17 on.
func intervalType(name string) Type { return textType(name) }

// Bits of an interval's typmod: which fields, and how many fractional digits of the second
// (src/include/utils/timestamp.h, datetime.h). A field list that is full is not printed.
const (
	intervalMonth         = 1 << 1
	intervalYear          = 1 << 2
	intervalDay           = 1 << 3
	intervalHour          = 1 << 10
	intervalMinute        = 1 << 11
	intervalSecond        = 1 << 12
	intervalFullRange     = 0x7fff
	intervalFullPrecision = 0xffff
)

// intervalTypmod is what intervaltypmodout prints behind "interval".
func intervalTypmod(typmod int32) string {
	fields, precision := typmod>>16&intervalFullRange, typmod&intervalFullPrecision
	mod := ""
	if fields != intervalFullRange {
		var names []string
		for _, f := range []struct {
			bit  int32
			name string
		}{
			{intervalYear, "year"},
			{intervalMonth, "month"},
			{intervalDay, "day"},
			{intervalHour, "hour"},
			{intervalMinute, "minute"},
			{intervalSecond, "second"},
		} {
			if fields&f.bit != 0 {
				names = append(names, f.name)
			}
		}
		switch len(names) {
		case 0:
		case 1:
			mod = " " + names[0]
		default:
			mod = " " + strings.Join([]string{names[0], names[len(names)-1]}, " to ")
		}
	}
	if precision != intervalFullPrecision {
		mod += "(" + strconv.Itoa(int(precision)) + ")"
	}
	return mod
}
