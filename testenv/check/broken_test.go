package check_test

import (
	"context"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/testenv"
	"github.com/tidemark-cdc/tidemark/testenv/check"
	"github.com/tidemark-cdc/tidemark/testenv/proof"
	"github.com/tidemark-cdc/tidemark/testenv/workload"
)

func TestMain(m *testing.M) { testenv.Main(cleaned{m}) }

// cleaned removes what the tests of the process share.
type cleaned struct{ *testing.M }

func (c cleaned) Run() int {
	defer func() { os.RemoveAll(buildDir) }()
	return c.M.Run()
}

var buildDir string

// brokenBuild is one build with all faults in it: the environment chooses.
var brokenBuild = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "tidemark-broken-")
	if err != nil {
		return "", err
	}
	buildDir = dir
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	return proof.Build(ctx, dir, "broken")
})

// brokenRig is a rig with the broken build.
func brokenRig(
	t *testing.T, o workload.Options, configure func(*proof.Rig),
) (*proof.Rig, *testenv.FakeBroker) {
	t.Helper()
	if os.Getenv("TIDEMARK_BROKEN") == "" {
		t.Skip("the broken builds are a stage of their own: TIDEMARK_BROKEN=1")
	}
	binary, err := brokenBuild()
	if err != nil {
		t.Fatal(err)
	}
	return proof.NewRig(t, binary, o, configure)
}

// brokenRun runs a connector with a fault under a workload, kills it twice, and returns what the
// checker says.
func brokenRun(t *testing.T, fault string, exactlyOnce bool) *check.Report {
	t.Helper()
	o := workload.Options{Seed: 7, Keys: 200, Rate: 1500}
	r, broker := brokenRig(t, o, func(r *proof.Rig) {
		r.ExactlyOnce = exactlyOnce
		r.Keys = map[string]string{
			"offset.flush.interval.ms": "50", "exactly.once.batch.bytes": "16384",
		}
	})
	slowData(broker)
	sampler := r.Sampler()
	for range 3 {
		r.Kill()
		if err := r.Start("TIDEMARK_FAULT=" + fault); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if err := r.AwaitStreaming(ctx); err != nil {
			t.Fatal(err)
		}
		if err := r.Workload.Run(ctx, 1500); err != nil {
			t.Fatal(err)
		}
	}
	report, err := r.Check(t.Context(), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	report.Add(sampler.Stop())
	t.Log(report)
	return report
}

// slowData lets the broker take its time with records, but not with positions, which come in
// transactions: whoever does not wait for it is seen.
func slowData(broker *testenv.FakeBroker) {
	cluster := broker.Cluster()
	broker.Control(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if r.(*kmsg.ProduceRequest).TransactionID == nil {
			cluster.SleepControl(func() { time.Sleep(150 * time.Millisecond) })
		}
		return nil, nil, false
	})
}

func fails(t *testing.T, fault string, exactlyOnce bool, want ...check.Kind) {
	t.Helper()
	report := brokenRun(t, fault, exactlyOnce)
	for kind := range report.Counts {
		if slices.Contains(want, kind) {
			return
		}
	}
	t.Errorf("the checker did not notice %s: want a failure of %v", fault, want)
}

// Without a fault the same run passes: what fails the others is the fault.
func TestBrokenNot(t *testing.T) {
	for mode, exactlyOnce := range map[string]bool{"at least once": false, "exactly once": true} {
		t.Run(mode, func(t *testing.T) {
			if report := brokenRun(t, "", exactlyOnce); !report.OK() {
				t.Error("the checker fails without a fault")
			}
		})
	}
}

// Store before confirm, and acknowledge early, which follows from it.
func TestBrokenEarlyAck(t *testing.T)      { fails(t, "early_ack", false, check.Positions) }
func TestBrokenDrop(t *testing.T)          { fails(t, "drop", false, check.Hole) }
func TestBrokenSwap(t *testing.T)          { fails(t, "swap", false, check.Order) }
func TestBrokenSkipOnRestart(t *testing.T) { fails(t, "skip_on_restart", false, check.Hole) }
func TestBrokenAbsentNull(t *testing.T)    { fails(t, "absent_null", false, check.Fold) }
func TestBrokenExactlyOnceTwice(t *testing.T) {
	fails(t, "twice", true, check.Once)
}

func TestBrokenExactlyOnceDrop(t *testing.T) {
	fails(t, "drop", true, check.Hole)
}
