package proof_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

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

// build builds the command once a process, with crash points.
var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "tidemark-proof-")
	if err != nil {
		return "", err
	}
	buildDir = dir
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	return proof.Build(ctx, dir, "crashpoints")
})

// newRig returns a rig on the shared PostgreSQL, with a broker and a registry in this process, and
// with keys of the connector.
func newRig(t *testing.T, o workload.Options, keys map[string]string) *proof.Rig {
	t.Helper()
	r, _ := newRigAndBroker(t, o, keys)
	return r
}

func newRigAndBroker(
	t *testing.T, o workload.Options, keys map[string]string,
) (*proof.Rig, *testenv.FakeBroker) {
	t.Helper()
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return proof.NewRig(t, binary, o, func(r *proof.Rig) {
		r.Keys, r.ExactlyOnce = keys, keys["exactly.once.support"] == "required"
	})
}

// start starts the connector and waits until it streams.
func start(t *testing.T, r *proof.Rig) {
	t.Helper()
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	awaitStreaming(t, r, 60*time.Second)
}

func awaitStreaming(t *testing.T, r *proof.Rig, limit time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := r.AwaitStreaming(ctx); err != nil {
		t.Fatal(err)
	}
}

// judge drains, checks and reports.
func judge(t *testing.T, r *proof.Rig, sampler *check.Sampler, drain time.Duration) *check.Report {
	t.Helper()
	report, err := r.Check(t.Context(), drain)
	if err != nil {
		t.Fatalf("%v\n%s", err, r.LogTail())
	}
	report.Add(sampler.Stop())
	t.Log(report)
	if !report.OK() {
		t.Errorf("promises were broken; the connector's log ends with\n%s", r.LogTail())
	}
	return report
}

// Twenty thousand changes, and a connector that is killed five times in the midst of them.
func TestF08NothingIsLostWhenTheConnectorIsKilled(t *testing.T) {
	r := newRig(t, workload.Options{Seed: 1}, nil)
	sampler := r.Sampler()
	start(t, r)
	random := rand.New(rand.NewPCG(1, 1))
	done := make(chan error, 1)
	go func() { done <- r.Workload.Run(t.Context(), 20_000) }()
	kills := 0
	for running := true; running || kills < 5; {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			running, done = false, nil
		case <-time.After(time.Duration(300+random.IntN(1200)) * time.Millisecond):
			if kills == 5 {
				continue
			}
			r.Kill()
			kills++
			start(t, r)
		}
	}
	report := judge(t, r, sampler, 60*time.Second)
	if report.Changes < 20_000 || report.Samples < 10 {
		t.Errorf("%d changes and %d samples: too little to prove anything", report.Changes,
			report.Samples)
	}
}

// A process that dies at any step of its first start, rows coming in meanwhile, leaves nothing
// that the next one cannot go on from.
func TestF01KilledBeforeTheSnapshot(t *testing.T) {
	killedAtTheStart(t, "slot-made", "intent-stored", "publication-made")
}

func TestF02KilledInTheSnapshot(t *testing.T) {
	killedAtTheStart(t, "table-read", "snapshot-begun")
}

func TestF03KilledBeforeTheEndOfTheSnapshotIsStored(t *testing.T) {
	killedAtTheStart(t, "snapshot-read", "snapshot-stored")
}

// killedAtTheStart goes through the first of the points, and with TIDEMARK_TEST_ALL through all.
func killedAtTheStart(t *testing.T, points ...string) {
	t.Helper()
	if os.Getenv("TIDEMARK_TEST_ALL") == "" {
		points = points[:1]
	}
	for _, point := range points {
		for mode, support := range map[string]string{
			"at_least_once": "disabled", "exactly_once": "required",
		} {
			t.Run(point+"/"+mode, func(t *testing.T) {
				killedAt(t, newRig(t, workload.Options{Seed: 2, Keys: 100},
					map[string]string{"exactly.once.support": support}), point)
			})
		}
	}
}

func killedAt(t *testing.T, r *proof.Rig, point string) {
	t.Helper()
	sampler := r.Sampler()
	if err := r.Start("TIDEMARK_CRASH=" + point); err != nil {
		t.Fatal(err)
	}
	if err := r.Workload.Run(t.Context(), 300); err != nil {
		t.Fatal(err)
	}
	err := r.Process().Wait(30 * time.Second)
	if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != -1 {
		t.Fatalf("want a process that killed itself at %s: %v\n%s", point, err, r.LogTail())
	}
	start(t, r)
	if err := r.Workload.Run(t.Context(), 300); err != nil {
		t.Fatal(err)
	}
	judge(t, r, sampler, 30*time.Second)
}
