package connector_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// stable fails unless a read_committed consumer of a topic can read to its end, of which it returns
// how many records there are.
func (r *rig) stable(topic string) (records int64) {
	r.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(r.addrs()...))
	if err != nil {
		r.t.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	ends, err := admin.ListEndOffsets(r.t.Context(), topic)
	if err != nil {
		r.t.Fatal(err)
	}
	stable, err := admin.ListCommittedOffsets(r.t.Context(), topic)
	if err != nil {
		r.t.Fatal(err)
	}
	ends.Each(func(o kadm.ListedOffset) {
		records += o.Offset
		if s, _ := stable.Lookup(topic, o.Partition); s.Offset != o.Offset {
			r.t.Errorf("partition %d ends at %d, and is stable up to %d", o.Partition, o.Offset, s.Offset)
		}
	})
	return records
}

// sending reports whether a transaction with events is open: one of a position alone is over at once.
func (r *rig) sending() bool { return r.stored() > 0 && r.transaction() == "Ongoing" }

// A stop in the midst of a snapshot leaves no transaction open, for which read_committed consumers
// would have to wait until the broker gives it up. The rows come with the next start.
func TestExactlyOnceAStopInASnapshotLeavesNothingOpen(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.exactlyOnce(64 << 20)
	r.extra["exactly.once.batch.ms"] = "15000"
	r.exec(numbers, insertNumbers(1, 100_000))
	run := r.start()
	r.until("rows are in a transaction", r.sending)
	r.clean(run)
	if state := r.transaction(); state == "Ongoing" {
		t.Errorf("after the stop the transaction is %s", state)
	}
	if r.stable("shop.public.t") == 0 || r.record().Snapshot.Done {
		t.Fatal("the stop came before the first row or after the last one: nothing was tried")
	}
	r.exec("TRUNCATE t", insertNumbers(1, 10))
	run = r.start()
	r.streaming(run)
	r.caughtUp(run)
	r.clean(run)
	r.stable("shop.public.t")
	seen := map[int]bool{}
	for _, e := range r.committed("shop.public.t") {
		if e.op() == "r" {
			seen[ids([]event{e}, "id")[0]] = true
		}
	}
	if len(seen) != 10 {
		t.Errorf("%d rows of the snapshot that was taken again, want 10", len(seen))
	}
}

// A stop in the midst of a source transaction commits what was sent, and nothing stays open.
func TestExactlyOnceAStopInATransactionLeavesNothingOpen(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.exactlyOnce(64 << 10)
	r.exec(numbers)
	run := r.start()
	r.streaming(run)
	wait := r.concurrently(insertNumbers(1, 10_000))
	r.until("events are in a transaction", r.sending)
	r.clean(run)
	wait()
	if state := r.transaction(); state == "Ongoing" {
		t.Errorf("after the stop the transaction is %s", state)
	}
	r.stable("shop.public.t")
	run = r.start()
	r.streaming(run)
	r.caughtUp(run)
	r.clean(run)
	r.stable("shop.public.t")
	sameInts(t, "ids", ids(r.once("shop.public.t"), "id"), sequence(1, 10_000))
}
