package schema

import (
	"math/bits"
	"strconv"
)

// numeric prints as an optional minus, digits, and, when its display scale is above 0, a point
// and more digits; never with an exponent; or as NaN, Infinity, -Infinity (numeric_out).
func numericType(name string, typmod int32, mode string) Type {
	switch {
	case mode == DecimalDouble:
		return doubleType(name)
	case mode == DecimalString || typmod < lengthHeader:
		return textType(name)
	}
	precision, scale := decimalBounds(numericTypmod(typmod))
	return decimalType(name, precision, scale, func(dst, text []byte) ([]byte, error) {
		return appendDecimal(dst, text, precision, scale)
	})
}

// numericTypmod takes numeric(p,s)'s typmod apart: p in the upper half, s in the lower 11 bits,
// signed (numeric.c, make_numeric_typmod; before 15 s was never negative).
func numericTypmod(typmod int32) (precision, scale int) {
	t := typmod - lengthHeader
	return int(t>>16) & 0xffff, int((t&0x7ff)^0x400) - 0x400
}

// decimalBounds makes of PostgreSQL's precision and scale a pair that Avro allows, 0 <= scale <=
// precision, and that holds the same values: numeric(3,-2) holds up to 99900 (5 digits before
// the point), numeric(3,5) up to 0.00999 (5 behind it).
func decimalBounds(precision, scale int) (int, int) {
	if scale < 0 {
		return precision - scale, 0
	}
	return max(precision, scale), scale
}

func decimalType(name string, precision, scale int, appendTo AppendFunc) Type {
	avro := `{"type":"bytes","logicalType":"decimal","precision":` + strconv.Itoa(precision) +
		`,"scale":` + strconv.Itoa(scale) + `}`
	return rawType(name, avro, appendTo)
}

// chunkDigits is how many decimal digits are read into one uint64 at a time.
const chunkDigits = 18

// maxLimbs is enough for the largest number a decimal here has: numeric(1000,-1000) has 2 000
// digits, which is 6 644 bits.
const maxLimbs = 104

// magnitude is an unsigned number of up to maxLimbs 64-bit limbs, lowest first. It lives on the
// stack, where math/big would allocate for each value.
type magnitude struct {
	limbs [maxLimbs]uint64
	used  int
}

// shift makes m into m*factor+add. It is false when m has no room for the result.
func (m *magnitude) shift(factor, add uint64) bool {
	carry := add
	for i := range m.used {
		high, low := bits.Mul64(m.limbs[i], factor)
		sum, c := bits.Add64(low, carry, 0)
		m.limbs[i], carry = sum, high+c
	}
	if carry == 0 {
		return true
	}
	if m.used == maxLimbs {
		return false
	}
	m.limbs[m.used] = carry
	m.used++
	return true
}

// appendSigned appends m, or -m, as Avro bytes: big endian two's complement, as few bytes as
// possible, at least one.
func (m *magnitude) appendSigned(dst []byte, negative bool) []byte {
	flip := uint64(0)
	if negative && m.used > 0 { // -m is the complement of m-1
		flip = ^uint64(0)
		for i := range m.used {
			m.limbs[i]--
			if m.limbs[i] != ^uint64(0) {
				break // nothing was borrowed from the next limb
			}
		}
		for m.used > 0 && m.limbs[m.used-1] == 0 {
			m.used--
		}
	}
	size := 1 // one bit more than the magnitude has, for the sign
	if m.used > 0 {
		size = ((m.used-1)*64+bits.Len64(m.limbs[m.used-1]))/8 + 1
	}
	dst = appendLong(dst, int64(size))
	for i := size - 1; i >= 0; i-- {
		limb := flip
		if i/8 < m.used {
			limb = m.limbs[i/8] ^ flip
		}
		dst = append(dst, byte(limb>>(i%8*8)))
	}
	return dst
}

// appendDecimal appends the unscaled value of a numeric's text at that scale. Digits that the
// scale has no room for must be zeros; those that the text does not have are zeros.
func appendDecimal(dst, text []byte, precision, scale int) ([]byte, error) {
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		text = text[1:]
	}
	whole, fraction, ok := decimalDigits(text)
	if !ok {
		return dst, ErrUnrepresentable
	}
	for len(whole) > 0 && whole[0] == '0' {
		whole = whole[1:]
	}
	for len(fraction) > scale {
		if fraction[len(fraction)-1] != '0' {
			return dst, ErrUnrepresentable
		}
		fraction = fraction[:len(fraction)-1]
	}
	if len(whole) > precision-scale {
		return dst, ErrUnrepresentable
	}
	if len(whole)+scale <= chunkDigits { // nearly every number there is
		return appendUnscaled(dst, smallDecimal(whole, fraction, scale), negative), nil
	}
	return appendLongDecimal(dst, whole, fraction, scale, negative)
}

// appendLongDecimal is a function of its own so that only long numbers pay for clearing magnitude.
func appendLongDecimal(dst, whole, fraction []byte, scale int, negative bool) ([]byte, error) {
	var m magnitude
	if !m.digits(whole) || !m.digits(fraction) || !m.zeros(scale-len(fraction)) {
		return dst, ErrUnrepresentable
	}
	return m.appendSigned(dst, negative), nil
}

// decimalDigits cuts digits, or digits "." digits, at the point.
func decimalDigits(text []byte) (whole, fraction []byte, ok bool) {
	point := len(text)
	for i, c := range text {
		switch {
		case c >= '0' && c <= '9':
		case c == '.' && point == len(text):
			point = i
		default:
			return nil, nil, false
		}
	}
	if point == len(text) {
		return text, nil, point > 0
	}
	return text[:point], text[point+1:], point > 0 && point+1 < len(text)
}

// smallDecimal is the unscaled value of a number of at most chunkDigits digits.
func smallDecimal(whole, fraction []byte, scale int) uint64 {
	unscaled := uint64(0)
	for _, c := range whole {
		unscaled = unscaled*10 + uint64(c-'0')
	}
	for i := range scale {
		unscaled *= 10
		if i < len(fraction) {
			unscaled += uint64(fraction[i] - '0')
		}
	}
	return unscaled
}

// appendUnscaled is magnitude's appendSigned for up to 1<<63 if negative, and 1<<63 - 1 if not.
func appendUnscaled(dst []byte, magnitude uint64, negative bool) []byte {
	v := int64(magnitude)
	if negative {
		v = -v
	}
	size := bits.Len64(uint64(v^v>>63))/8 + 1 // one bit more, for the sign
	dst = appendLong(dst, int64(size))
	for i := size - 1; i >= 0; i-- {
		dst = append(dst, byte(v>>(i*8)))
	}
	return dst
}

// digits shifts decimal digits into m from the right.
func (m *magnitude) digits(text []byte) bool {
	for len(text) > 0 {
		n := min(len(text), chunkDigits)
		chunk, factor := uint64(0), uint64(1)
		for _, c := range text[:n] {
			chunk, factor = chunk*10+uint64(c-'0'), factor*10
		}
		if !m.shift(factor, chunk) {
			return false
		}
		text = text[n:]
	}
	return true
}

// zeros shifts n zeros into m from the right.
func (m *magnitude) zeros(n int) bool {
	for ; n > 0; n-- {
		if !m.shift(10, 0) {
			return false
		}
	}
	return true
}
