package connector_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/offsets"
	"github.com/tidemark-cdc/tidemark/testenv"
)

// leaveCut runs a connector that is stopped in the midst of a transaction of 5 000 rows, and
// returns the record with the cut.
func (r *rig) leaveCut() *offsets.Record {
	r.t.Helper()
	r.exactlyOnce(2 << 10)
	r.exec(numbers)
	run := r.start()
	r.streaming(run)
	r.clean(run)
	r.exec(insertNumbers(1, 5000))
	child := r.child()
	r.until("a transaction is cut", func() bool { return r.record().LSNCommit != 0 })
	child.kill()
	rec := r.record()
	if rec.LSNCommit == 0 {
		r.t.Fatal("the transaction came whole before the connector was killed")
	}
	r.exactlyOnce(64 << 10)
	return rec
}

// What the stream has again is not what was cut: the connector stops and says so, and stores
// nothing.
func TestExactlyOnceStopsWhenTheCutDoesNotFit(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	whole := r.leaveCut()
	for name, tc := range map[string]struct {
		change func(*offsets.Record)
		text   string
	}{
		"a row elsewhere":       {func(rec *offsets.Record) { rec.RowLSN++ }, "lies elsewhere"},
		"a greater transaction": {func(rec *offsets.Record) { rec.LSNCommit-- }, "goes on behind it"},
		"too few rows": {
			func(rec *offsets.Record) { rec.EventIndex = 6000 }, "fewer row messages",
		},
	} {
		r.change(func(rec *offsets.Record) {
			*rec = *whole
			tc.change(rec)
		})
		contains(t, r.refused(fault.TransactionChanged), tc.text)
		if rec := r.record(); rec.LSN != whole.LSN {
			t.Errorf("%s: the position moved from %s to %s", name, whole.LSN, rec.LSN)
		}
	}
	r.change(func(rec *offsets.Record) { *rec = *whole })
	run := r.start()
	r.streaming(run)
	r.caughtUp(run)
	r.clean(run)
	sameInts(t, "ids", ids(r.once("shop.public.t"), "id"), sequence(1, 5000))
}

// With the mode off the transaction that was cut comes again whole; nothing is missing, and the
// record forgets the cut.
func TestTheModeSwitchedOffSendsACutTransactionAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	cut := r.leaveCut()
	r.extra["exactly.once.support"] = "disabled"
	run := r.start()
	r.streaming(run)
	if rec := r.record(); rec.LSNCommit != 0 || rec.EventIndex != 0 || rec.RowLSN != 0 {
		t.Errorf("the record still has the cut: %+v", rec)
	}
	r.caughtUp(run)
	r.clean(run)
	events := r.committed("shop.public.t")
	if n := len(events); n != 5000+int(cut.EventIndex) {
		t.Errorf("%d events, want 5000 and the %d that were there", n, cut.EventIndex)
	}
	seen := map[int]bool{}
	for _, id := range ids(events, "id") {
		seen[id] = true
	}
	if len(seen) != 5000 {
		t.Errorf("%d rows of 5000", len(seen))
	}
	r.extra["exactly.once.support"] = "required"
	run = r.start()
	r.streaming(run)
	r.exec(insertNumbers(5001, 5002))
	r.caughtUp(run)
	r.clean(run)
	if n := len(r.committed("shop.public.t")); n != len(events)+2 {
		t.Errorf("%d events after two more, and %d before", n, len(events))
	}
}

// The broker aborts a transaction that stands still longer than transaction.timeout.ms. The slot is
// still ours, so the session begins again and sends what was aborted.
func TestF36ExactlyOnceWhenItsTransactionTimesOut(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.exactlyOnce(1 << 20)
	r.extra["producer.override.transaction.timeout.ms"] = "1000"
	r.extra["exactly.once.batch.ms"] = "250"
	r.exec(numbers)
	run := r.start()
	r.streaming(run)
	r.exec(insertNumbers(1, 5))
	r.caughtUp(run)
	release := r.refuseCommits()
	r.exec(insertNumbers(6, 10))
	r.until("events are in a transaction", func() bool { return r.transaction() == "Ongoing" })
	r.until("the broker aborts it", func() bool { return r.transaction() != "Ongoing" })
	release()
	r.until("the session begins again", func() bool {
		return r.logged("the broker had given up our own transaction")
	})
	contains(t, r.log.String(), "producer.override.transaction.timeout.ms")
	r.caughtUp(run)
	r.clean(run)
	sameInts(t, "ids", ids(r.once("shop.public.t"), "id"), sequence(1, 10))
}

// transaction is the state of the connector's transactional id.
func (r *rig) transaction() string {
	r.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(r.addrs()...))
	if err != nil {
		r.t.Fatal(err)
	}
	defer client.Close()
	id := offsets.TransactionalID("c1")
	described, err := kadm.NewClient(client).DescribeTransactions(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return described[id].State
}

// refuseCommits keeps produce requests of the offsets topic from being taken, so that a
// transaction that has events cannot end.
func (r *rig) refuseCommits() (release func()) {
	cluster := r.broker.Cluster()
	topic := cluster.TopicInfo("tidemark-offsets").TopicID
	return r.refuseAny(func(req *kmsg.ProduceRequest) bool {
		for _, t := range req.Topics {
			if t.Topic == "tidemark-offsets" || t.TopicID == topic {
				return true
			}
		}
		return false
	})
}

// Messages outside of transactions are sent once too, over kills and stops.
func TestExactlyOnceMessagesOutsideOfTransactions(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.exactlyOnce(1 << 20)
	r.extra["message.prefix.include.list"] = "app"
	r.exec(numbers)
	run := r.start()
	r.streaming(run)
	for i := range 4 {
		// The position stays before them: nothing is committed behind them.
		r.exec(fmt.Sprintf("SELECT pg_logical_emit_message(false, 'app', 'm%d')", i),
			"SELECT pg_switch_wal()")
		r.until("the message is there", func() bool {
			return r.record().MessageLSN > 0 && len(r.committed("shop.message")) == i+1
		})
		r.clean(run)
		run = r.start()
		r.streaming(run)
	}
	r.exec(insertNumbers(1, 1))
	r.caughtUp(run)
	r.clean(run)
	if n := len(r.committed("shop.message")); n != 4 {
		t.Errorf("%d messages, want 4", n)
	}
}

// A foreign transaction that is open on the offsets topic blocks the start, for a bounded time, and
// is named.
func TestF38ExactlyOnceBlockedByAForeignTransaction(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.exactlyOnce(1 << 20)
	r.exec(numbers, insertNumbers(1, 3))
	run := r.start()
	r.streaming(run)
	r.clean(run)
	client, err := kgo.NewClient(kgo.SeedBrokers(r.addrs()...), kgo.TransactionalID("somebody"),
		kgo.TransactionTimeout(15*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if err := client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	rec := &kgo.Record{Topic: "tidemark-offsets", Key: []byte("k"), Value: []byte("v")}
	if err := client.ProduceSync(t.Context(), rec).FirstErr(); err != nil {
		t.Fatal(err)
	}
	run = r.start()
	r.until("the start says what it waits for", func() bool {
		return r.logged("waiting for an open transaction on the offsets topic")
	})
	if err := client.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
	r.streaming(run)
	r.exec(insertNumbers(4, 4))
	r.caughtUp(run)
	r.clean(run)
	sameInts(t, "ids", ids(r.once("shop.public.t"), "id"), sequence(1, 4))
}

// Brokers that are away for longer than the transaction's timeout cost nothing but time.
func TestF19ExactlyOnceOverARestartOfTheBroker(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.exactlyOnce(64 << 10)
	r.extra["producer.override.transaction.timeout.ms"] = "2000"
	broker, err := testenv.StartFakeBroker(testenv.FakeBrokerOptions{Persist: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { broker.Close() })
	r.broker = broker
	r.exec(numbers)
	run := r.start()
	r.streaming(run)
	for i := range 3 {
		wait := r.concurrently(insertNumbers(i*5000+1, (i+1)*5000))
		r.until("a transaction is under way", func() bool {
			return position(t, run, "received") > position(t, run, "confirmed") || i > 0
		})
		r.broker.Stop()
		wait()
		time.Sleep(time.Duration(i) * 1500 * time.Millisecond)
		if err := r.broker.Start(); err != nil {
			t.Fatal(err)
		}
		r.caughtUp(run)
	}
	r.clean(run)
	got := ids(r.once("shop.public.t"), "id")
	sameInts(t, "ids "+strconv.Itoa(len(got)), got, sequence(1, 15000))
}
