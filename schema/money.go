package schema

// money is a 64-bit integer in the smallest unit of the database's currency. Its text depends on
// lc_monetary, which is therefore pinned to C: there cash_out prints "$" with the stored integer
// as if it had two fractional digits, grouped by commas, "-$92,233,720,368,547,758.08" being the
// smallest. How many fractional digits it really has is the database's own lc_monetary's matter,
// asked once a session (catalog.MoneyDigits); it is the scale here, and the stored integer is the
// unscaled value whatever the scale.
func moneyType(name string, fractionDigits int) Type {
	return decimalType(name, moneyPrecision, min(max(fractionDigits, 0), moneyPrecision), appendMoney)
}

// moneyPrecision is the number of digits of the largest 64-bit integer.
const moneyPrecision = 19

func appendMoney(dst, text []byte) ([]byte, error) {
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		text = text[1:]
	}
	const point = len(".00")
	if len(text) < len("$0.00") || text[0] != '$' || text[len(text)-point] != '.' {
		return dst, ErrUnrepresentable
	}
	stored, digits := uint64(0), 0
	for i, c := range text[1:] {
		switch {
		case c == ',' && i > 0, i == len(text)-1-point:
			continue
		case c < '0' || c > '9' || digits == moneyPrecision:
			return dst, ErrUnrepresentable
		}
		stored = stored*10 + uint64(c-'0') // 19 digits fit
		digits++
	}
	if limit := uint64(1) << 63; stored > limit || stored == limit && !negative {
		return dst, ErrUnrepresentable
	}
	return appendUnscaled(dst, stored, negative), nil
}
