package schema

import (
	"encoding/binary"
	"math"
	"strconv"
)

// real and double precision print, with extra_float_digits above 0, the shortest decimal text
// that reads back as the same value, or NaN, Infinity, -Infinity (float4out, float8out). Avro
// holds all of them, the sign of zero included.
func realType(name string) Type { return rawType(name, `"float"`, appendReal) }

func doubleType(name string) Type { return rawType(name, `"double"`, appendDouble) }

func appendReal(dst, text []byte) ([]byte, error) {
	v, ok := parseFloat(text, 32)
	if !ok {
		return dst, ErrUnrepresentable
	}
	return binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(v))), nil
}

func appendDouble(dst, text []byte) ([]byte, error) {
	v, ok := parseFloat(text, 64)
	if !ok {
		return dst, ErrUnrepresentable
	}
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(v)), nil
}

// parseFloat reads a float's text. What strconv takes beyond it (hexadecimal, inf, underscores)
// is refused before. The conversion to a string of up to 32 bytes stays on the stack.
func parseFloat(text []byte, bits int) (float64, bool) {
	if len(text) == 0 {
		return 0, false
	}
	for _, c := range text {
		switch {
		case c >= '0' && c <= '9', c == '.', c == 'e', c == '-', c == '+':
		default:
			return specialFloat(text)
		}
	}
	if text[0] == '+' {
		return 0, false
	}
	v, err := strconv.ParseFloat(string(text), bits)
	return v, err == nil
}

func specialFloat(text []byte) (float64, bool) {
	switch string(text) {
	case "NaN":
		return math.NaN(), true
	case "Infinity":
		return math.Inf(1), true
	case "-Infinity":
		return math.Inf(-1), true
	}
	return 0, false
}
