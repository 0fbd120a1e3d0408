package deliver

import "testing"

// The vectors of Kafka's own tests (UtilsTest.testMurmur2), as Java's signed ints.
func TestMurmur2GivesWhatJavaGives(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int32{
		"21":                         -973932308,
		"foobar":                     -790332482,
		"a-little-bit-long-string":   -985981536,
		"a-little-bit-longer-string": -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
		"abc": 479470107,
	} {
		if got := int32(murmur2([]byte(in))); got != want {
			t.Errorf("murmur2(%q) = %d, want %d", in, got, want)
		}
	}
}

// Java drops the sign bit (-973932308 & 0x7fffffff = 1173551340) and takes the remainder.
func TestPartitionIsJavasPositiveRemainder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in      string
		n, want int
	}{
		{"21", 1, 0},
		{"21", 2, 0},
		{"21", 7, 1173551340 % 7},
		{"abc", 10, 7},
		{"foobar", 3, 1357151166 % 3},
	} {
		if got := toPartition(murmur2([]byte(c.in)), c.n); got != c.want {
			t.Errorf("partition of %q in %d = %d, want %d", c.in, c.n, got, c.want)
		}
	}
}
