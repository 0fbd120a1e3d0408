package proof_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-cdc/tidemark/testenv"
	"github.com/tidemark-cdc/tidemark/testenv/check"
	"github.com/tidemark-cdc/tidemark/testenv/proof"
	"github.com/tidemark-cdc/tidemark/testenv/workload"
)

// load is what a stage on the real broker does at least.
type load struct {
	exactlyOnce bool
	changes     int64
	kills       int
	pause       time.Duration // at most, between two kills
}

// realServers are processes of their own: Kafka, a registry, PostgreSQL with fsync.
type realServers struct {
	kafka    *testenv.Kafka
	registry *testenv.Registry
	postgres *testenv.Postgres
}

func startReal(t *testing.T) *realServers {
	t.Helper()
	if os.Getenv("TIDEMARK_REALBROKER") == "" {
		t.Skip("the real broker is a stage of its own: TIDEMARK_REALBROKER=1")
	}
	testenv.RequireJava(t)
	s := &realServers{}
	var group errgroup.Group
	group.Go(func() (err error) {
		s.kafka, err = testenv.StartKafka(t.Context(), testenv.KafkaOptions{})
		return err
	})
	group.Go(func() (err error) {
		s.registry, err = testenv.StartRegistry(t.Context(), testenv.RegistryOptions{})
		return err
	})
	group.Go(func() (err error) {
		s.postgres, err = testenv.StartPostgres(t.Context(), testenv.PostgresOptions{Fsync: true})
		return err
	})
	group.Go(func() error {
		_, err := build()
		return err
	})
	err := group.Wait()
	t.Cleanup(func() {
		if s.kafka != nil {
			s.kafka.Close()
		}
		if s.registry != nil {
			s.registry.Close()
		}
		if s.postgres != nil {
			s.postgres.Close()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The promise on a real broker: two hundred thousand changes of every kind, the connector killed
// ten times, the broker and the server killed once each. Then everything is read, once by the
// checker and once by `tidemark tail`.
func TestRealBrokerLosesNothing(t *testing.T) {
	r, report := realRun(t, load{changes: 200_000, kills: 10, pause: 9 * time.Second})
	t.Run("tail decodes every record", func(t *testing.T) { tailAll(t, r, report) })
}

// The same in exactly-once mode: a read_committed consumer sees each event once.
func TestRealBrokerRepeatsNothingInExactlyOnceMode(t *testing.T) {
	realRun(t, load{exactlyOnce: true, changes: 25_000, kills: 8, pause: 5 * time.Second})
}

// realRun carries a load out, on servers of its own, and judges.
func realRun(t *testing.T, l load) (*proof.Rig, *check.Report) {
	t.Helper()
	began := time.Now()
	say := func(format string, args ...any) {
		t.Logf("%5.1f s  %s", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
	s := startReal(t)
	r := s.rig(t, l.exactlyOnce, workload.Options{Seed: 3, Keys: 2000, PerTransaction: 120})
	sampler := r.Sampler()
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	say("servers started, %d changes begin", l.changes)
	done := make(chan error, 1)
	streams := make(chan struct{})
	go func() {
		// Some are committed before the slot's point, and come as rows of the snapshot.
		err := r.Workload.Run(t.Context(), l.changes/10)
		if err == nil {
			select {
			case <-streams:
			case <-t.Context().Done():
			}
			err = r.Workload.Run(t.Context(), l.changes)
		}
		done <- err
	}()
	l.faults(t, s, r, sampler, streams, done, say)
	stats := r.Workload.Stats()
	say("workload: %d changes in %d transactions, %d aborted, %d refused, %d answers lost",
		stats.Changes, stats.Transactions, stats.Aborts, stats.Refused, stats.Lost)
	report := judge(t, r, sampler, 2*time.Minute)
	say("checked")
	if int64(report.Changes) < l.changes || report.Samples < 100 {
		t.Errorf("%d changes and %d samples: too little to prove anything", report.Changes,
			report.Samples)
	}
	if err := r.Process().Stop(20 * time.Second); err != nil {
		t.Errorf("an ordered stop: %v\n%s", err, r.LogTail())
	}
	return r, report
}

// rig is a connector's surroundings on the real servers.
func (s *realServers) rig(t *testing.T, exactlyOnce bool, o workload.Options) *proof.Rig {
	t.Helper()
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	r := &proof.Rig{
		Binary: binary, Postgres: s.postgres, Database: "postgres", Brokers: s.kafka.Bootstrap(),
		Registry: s.registry.URL, Dir: t.TempDir(), ExactlyOnce: exactlyOnce,
	}
	if err := r.Prepare(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Kill)
	return r
}

// faults kills the connector until it was killed often enough and the workload has ended; at two
// of the kills the broker, then the server, is killed as well. It closes streams when the connector
// streams for the first time.
func (l load) faults(t *testing.T, s *realServers, r *proof.Rig, sampler *check.Sampler,
	streams chan<- struct{}, done <-chan error, say func(string, ...any),
) {
	t.Helper()
	random := rand.New(rand.NewPCG(3, 3))
	kills := 0
	for running := true; running || kills < l.kills; {
		pause := 500*time.Millisecond + time.Duration(random.Int64N(int64(l.pause)))
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			running, done = false, nil
			say("the workload has ended")
			continue
		case <-time.After(pause):
		}
		if ended, err := r.Process().Ended(); ended {
			t.Fatalf("the connector ended by itself: %v\n%s", err, r.LogTail())
		}
		if kills == l.kills {
			continue
		}
		if kills++; kills%2 == 0 {
			// Every other kill is in the stream; the rest are wherever they fall, also in the start.
			awaitStreaming(t, r, 2*time.Minute)
			if kills == 2 {
				close(streams)
			}
		}
		switch kills {
		case 4:
			crash(t, "the broker", say, func(ctx context.Context) error {
				if err := s.kafka.Kill(); err != nil {
					return err
				}
				return s.kafka.Start(ctx)
			})
		case 7:
			sampler.ServerCrashed()
			crash(t, "the server", say, func(ctx context.Context) error {
				if err := s.postgres.Kill(); err != nil {
					return err
				}
				return s.postgres.Start(ctx)
			})
		}
		r.Kill()
		if err := r.Start(); err != nil {
			t.Fatal(err)
		}
		say("connector killed, %d", kills)
	}
}

func crash(t *testing.T, what string, say func(string, ...any), f func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := f(ctx); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	say("%s killed and started", what)
}

// tailAll reads everything with the command of the product, and counts.
func tailAll(t *testing.T, r *proof.Rig, report *check.Report) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.Binary, "tail", "-c", r.Config(), "--from-beginning",
		"--exit-at-end", "--json")
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	count := 0
	for lines.Scan() {
		var event struct {
			Topic string `json:"topic"`
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			t.Fatalf("line %d: %v", count+1, err)
		}
		if strings.HasPrefix(event.Topic, "proof."+workload.Schema+".") {
			count++
		}
	}
	if err := cmd.Wait(); err != nil || lines.Err() != nil {
		t.Fatalf("tail: %v, %v\n%s", err, lines.Err(), complaints.String())
	}
	if count != report.Records {
		t.Errorf("tail printed %d records, the checker read %d", count, report.Records)
	}
	t.Logf("tail decoded %d records", count)
}
