package testenv

import (
	"hash/fnv"
	"os"
	"path"
)

// Skipper is a T that can be passed over.
type Skipper interface {
	T
	Skip(args ...any)
}

// OneModeIsEnough skips one of a test's two delivery modes unless TIDEMARK_TEST_ALL is set: which
// one goes by the test's name, so that `make test` sees half of the tests in each mode, and the
// same ones each time. mode is 0 or 1.
func OneModeIsEnough(t Skipper, mode int) {
	t.Helper()
	if os.Getenv("TIDEMARK_TEST_ALL") != "" {
		return
	}
	name := fnv.New32a()
	_, _ = name.Write([]byte(path.Dir(t.Name())))
	if int(name.Sum32()>>1&1) != mode {
		t.Skip("TIDEMARK_TEST_ALL=1 runs the other delivery mode too")
	}
}
