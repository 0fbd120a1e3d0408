package proof_test

import (
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/testenv/workload"
)

// Ten kill -9 a minute, for five minutes, under load, against the real broker in exactly-once mode:
// a read_committed consumer sees each event once.
func TestRealExactlyOnceTenKillsAMinute(t *testing.T) {
	if os.Getenv("TIDEMARK_TEST_ALL") == "" {
		t.Skip("five minutes: TIDEMARK_TEST_ALL=1")
	}
	const (
		minutes = 5
		each    = 6 * time.Second // a kill
	)
	s := startReal(t)
	r := s.rig(t, true, workload.Options{Seed: 4, Keys: 2000, PerTransaction: 120, Rate: 400})
	sampler := r.Sampler()
	start(t, r)
	written := make(chan error, 1)
	go func() { written <- r.Workload.Run(t.Context(), 1<<62) }()
	random := rand.New(rand.NewPCG(4, 4))
	streaming := 0
	for range minutes * int(time.Minute/each) {
		at := time.Duration(random.Int64N(int64(each)))
		time.Sleep(at) // the kill falls anywhere
		if ended, err := r.Process().Ended(); ended {
			t.Fatalf("the connector ended by itself: %v\n%s", err, r.LogTail())
		}
		if r.Streaming(t.Context()) {
			streaming++
		}
		r.Kill()
		if err := r.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(each - at)
	}
	r.Workload.Finish()
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	stats := r.Workload.Stats()
	t.Logf("%d kills, %d of them in the stream; %d changes in %d transactions",
		minutes*int(time.Minute/each), streaming, stats.Changes, stats.Transactions)
	report := judge(t, r, sampler, 5*time.Minute)
	if stats.Changes < 10_000 || int64(report.Changes) < stats.Changes {
		t.Errorf("%d changes committed, %d in the topics", stats.Changes, report.Changes)
	}
}
