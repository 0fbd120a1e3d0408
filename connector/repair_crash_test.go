//go:build crashpoints

package connector_test

import (
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/connector"
	"github.com/tidemark-cdc/tidemark/connector/metrics"
)

// TestCrashChild is the process that is killed: it runs the connector of a configuration that its
// parent wrote, until it reaches the point that TIDEMARK_CRASH names.
func TestCrashChild(t *testing.T) {
	file := os.Getenv("TIDEMARK_CRASH_CONFIG")
	if file == "" {
		t.Skip("it runs as a child of the other tests")
	}
	f, _, err := config.Load(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := connector.New(f.Connectors[0], f.Worker, connector.Deps{
		Log:     slog.New(slog.NewTextHandler(os.Stdout, nil)),
		Metrics: metrics.New(prometheus.NewRegistry()).Connector("c1"), Version: "test",
	})
	t.Fatalf("the connector ended before the point: %v", c.Run(t.Context()))
}

// killedAt runs the connector in a process of its own until it kills itself, as kill -9 does.
func (r *rig) killedAt(point string) {
	r.t.Helper()
	out, err := r.crashes(point)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		r.t.Fatalf("%s: %v\n%s", point, err, out)
	}
}

// crashes runs the connector in a process of its own until it reaches the point, and returns what
// it wrote and how it ended.
func (r *rig) crashes(point string) (string, error) {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), os.Args[0], "-test.run=^TestCrashChild$",
		"-test.timeout=60s")
	cmd.Env = append(os.Environ(), "TIDEMARK_CRASH="+point,
		"TIDEMARK_CRASH_CONFIG="+r.configuration(), "TMPDIR="+r.t.TempDir())
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// A panic while a row is encoded ends the process with a status of its own and a trace; nothing of
// what it had read is acknowledged, and the next process goes on.
func TestF13APanicEndsTheProcess(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, r *rig) {
		r.streamedOnce()
		before := r.record()
		r.exec(insertNumbers(5, 7))
		out, err := r.crashes("panic:row")
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 2 {
			t.Fatalf("the process ended with %v\n%s", err, out)
		}
		contains(t, out, "panic: crash point row", "goroutine ", "connector/stream.go")
		if rec := r.record(); rec.LSN != before.LSN || r.confirmedFlush() > rec.LSN {
			t.Errorf("stored %s after %s, the slot is at %s", rec.LSN, before.LSN, r.confirmedFlush())
		}
		sameInts(t, "ids", ids(r.committed("shop.public.t"), "id"), sequence(1, 4))
		run := r.start()
		r.streaming(run)
		r.caughtUp(run)
		r.clean(run)
		r.complete(7)
	})
}

// firstOrAll is what a test goes through: the first, and with TIDEMARK_TEST_ALL all.
func firstOrAll(all ...string) []string {
	if os.Getenv("TIDEMARK_TEST_ALL") == "" {
		return all[:1]
	}
	return all
}

// Killed at each step of a repair, with more changes in between, and killed there once more: the
// next start repairs again, to the same end.
func TestARepairThatIsKilledAtAnyStepComesToTheSameEnd(t *testing.T) {
	t.Parallel()
	for _, point := range firstOrAll(
		"repair-delete-sent", "repair-intent-stored", "repair-publication-made", "repair-slot-dropped",
		"slot-made", "repair-slot-made", "repair-begun", "snapshot-begun", "repair-rows-sent",
		"table-read", "snapshot-read",
	) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "18")
			r.repairing()
			r.lives()
			r.exec("DROP PUBLICATION tidemark") // the case with the most steps
			r.exec(while...)
			r.killedAt(point)
			if !r.record().Repairing() {
				t.Errorf("the record does not say that a repair is due: %+v", r.record())
			}
			r.exec("DELETE FROM t WHERE id = 11", "INSERT INTO t VALUES (10, 'back')",
				"UPDATE t SET v = 'once more' WHERE id = 7")
			if point != "repair-publication-made" && point != "repair-slot-dropped" { // steps that are done
				r.killedAt(point)
			}
			r.exec("DELETE FROM t WHERE id IN (10, 12)", insertNumbers(11, 11))
			r.repairs()
			r.repairsNothing()
		})
	}
}

// The same for a repair that keeps its slot, of one table of two.
func TestARepairOfATableThatIsKilledComesToTheSameEnd(t *testing.T) {
	t.Parallel()
	for _, point := range firstOrAll(
		"repair-rows-sent", "repair-begun", "snapshot-begun", "repair-delete-sent", "table-read",
		"snapshot-read",
	) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "18")
			r.repairing()
			r.exec("CREATE TABLE other (id int PRIMARY KEY)", "INSERT INTO other VALUES (1)")
			r.lives()
			r.exec("INSERT INTO other VALUES (2)", "ALTER PUBLICATION tidemark DROP TABLE t")
			r.exec(while...)
			r.exec("ALTER PUBLICATION tidemark ADD TABLE t")
			r.killedAt(point)
			r.exec("DELETE FROM t WHERE id = 11", "INSERT INTO other VALUES (3)")
			r.killedAt(point)
			// And once more out and back, while the repair is due.
			r.exec("ALTER PUBLICATION tidemark DROP TABLE t", "DELETE FROM t WHERE id = 12",
				"ALTER PUBLICATION tidemark ADD TABLE t")
			r.repairs()
			sameInts(t, "other", ids(r.all("shop.public.other"), "id"), sequence(1, 3))
		})
	}
}

// Killed right behind the end: the repair is done, and is not made again.
func TestARepairThatIsDoneIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.repairing()
	r.lives()
	r.dropSlot()
	r.exec(while...)
	r.killedAt("snapshot-stored")
	if r.record().Repairing() {
		t.Errorf("a repair is due: %+v", r.record())
	}
	r.repairsNothing()
	r.converged()
}
