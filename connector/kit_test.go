package connector_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/offsets"
	"github.com/tidemark-cdc/tidemark/testenv"
)

// ownServer starts a server that the test may stop and configure.
func ownServer(t *testing.T, version string, settings map[string]string) *testenv.Postgres {
	t.Helper()
	pg, err := testenv.StartPostgres(t.Context(), testenv.PostgresOptions{
		Version: version, Settings: settings,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pg.Close(); err != nil {
			t.Error(err)
		}
	})
	return pg
}

// versions are the servers of tests that run on several: the newest, and with TIDEMARK_TEST_ALL
// the oldest and one between.
func versions(also ...string) []string {
	if os.Getenv("TIDEMARK_TEST_ALL") == "" {
		return append([]string{"18"}, also...)
	}
	return []string{"14", "15", "18"}
}

// inBothModes runs a test at least once and exactly once.
func inBothModes(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	eachMode(t, func(t *testing.T, set func(*rig) *rig) { test(t, set(newRig(t, "18"))) })
}

// eachMode is inBothModes for a test that makes its own rigs. set gives a rig the mode, exactly
// once with Kafka transactions of few events.
func eachMode(t *testing.T, test func(t *testing.T, set func(*rig) *rig)) {
	t.Helper()
	t.Run("at_least_once", func(t *testing.T) {
		testenv.OneModeIsEnough(t, 0)
		t.Parallel()
		test(t, func(r *rig) *rig { return r })
	})
	t.Run("exactly_once", func(t *testing.T) {
		testenv.OneModeIsEnough(t, 1)
		t.Parallel()
		test(t, func(r *rig) *rig {
			r.exactlyOnce(16 << 10)
			return r
		})
	})
}

// complete fails unless consumers see the ids 1 to last of the table: exactly once each once,
// otherwise each at least once. It returns what they see.
func (r *rig) complete(last int) []event {
	r.t.Helper()
	if r.exactly() {
		events := r.once("shop.public.t")
		sameInts(r.t, "ids", ids(events, "id"), sequence(1, last))
		return events
	}
	events := r.committed("shop.public.t")
	seen := map[int]bool{}
	for _, id := range ids(events, "id") {
		seen[id] = true
	}
	if len(seen) != last || !seen[1] || !seen[last] {
		r.t.Errorf("%d of %d rows", len(seen), last)
	}
	return events
}

// onVersions runs a test on each of versions.
func onVersions(t *testing.T, test func(t *testing.T, r *rig), also ...string) {
	for _, v := range versions(also...) {
		t.Run(v, func(t *testing.T) {
			t.Parallel()
			test(t, newRig(t, v))
		})
	}
}

// onePartition makes the order of a topic's events one.
func (r *rig) onePartition() { r.extra["topic.creation.default.partitions"] = "1" }

// code fails unless err has the code, and returns its text.
func code(t *testing.T, err error, want fault.Code) string {
	t.Helper()
	if err == nil || fault.CodeOf(err) != want {
		t.Fatalf("code %q, want %q: %v", fault.CodeOf(err), want, err)
	}
	return err.Error()
}

// refused starts a connector that must end by itself with the code, and returns the error's text.
func (r *rig) refused(want fault.Code) string {
	r.t.Helper()
	err := r.start().ended(r.t)
	if fault.CodeOf(err) != want {
		r.t.Logf("log:\n%s", r.log.String())
	}
	return code(r.t, err, want)
}

// contains fails unless text has each part.
func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is missing in: %s", p, text)
		}
	}
}

func position(t *testing.T, run *running, kind string) offsets.LSN {
	t.Helper()
	text := run.c.Status().Positions[kind]
	if text == "" {
		return 0
	}
	lsn, err := offsets.ParseLSN(text)
	if err != nil {
		t.Fatal(err)
	}
	return lsn
}

func (r *rig) lsn(sql string, args ...any) offsets.LSN {
	r.t.Helper()
	lsn, err := offsets.ParseLSN(r.query(sql, args...))
	if err != nil {
		r.t.Fatal(err)
	}
	return lsn
}

// confirmedFlush is the slot's.
func (r *rig) confirmedFlush() offsets.LSN {
	r.t.Helper()
	return r.lsn("SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = $1",
		r.slot())
}

// caughtUp waits until everything that was committed is confirmed, stored and told.
func (r *rig) caughtUp(run *running) {
	r.t.Helper()
	mark := r.lsn("SELECT pg_logical_emit_message(true, 'mark', '')::text")
	r.until("the connector caught up", func() bool {
		select {
		case <-run.done:
			r.t.Fatalf("the connector ended: %v\nlog:\n%s", run.err, r.log.String())
		default:
		}
		return position(r.t, run, "flushed") > mark
	})
}

// clean stops the connector and fails if that was not in order.
func (r *rig) clean(run *running) {
	r.t.Helper()
	if err := run.stop(); err != nil {
		r.t.Fatalf("an ordered stop returned %v\nlog:\n%s", err, r.log.String())
	}
}

func (r *rig) walsender() string {
	r.t.Helper()
	return r.query("SELECT coalesce(active_pid, 0)::text FROM pg_replication_slots "+
		"WHERE slot_name = $1", r.slot())
}

// all returns the events of a topic that are there now, in order of arrival.
func (r *rig) all(topic string) []event {
	r.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(r.addrs()...))
	if err != nil {
		r.t.Fatal(err)
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(r.t.Context(), topic)
	if err == nil {
		err = ends.Error()
	}
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil
	}
	if err != nil {
		r.t.Fatal(err)
	}
	total := 0
	ends.Each(func(o kadm.ListedOffset) { total += int(o.Offset) })
	if total == 0 {
		return nil
	}
	return r.read(topic, total)
}

func (r *rig) storeOptions() offsets.StoreOptions {
	return offsets.StoreOptions{
		ClientOpts: []kgo.Opt{kgo.SeedBrokers(r.addrs()...)},
		Topic:      "tidemark-offsets", Connector: "c1", Prefix: "shop", Partitions: 1, Replication: 1,
	}
}

// store opens the connector's record as another process would.
func (r *rig) store() *offsets.Store {
	r.t.Helper()
	s, err := offsets.OpenStore(r.t.Context(), r.storeOptions())
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(s.Close)
	return s
}

func (r *rig) record() *offsets.Record {
	r.t.Helper()
	s := r.store()
	defer s.Close()
	rec, err := s.Load(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return rec
}

// change stores a changed record, as a person or a foreign process would.
func (r *rig) change(change func(*offsets.Record)) {
	r.t.Helper()
	s := r.store()
	defer s.Close()
	rec, err := s.Load(r.t.Context())
	if err == nil {
		err = s.Fence(r.t.Context())
	}
	if rec == nil {
		rec = &offsets.Record{}
	}
	change(rec)
	if err == nil {
		err = s.Save(r.t.Context(), *rec)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// hold makes the broker confirm no event until release is called; positions can still be stored.
func (r *rig) hold() (release func()) {
	return r.refuse(func(*kmsg.ProduceRequest) bool { return true })
}

// refuse makes the broker answer produce requests of events that which selects with an error that
// the client tries again after.
func (r *rig) refuse(which func(*kmsg.ProduceRequest) bool) (release func()) {
	return r.refuseAny(func(req *kmsg.ProduceRequest) bool {
		return req.TransactionID == nil && which(req)
	})
}

// refuseAny is refuse for requests of transactions as well.
func (r *rig) refuseAny(which func(*kmsg.ProduceRequest) bool) (release func()) {
	var on atomic.Bool
	on.Store(true)
	cluster := r.broker.Cluster()
	cluster.ControlKey(0, func(k kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		req := k.(*kmsg.ProduceRequest)
		if !on.Load() || !which(req) {
			return nil, nil, false
		}
		return refuseProduce(req), nil, true
	})
	return func() { on.Store(false) }
}

// holdEvents is hold for both modes.
func (r *rig) holdEvents() (release func()) {
	stores := r.sends("tidemark-offsets")
	return r.refuseAny(func(req *kmsg.ProduceRequest) bool { return !stores(req) })
}

func refuseProduce(req *kmsg.ProduceRequest) *kmsg.ProduceResponse {
	resp := req.ResponseKind().(*kmsg.ProduceResponse)
	for _, rt := range req.Topics {
		t := kmsg.NewProduceResponseTopic()
		t.Topic, t.TopicID = rt.Topic, rt.TopicID
		for _, rp := range rt.Partitions {
			p := kmsg.NewProduceResponseTopicPartition()
			p.Partition, p.ErrorCode, p.BaseOffset = rp.Partition, kerr.NotEnoughReplicas.Code, -1
			t.Partitions = append(t.Partitions, p)
		}
		resp.Topics = append(resp.Topics, t)
	}
	return resp
}

// within fails unless ok becomes true in that time.
func (r *rig) within(d time.Duration, what string, ok func() bool) {
	r.t.Helper()
	deadline := time.Now().Add(d)
	for !ok() {
		if time.Now().After(deadline) {
			r.t.Fatalf("not within %s: %s\nlog:\n%s", d, what, r.log.String())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// holds fails if ok stops being true within that time.
func (r *rig) holds(d time.Duration, what string, ok func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(d); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if !ok() {
			r.t.Fatalf("no longer true: %s\nlog:\n%s", what, r.log.String())
		}
	}
}

// concurrently runs SQL on a connection of its own, and returns what waits for it.
func (r *rig) concurrently(sql string) (wait func()) {
	done := make(chan error, 1)
	go func() { done <- r.pg.Exec(context.Background(), r.db, sql) }()
	return func() {
		r.t.Helper()
		if err := <-done; err != nil {
			r.t.Fatalf("%s: %v", sql, err)
		}
	}
}

// snapshotBegun waits until the first attempt is stored: its snapshot is taken.
func (r *rig) snapshotBegun(run *running) {
	r.t.Helper()
	r.until("the snapshot has begun", func() bool {
		select {
		case <-run.done:
			r.t.Fatalf("the connector ended: %v\nlog:\n%s", run.err, r.log.String())
		default:
		}
		rec := r.record()
		return rec != nil && rec.Snapshot != nil && len(rec.Snapshot.Attempts) > 0
	})
}

// beforeInit runs f before the broker answers a request to initialise a transactional id.
func (r *rig) beforeInit(f func()) {
	cluster := r.broker.Cluster()
	cluster.ControlKey(22, func(k kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if k.(*kmsg.InitProducerIDRequest).TransactionalID != nil {
			cluster.SleepControl(f)
		}
		return nil, nil, false
	})
}

// metric returns the value of a gauge or counter that has no labels but the connector's; the sum
// where there are others.
func metric(t *testing.T, run *running, name string) (sum float64) {
	t.Helper()
	families, err := run.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return sum
}
