package schema

import "math"

// The date and time types print, under DateStyle ISO and TimeZone UTC (date_out, time_out,
// timestamp_out, timestamptz_out):
//
//	date         YYYY-MM-DD[ BC]
//	time         HH:MM:SS[.ffffff]
//	timestamp    YYYY-MM-DD HH:MM:SS[.ffffff][ BC]
//	timestamptz  YYYY-MM-DD HH:MM:SS[.ffffff]+00[ BC]
//
// with four or more digits of the year, one to six of the fraction, and "infinity" and
// "-infinity" for all but time, which Avro's counts since 1970 have no value for. Neither has
// time-micros one for 24:00:00, nor have 64-bit microseconds room for what is later than
// 294247-01-10 04:00:54.775807, where PostgreSQL goes on to the end of 294276.
//
// timetz, whose offset is a part of the value, is text.

func dateType(name string) Type {
	return rawType(name, `{"type":"int","logicalType":"date"}`, appendDate)
}

func timeType(name string) Type {
	return rawType(name, `{"type":"long","logicalType":"time-micros"}`, appendTime)
}

func timestampType(name string) Type {
	return rawType(name, `{"type":"long","logicalType":"local-timestamp-micros"}`, appendTimestamp)
}

func timestamptzType(name string) Type {
	return rawType(name, `{"type":"long","logicalType":"timestamp-micros"}`, appendTimestamptz)
}

const (
	daySeconds   = 24 * 60 * 60
	secondMicros = 1_000_000
)

func appendDate(dst, text []byte) ([]byte, error) {
	text, bc := cutBC(text)
	days, rest, ok := parseDate(text, bc)
	if !ok || len(rest) != 0 || days < math.MinInt32 || days > math.MaxInt32 {
		return dst, ErrUnrepresentable
	}
	return appendLong(dst, days), nil
}

func appendTime(dst, text []byte) ([]byte, error) {
	seconds, micros, rest, ok := parseClock(text)
	if !ok || len(rest) != 0 || seconds == daySeconds {
		return dst, ErrUnrepresentable
	}
	return appendLong(dst, seconds*secondMicros+micros), nil
}

func appendTimestamp(dst, text []byte) ([]byte, error) {
	seconds, micros, rest, ok := parseTimestamp(text)
	if !ok || len(rest) != 0 {
		return dst, ErrUnrepresentable
	}
	return appendMicros(dst, seconds, micros)
}

func appendTimestamptz(dst, text []byte) ([]byte, error) {
	seconds, micros, rest, ok := parseTimestamp(text)
	if !ok {
		return dst, ErrUnrepresentable
	}
	offset, ok := parseOffset(rest)
	if !ok {
		return dst, ErrUnrepresentable
	}
	return appendMicros(dst, seconds-offset, micros)
}

// appendMicros appends seconds and microseconds since 1970 as one long. micros is not negative.
func appendMicros(dst []byte, seconds, micros int64) ([]byte, error) {
	const last = math.MaxInt64 / secondMicros
	if seconds < -last || seconds > last ||
		seconds == last && micros > math.MaxInt64%secondMicros {
		return dst, ErrUnrepresentable
	}
	return appendLong(dst, seconds*secondMicros+micros), nil
}

// cutBC cuts " BC" off the end.
func cutBC(text []byte) (rest []byte, bc bool) {
	const suffix = " BC"
	if n := len(text) - len(suffix); n >= 0 && string(text[n:]) == suffix {
		return text[:n], true
	}
	return text, false
}

// parseTimestamp reads a date, a space and a time of day, and gives what is behind them, without
// " BC". 24:00:00 is no time of day here: PostgreSQL prints the next day's 00:00:00.
func parseTimestamp(text []byte) (seconds, micros int64, rest []byte, ok bool) {
	text, bc := cutBC(text)
	days, text, ok := parseDate(text, bc)
	if !ok || len(text) == 0 || text[0] != ' ' {
		return 0, 0, nil, false
	}
	clock, micros, rest, ok := parseClock(text[1:])
	if !ok || clock == daySeconds {
		return 0, 0, nil, false
	}
	return days*daySeconds + clock, micros, rest, true
}

// parseDate reads YYYY-MM-DD as days since 1970-01-01.
func parseDate(text []byte, bc bool) (days int64, rest []byte, ok bool) {
	const yearDigits = 7 // dates end in 5874897
	year, n := int64(0), 0
	for n < len(text) && n < yearDigits && text[n] >= '0' && text[n] <= '9' {
		year = year*10 + int64(text[n]-'0')
		n++
	}
	const tail = len("-MM-DD")
	if n < 4 || len(text) < n+tail || text[n] != '-' || text[n+3] != '-' || year == 0 {
		return 0, nil, false
	}
	month, okMonth := twoDigits(text[n+1:])
	day, okDay := twoDigits(text[n+4:])
	if bc {
		year = 1 - year // 1 BC is the year 0
	}
	if !okMonth || !okDay || month < 1 || month > 12 || day < 1 || day > monthDays(year, month) {
		return 0, nil, false
	}
	return daysSince1970(year, month, day), text[n+tail:], true
}

// daysSince1970 counts the days of the proleptic Gregorian calendar: in years that begin in
// March, so that the leap day is the last one, by eras of 400 years, which all have 146 097 days.
func daysSince1970(year, month, day int64) int64 {
	const eraYears, eraDays = 400, 146_097
	const daysTo1970 = 719_468 // from 0000-03-01
	if month <= 2 {
		year--
	}
	era := year / eraYears
	if year < 0 {
		era = (year - (eraYears - 1)) / eraYears
	}
	yearOfEra := year - era*eraYears
	dayOfYear := (153*((month+9)%12)+2)/5 + day - 1
	dayOfEra := yearOfEra*365 + yearOfEra/4 - yearOfEra/100 + dayOfYear
	return era*eraDays + dayOfEra - daysTo1970
}

func monthDays(year, month int64) int64 {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// parseClock reads HH:MM:SS[.ffffff], 24:00:00 included.
func parseClock(text []byte) (seconds, micros int64, rest []byte, ok bool) {
	const width = len("HH:MM:SS")
	if len(text) < width || text[2] != ':' || text[5] != ':' {
		return 0, 0, nil, false
	}
	hour, okHour := twoDigits(text)
	minute, okMinute := twoDigits(text[3:])
	second, okSecond := twoDigits(text[6:])
	if !okHour || !okMinute || !okSecond || minute > 59 || second > 59 {
		return 0, 0, nil, false
	}
	seconds, rest = hour*3600+minute*60+second, text[width:]
	if len(rest) > 0 && rest[0] == '.' {
		if micros, rest, ok = parseFraction(rest[1:]); !ok {
			return 0, 0, nil, false
		}
	}
	if seconds > daySeconds || seconds == daySeconds && micros > 0 {
		return 0, 0, nil, false
	}
	return seconds, micros, rest, true
}

// parseFraction reads one to six digits behind the second's point as microseconds.
func parseFraction(text []byte) (micros int64, rest []byte, ok bool) {
	n, unit := 0, int64(secondMicros)
	for n < len(text) && text[n] >= '0' && text[n] <= '9' {
		if unit == 1 {
			return 0, nil, false
		}
		unit /= 10
		micros += int64(text[n]-'0') * unit
		n++
	}
	return micros, text[n:], n > 0
}

// parseOffset reads +HH[:MM[:SS]] or -HH[:MM[:SS]], the whole text, as seconds east.
func parseOffset(text []byte) (seconds int64, ok bool) {
	if len(text) < len("+HH") || len(text) > len("+HH:MM:SS") || text[0] != '+' && text[0] != '-' {
		return 0, false
	}
	sign := int64(1)
	if text[0] == '-' {
		sign = -1
	}
	text = text[1:]
	for unit := int64(3600); ; unit /= 60 {
		n, ok := twoDigits(text)
		if !ok {
			return 0, false
		}
		seconds += n * unit
		if text = text[2:]; len(text) == 0 {
			return sign * seconds, true
		}
		if text[0] != ':' {
			return 0, false
		}
		text = text[1:]
	}
}

func twoDigits(text []byte) (int64, bool) {
	if len(text) < 2 || text[0] < '0' || text[0] > '9' || text[1] < '0' || text[1] > '9' {
		return 0, false
	}
	return int64(text[0]-'0')*10 + int64(text[1]-'0'), true
}
