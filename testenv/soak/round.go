package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-cdc/tidemark/testenv"
	"github.com/tidemark-cdc/tidemark/testenv/check"
	"github.com/tidemark-cdc/tidemark/testenv/proof"
	"github.com/tidemark-cdc/tidemark/testenv/workload"
)

// round is one connector on servers of its own, in one delivery mode.
type round struct {
	number int
	mode   string
	length time.Duration
	seed   uint64
	rate   float64
	binary string
	dir    string

	kafka    *testenv.Kafka
	registry *testenv.Registry
	postgres *testenv.Postgres
	toKafka  *testenv.Proxy
	toServer *testenv.Proxy
	rig      *proof.Rig
	sampler  *check.Sampler
	began    time.Time

	// What came of it.
	history []event
	starts  int
	stats   workload.Stats
	watched watched
	verdict *check.Report
	broken  []string // what the connector did wrong that is not in the topics
	err     error    // why it could not be judged
}

// event is a line of the fault history.
type event struct {
	at        time.Duration
	what      string
	recovered time.Duration // until everything that was committed by then was confirmed to the slot
}

// What is waited for, on a machine that does other things too.
const (
	recoveryLimit = 5 * time.Minute
	serverLimit   = 3 * time.Minute
	stopLimit     = 2 * time.Minute
	drainLimit    = 6 * time.Minute
	// takeoverLimit is slot.takeover.timeout.ms: how long a second process waits.
	takeoverLimit = 15 * time.Second
)

// run runs the round and judges it. It returns an error when that was not possible.
func (r *round) run(ctx context.Context) (err error) {
	defer func() { r.err = err }()
	defer r.close()
	if err := r.start(ctx); err != nil {
		return err
	}
	watching, stopWatching := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		r.watched.run(watching, r.dir, r.length)
	}()
	defer func() {
		stopWatching()
		<-watched
	}()
	r.began = time.Now()
	written := make(chan error, 1)
	go func() { written <- r.rig.Workload.Run(ctx, 1<<62) }()
	err = r.faults(ctx, written)
	r.rig.Workload.Finish()
	if err != nil {
		return err
	}
	if err := <-written; err != nil {
		return err
	}
	r.stats = r.rig.Workload.Stats()
	r.say("the workload has ended: %d changes; the topics are read", r.stats.Changes)
	if r.verdict, err = r.rig.Check(ctx, drainLimit); err != nil {
		return err
	}
	r.verdict.Add(r.sampler.Stop())
	r.sampler = nil
	if err := r.rig.Process().Stop(stopLimit); err != nil {
		r.wrong("the last ordered stop: %v", err)
	}
	r.say("verdict: %s", r.verdict)
	return ctx.Err()
}

// start starts the servers, a proxy before each, and the connector.
func (r *round) start(ctx context.Context) error {
	var err error
	if r.toKafka, err = testenv.NewProxy(""); err != nil {
		return err
	}
	var group errgroup.Group
	group.Go(func() (err error) {
		r.kafka, err = testenv.StartKafka(ctx, testenv.KafkaOptions{Advertise: []string{r.toKafka.Addr}})
		return err
	})
	group.Go(func() (err error) {
		r.registry, err = testenv.StartRegistry(ctx, testenv.RegistryOptions{})
		return err
	})
	group.Go(func() (err error) {
		r.postgres, err = testenv.StartPostgres(ctx, testenv.PostgresOptions{
			// A connector that stands still for longer than that loses its session.
			Fsync: true, Settings: map[string]string{"wal_sender_timeout": "20s"},
		})
		return err
	})
	if err := group.Wait(); err != nil {
		return err
	}
	r.toKafka.SetTarget(r.kafka.Addrs()[0])
	server := net.JoinHostPort(r.postgres.Host, strconv.Itoa(r.postgres.Port))
	if r.toServer, err = testenv.NewProxy(server); err != nil {
		return err
	}
	dir := filepath.Join(r.dir, fmt.Sprintf("round%d", r.number))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	r.rig = &proof.Rig{
		Binary: r.binary, Postgres: r.postgres, Database: "postgres", Brokers: r.kafka.Bootstrap(),
		Admin: r.kafka.AdminAddrs(), Registry: r.registry.URL, Dir: dir, ExactlyOnce: r.mode == "eos",
		SamplerPatience: 2 * time.Minute,
		Keys: map[string]string{
			"database.hostname": "127.0.0.1", "database.port": strconv.Itoa(r.toServer.Port()),
			"slot.takeover.timeout.ms": strconv.FormatInt(takeoverLimit.Milliseconds(), 10),
			"exactly.once.batch.bytes": "65536",
		},
	}
	seed := r.seed<<8 + uint64(r.number)
	o := workload.Options{Seed: seed, Keys: 2000, Rate: r.rate, PerTransaction: 60}
	if err := r.rig.Prepare(ctx, o); err != nil {
		return err
	}
	r.sampler = r.rig.Sampler()
	if err := r.startConnector(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, recoveryLimit)
	defer cancel()
	return r.rig.AwaitStreaming(ctx)
}

func (r *round) startConnector() error {
	r.starts++
	err := r.rig.Start()
	if err == nil {
		r.watched.process(r.rig.Process().PID())
	}
	return err
}

// faults makes faults until the round's time is over.
func (r *round) faults(ctx context.Context, written chan error) error {
	planner := newPlanner(r.seed, r.number, r.mode, r.length)
	end := r.began.Add(r.length)
	for {
		next := planner.next()
		if time.Now().Add(next.pause).After(end) {
			return r.rest(ctx, time.Until(end), written)
		}
		if err := r.rest(ctx, next.pause, written); err != nil {
			return err
		}
		if err := r.alive(); err != nil {
			return err
		}
		e := event{at: time.Since(r.began)}
		what, err := r.inflict(ctx, next)
		if err != nil {
			return fmt.Errorf("%s: %w", next.kind, err)
		}
		healed := time.Now()
		if err := r.recover(ctx); err != nil {
			return fmt.Errorf("after %s: %w", next.kind, err)
		}
		e.what, e.recovered = string(next.kind)+what, time.Since(healed)
		r.history = append(r.history, e)
		r.say("%s; caught up %s later", e.what, e.recovered.Round(100*time.Millisecond))
	}
}

// rest lets time pass.
func (r *round) rest(ctx context.Context, d time.Duration, written chan error) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-written:
		return errors.Join(errors.New("the workload ended before its time"), err)
	case <-time.After(d):
		return r.watched.full()
	}
}

// alive starts a connector again that ended by itself, which it must not have done.
func (r *round) alive() error {
	ended, err := r.rig.Process().Ended()
	if !ended {
		return nil
	}
	r.wrong("the connector ended by itself: %v", err)
	fmt.Fprintln(os.Stderr, r.rig.LogTail())
	return r.startConnector()
}

// recover waits until everything that is committed now is confirmed to the slot: no fault is there
// any more that could keep the connector from it.
func (r *round) recover(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, recoveryLimit)
	defer cancel()
	var target string
	for {
		if err := r.alive(); err != nil {
			return err
		}
		if target == "" {
			target = r.scalar(ctx, "SELECT pg_current_wal_insert_lsn()::text")
		} else if r.scalar(ctx, "SELECT (confirmed_flush_lsn >= '"+target+"')::text "+
			"FROM pg_replication_slots WHERE slot_name = '"+r.rig.Slot()+"'") == "true" {
			return nil
		}
		select {
		case <-ctx.Done():
			fmt.Fprintln(os.Stderr, r.rig.LogTail())
			r.wrong("the connector stands still: %s is not confirmed after %s", target, recoveryLimit)
			return errors.New("no progress")
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// scalar asks the server, past the proxy; "" when it does not answer.
func (r *round) scalar(ctx context.Context, sql string) (text string) {
	conn, err := r.postgres.Connect(ctx, "postgres")
	if err != nil {
		return ""
	}
	defer func() { _ = conn.Close(ctx) }()
	if conn.QueryRow(ctx, sql).Scan(&text) != nil {
		return ""
	}
	return text
}

// wrong takes down a broken promise that is not in the topics.
func (r *round) wrong(format string, args ...any) {
	text := fmt.Sprintf("%s: ", clock(time.Since(r.began))) + fmt.Sprintf(format, args...)
	r.broken = append(r.broken, text)
	r.say("WRONG: %s", text)
}

func (r *round) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "soak: round %d, %s: %s\n", r.number, clock(time.Since(r.began)),
		fmt.Sprintf(format, args...))
}

// ok says that the round was judged, and well.
func (r *round) ok() bool {
	return r.err == nil && r.verdict != nil && r.verdict.OK() && len(r.broken) == 0
}

func (r *round) close() {
	if r.rig != nil {
		r.rig.Kill()
	}
	if r.sampler != nil {
		r.sampler.Stop()
	}
	for _, p := range []*testenv.Proxy{r.toKafka, r.toServer} {
		if p != nil {
			p.Close()
		}
	}
	if r.kafka != nil {
		_ = r.kafka.Close() // what is left is removed by the janitor
	}
	if r.registry != nil {
		_ = r.registry.Close()
	}
	if r.postgres != nil {
		_ = r.postgres.Close()
	}
}
