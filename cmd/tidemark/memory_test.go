package main

import (
	"context"
	"math"
	"os"
	"runtime/debug"
	"testing"

	"github.com/tidemark-cdc/tidemark/config"
)

func TestTheMemoryLimitFollowsTheQueuesAndStaysAboveWhatLives(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name         string
		queues, live int64
		want         int64
	}{
		{"the default queue", 64 * mib, 20 * mib, 192 * mib},
		{"two connectors", 128 * mib, 20 * mib, 288 * mib},
		{"many tables", 64 * mib, 500 * mib, 689 * mib},
		{"a queue without a bound", math.MaxInt64 / 2, 0, math.MaxInt64},
	} {
		if got := memoryLimit(c.queues, c.live); got != c.want {
			t.Errorf("%s: %d, wanted %d", c.name, got, c.want)
		}
	}
}

func TestTheMemoryLimitIsSetUnlessTheUserDid(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // nothing is kept up to date
	const gib = 1 << 30
	connectors := []*config.Connector{{MaxQueueBytes: gib}, {MaxQueueBytes: gib}}

	t.Setenv("GOMEMLIMIT", "123456789")
	limitMemory(ctx, connectors)
	if got := debug.SetMemoryLimit(-1); got != before {
		t.Errorf("with GOMEMLIMIT set: the limit is %d, wanted %d as before", got, before)
	}
	if err := os.Unsetenv("GOMEMLIMIT"); err != nil {
		t.Fatal(err)
	}
	limitMemory(ctx, connectors)
	if got, want := debug.SetMemoryLimit(-1), int64(3*gib+besidesQueue); got != want {
		t.Errorf("the limit is %d, wanted %d", got, want)
	}
}
