package check

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// FloatText is the text that PostgreSQL prints for a real (bits 32) or a double precision (bits 64)
// since version 12: the shortest digits that come back as v, with an exponent below 0.0001 and from 6
// and from 15 digits before the point on. Digits half way between v and a neighbour are v to a reader
// that rounds to even, and to Go; the server does not count on such a reader and prints more.
func FloatText(v float64, bits int) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 0):
		return strings.TrimPrefix(strconv.FormatFloat(v, 'g', -1, bits), "+") + "inity"
	}
	text := strconv.FormatFloat(v, 'e', -1, bits)
	mantissa, exponent, _ := strings.Cut(text, "e")
	_, decimals, _ := strings.Cut(mantissa, ".")
	for digits := len(decimals) + 1; halfWay(text, v, bits); digits++ {
		text = strconv.FormatFloat(v, 'e', digits, bits)
	}
	limit := 15
	if bits == 32 {
		limit = 6
	}
	if n, err := strconv.Atoi(exponent); err == nil && n >= -4 && n < limit {
		return strconv.FormatFloat(v, 'f', -1, bits)
	}
	return text
}

func halfWay(text string, v float64, bits int) bool {
	number, _ := new(big.Rat).SetString(text)
	for _, toward := range []float64{math.Inf(-1), math.Inf(1)} {
		next := math.Nextafter(v, toward)
		if bits == 32 {
			next = float64(math.Nextafter32(float32(v), float32(toward)))
		}
		if math.IsInf(next, 0) {
			continue
		}
		sum := new(big.Rat).Add(new(big.Rat).SetFloat64(v), new(big.Rat).SetFloat64(next))
		if sum.Quo(sum, big.NewRat(2, 1)).Cmp(number) == 0 {
			return true
		}
	}
	return false
}
