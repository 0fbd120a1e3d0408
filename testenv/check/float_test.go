package check

import (
	"math"
	"testing"
)

// What psql prints for these, on every version since 12.
func TestFloatsAreAsTheServerPrintsThem(t *testing.T) {
	for want, v := range map[string]float64{
		"0": 0, "-0": math.Copysign(0, -1), "10000000000": 1e10, "123456789012345": 123456789012345,
		"1e+15": 1e15, "0.0001": 0.0001, "1e-05": 0.00001, "0.30000000000000004": 0.30000000000000004,
		"NaN": math.NaN(), "Infinity": math.Inf(1), "-Infinity": math.Inf(-1), "1e+300": 1e300,
		"2.5071036895015997e+18": 2.5071036895015997e+18, "-2.5071036895015997e+18": -2.5071036895015997e+18,
		"5e-324": 5e-324, "1.7976931348623157e+308": math.MaxFloat64,
	} {
		if got := FloatText(v, 64); got != want {
			t.Errorf("%s instead of %s", got, want)
		}
	}
	for want, v := range map[string]float32{
		"123456": 123456, "1e+06": 1e6, "1.234567e+06": 1234567, "0.33333334": 1.0 / 3,
		"1e-45": 1e-45, "3.4028235e+38": math.MaxFloat32,
	} {
		if got := FloatText(float64(v), 32); got != want {
			t.Errorf("%s instead of %s", got, want)
		}
	}
}
