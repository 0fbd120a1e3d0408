package connector_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/offsets"
)

// exactlyOnce sets the mode, with Kafka transactions of few events.
func (r *rig) exactlyOnce(bytes int) {
	r.extra["exactly.once.support"] = "required"
	r.extra["exactly.once.batch.bytes"] = fmt.Sprint(bytes)
}

// committed returns what a read_committed consumer sees of a topic up to its present end.
func (r *rig) committed(topic string) []event {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(r.addrs()...), kgo.ConsumeTopics(topic),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	if err != nil {
		r.t.Fatal(err)
	}
	defer client.Close()
	listed, err := kadm.NewClient(client).ListEndOffsets(ctx, topic)
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		r.t.Fatalf("where %s ends: %v\nlog:\n%s", topic, err, r.log.String())
	}
	left := map[int32]int64{}
	listed.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
		}
	})
	var out []event
	toEvent := r.toEvent(ctx)
	for len(left) > 0 {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			r.t.Fatalf("%d events of %s came; partitions not at their end: %v\nlog:\n%s", len(out),
				topic, left, r.log.String())
		}
		fetches.EachRecord(func(rec *kgo.Record) {
			if end, ok := left[rec.Partition]; ok && rec.Offset+1 >= end {
				delete(left, rec.Partition)
			}
			if !rec.Attrs.IsControl() {
				out = append(out, toEvent(rec))
			}
		})
	}
	return out
}

// logged reports whether the log has a text.
func (r *rig) logged(text string) bool { return strings.Contains(r.log.String(), text) }

// once fails unless each event of the topic comes once by its identity, and returns them.
func (r *rig) once(topic string) []event {
	r.t.Helper()
	events := r.committed(topic)
	seen := map[string]bool{}
	for _, e := range events {
		h := e.headers
		id := fmt.Sprint(h["tidemark.history"], h["tidemark.commit_lsn"], h["tidemark.event_index"],
			e.partition, e.key, e.op())
		if e.op() == "r" {
			id = fmt.Sprint(e.partition, e.key)
		}
		if seen[id] {
			r.t.Errorf("twice: %s %s", id, e)
		}
		seen[id] = true
	}
	return events
}

func TestExactlyOnceSnapshotAndEveryOperation(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.onePartition()
	r.exactlyOnce(1 << 20)
	r.exec(numbers, insertNumbers(1, 2))
	run := r.start()
	r.streaming(run)
	r.exec(insertNumbers(3, 3), "UPDATE t SET v = 'u' WHERE id = 3",
		"UPDATE t SET id = 4 WHERE id = 3", "DELETE FROM t WHERE id = 4", "TRUNCATE t")
	r.caughtUp(run)
	r.clean(run)
	run = r.start()
	r.streaming(run)
	r.caughtUp(run)
	r.clean(run)
	same(t, lines(r.once("shop.public.t")), []string{
		"r NOT_APPLICABLE {id:1} {id:1 v:v1}", "r NOT_APPLICABLE {id:2} {id:2 v:v2}",
		"c NOT_APPLICABLE {id:3} {id:3 v:v3}", "u ABSENT {id:3} {id:3 v:u}",
		"d KEY {id:3} old{id:3}", "x {id:3}", "c KEY {id:4} {id:4 v:u} old{id:3}",
		"d KEY {id:4} old{id:4}", "x {id:4}", "t NOT_APPLICABLE -",
	})
}

// A source transaction of 5 000 rows is many Kafka transactions, and comes whole.
func TestF58ExactlyOnceSplitsALargeTransaction(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.exactlyOnce(64 << 10)
	r.exec(numbers)
	run := r.start()
	r.streaming(run)
	r.exec(insertNumbers(1, 5000))
	r.caughtUp(run)
	if rec := r.record(); rec.LSNCommit != 0 || rec.EventIndex != 0 || rec.RowLSN != 0 {
		t.Errorf("after the end of the transaction: %+v", rec)
	}
	r.clean(run)
	sameInts(t, "ids", ids(r.once("shop.public.t"), "id"), sequence(1, 5000))
}

// The answer to EndTxn is lost, after the broker has committed or before it has seen it: the
// session ends, and the next one goes on from what is there. At least once that is the transaction
// of a position, exactly once of events too.
func TestF34TheOutcomeOfACommitIsNotKnown(t *testing.T) {
	t.Parallel()
	for _, committed := range []bool{true, false} {
		t.Run(fmt.Sprintf("committed=%v", committed), func(t *testing.T) {
			inBothModes(t, func(t *testing.T, r *rig) {
				r.exec(numbers)
				run := r.start()
				r.streaming(run)
				r.exec(insertNumbers(1, 10))
				r.caughtUp(run)
				nth := int64(1)
				if r.exactly() {
					nth = 5
				}
				r.unknownOutcome(nth, committed)
				r.exec(insertNumbers(11, 5000))
				r.until("the outcome was not known", func() bool {
					return r.logged("outcome of the offsets transaction is not known")
				})
				r.caughtUp(run)
				r.clean(run)
				r.inOrder(5000)
			})
		})
	}
}

// unknownOutcome makes the broker say of its n-th commit from now on that it does not know what
// became of it; whether it was carried out is the caller's choice.
func (r *rig) unknownOutcome(n int64, committed bool) {
	cluster := r.broker.Cluster()
	client, err := kgo.NewClient(kgo.SeedBrokers(r.addrs()...))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(client.Close)
	var seen atomic.Int64
	cluster.ControlKey(int16(kmsg.EndTxn), func(k kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if seen.Add(1) != n {
			return nil, nil, false
		}
		req := k.(*kmsg.EndTxnRequest)
		if committed {
			copied := *req
			cluster.SleepControl(func() {
				resp, err := copied.RequestWith(r.t.Context(), client)
				if err == nil {
					err = kerr.ErrorForCode(resp.ErrorCode)
				}
				if err != nil {
					r.t.Error(err)
				}
			})
		}
		resp := req.ResponseKind().(*kmsg.EndTxnResponse)
		resp.ErrorCode = kerr.UnknownServerError.Code
		return resp, nil, true
	})
}

// Another process takes the connector over while the first one's slot is gone for it: the first
// stops, and what it had not committed is not seen.
func TestExactlyOnceStopsWhenItIsFenced(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.exactlyOnce(1 << 20)
	r.extra["errors.retry.delay.max.ms"] = "500"
	r.exec(numbers)
	run := r.start()
	r.streaming(run)
	r.exec(insertNumbers(1, 10))
	r.caughtUp(run)
	r.change(func(*offsets.Record) {}) // fences; the slot is still the first one's
	r.exec(insertNumbers(11, 20))
	r.until("the session begins again", func() bool {
		return r.logged("the broker had given up our own transaction")
	})
	r.caughtUp(run)
	r.clean(run)
	sameInts(t, "ids", ids(r.once("shop.public.t"), "id"), sequence(1, 20))
}

// Idle positions are stored and told in this mode too: WAL that others write does not stay.
func TestF60ExactlyOnceIdleAdvance(t *testing.T) {
	t.Parallel()
	r := newRigOn(t, ownServer(t, "18", nil))
	r.exactlyOnce(1 << 20)
	r.extra["idle.advance.after.ms"] = "100"
	r.extra["heartbeat.interval.ms"] = "0"
	r.extra["heartbeat.verify.interval.ms"] = "0"
	r.exec(numbers, insertNumbers(1, 3))
	run := r.start()
	r.streaming(run)
	r.exec("CREATE UNLOGGED TABLE noise (id int)", "SELECT pg_switch_wal()", "CHECKPOINT")
	mark := r.lsn("SELECT pg_current_wal_insert_lsn()::text")
	r.until("the slot follows", func() bool { return r.confirmedFlush() >= mark })
	if rec := r.record(); rec.LSN < mark || rec.LSNCommit != 0 {
		t.Errorf("stored: %+v", rec)
	}
	r.clean(run)
}

// A snapshot is many transactions, and a table's state is in that of its last rows. Killed in its
// midst it begins again, and each row that was not there comes once.
func TestF02ExactlyOnceSnapshotThatIsKilled(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.exactlyOnce(128 << 10)
	r.exec(numbers, insertNumbers(1, 10_000), "CREATE TABLE a (id int PRIMARY KEY)",
		"INSERT INTO a SELECT generate_series(1, 100)")
	child := r.child()
	r.until("the snapshot has begun", func() bool {
		rec := r.record()
		return rec != nil && rec.Snapshot != nil && len(rec.Snapshot.Attempts) > 0
	})
	child.kill()
	if r.record().HasPosition() {
		t.Log("the snapshot was done before the connector was killed")
	}
	run := r.start()
	r.streaming(run)
	r.exec(insertNumbers(10_001, 10_002))
	r.caughtUp(run)
	r.clean(run)
	last := map[string]int64{}
	pair := func(e event) int64 { return inner(row(e.value["source"])["commit_lsn"]).(int64) }
	for _, e := range r.committed("shop.public.t") {
		key := fmt.Sprint(e.key)
		if before, ok := last[key]; ok && e.op() == "r" && pair(e) <= before {
			t.Errorf("%s came again without a greater pair", e)
		}
		last[key] = pair(e)
	}
	if len(last) != 10_002 {
		t.Errorf("%d rows, want 10002", len(last))
	}
	sameInts(t, "a", slices.Compact(ids(r.committed("shop.public.a"), "id")), sequence(1, 100))
}
