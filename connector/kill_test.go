package connector_test

import (
	"errors"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/tidemark-cdc/tidemark/offsets"
	"github.com/tidemark-cdc/tidemark/testenv"
)

// The tests of this file kill the connector, as kill -9 does, at steps that a broker sees: its
// process is dead before the broker answers.

// killOn starts the connector and kills it when the broker gets the first request of a kind that
// which selects. applied says whether the broker does what it was asked; nobody gets its answer.
func (r *rig) killOn(key kmsg.Key, applied bool, which func(kmsg.Request) bool) {
	r.t.Helper()
	cluster := r.broker.Cluster()
	var victim atomic.Pointer[child]
	var seen atomic.Bool
	cluster.ControlKey(int16(key), func(k kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		c := victim.Load()
		if c == nil || !which(k) || seen.Swap(true) {
			return nil, nil, false
		}
		c.kill()
		if applied {
			return nil, nil, false
		}
		return nil, errors.New("the connection is gone"), true
	})
	c := r.child()
	victim.Store(c)
	r.until("the connector is killed", func() bool {
		select {
		case <-c.done:
			return true
		default:
			return false
		}
	})
	victim.Store(nil)
	if !seen.Load() {
		r.t.Fatalf("the connector ended before the broker saw it\nlog:\n%s", r.log.String())
	}
}

// sends selects produce requests to a topic.
func (r *rig) sends(topic string) func(kmsg.Request) bool {
	id := r.broker.Cluster().TopicInfo(topic).TopicID
	return func(k kmsg.Request) bool {
		for _, t := range k.(*kmsg.ProduceRequest).Topics {
			if t.Topic == topic || t.TopicID == id {
				return true
			}
		}
		return false
	}
}

// afterSending selects requests that come when n records of a topic have been sent.
func (r *rig) afterSending(topic string, n int64) func(kmsg.Request) bool {
	var sent atomic.Int64
	cluster, sends := r.broker.Cluster(), r.sends(topic)
	cluster.ControlKey(int16(kmsg.Produce), func(k kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if sends(k) {
			sent.Add(int64(records(k.(*kmsg.ProduceRequest))))
		}
		return nil, nil, false
	})
	return func(kmsg.Request) bool { return sent.Load() >= n }
}

// killed streams four rows, and then kills a connector over the rows 5 to 1004 of one transaction.
// It returns the record that there was before.
func (r *rig) killed(kill func()) *offsets.Record {
	r.t.Helper()
	r.onePartition()
	r.streamedOnce()
	before := r.record()
	r.exec(insertNumbers(5, 1004))
	kill()
	return before
}

func (r *rig) exactly() bool { return r.extra["exactly.once.support"] == "required" }

// sent is the number of records that the topic of the table ever got, whatever became of them.
func (r *rig) sent() int64 {
	return r.broker.Cluster().PartitionInfo("shop.public.t", 0).HighWatermark
}

// recovered starts the connector again, with a row behind the others, and returns what consumers
// see: exactly once nothing comes twice; otherwise a stretch may, which begins at a row that is
// there already and goes on without a hole.
func (r *rig) recovered(last int) []int {
	r.t.Helper()
	r.exec(insertNumbers(last, last))
	run := r.start()
	r.streaming(run)
	r.caughtUp(run)
	r.clean(run)
	if r.exactly() {
		list := ids(r.once("shop.public.t"), "id")
		sameInts(r.t, "ids", list, sequence(1, last))
		return list
	}
	events := r.committed("shop.public.t")
	var list []int
	most := 0
	for i, e := range events {
		id := ids(events[i:i+1], "id")[0]
		if list = append(list, id); id > most+1 || i > 0 && id != list[i-1]+1 && id > most {
			r.t.Fatalf("row %d comes behind %d, and %d were there", id, list[max(i-1, 0)], most)
		}
		if h := e.headers["tidemark.event_index"]; id >= 5 && id < last && h != strconv.Itoa(id-5) {
			r.t.Fatalf("row %d has the index %s", id, h)
		}
		most = max(most, id)
	}
	if most != last {
		r.t.Errorf("the last row is %d, want %d", most, last)
	}
	return list
}

func TestF04KilledBeforeTheBrokersAnswer(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, r *rig) {
		before := r.killed(func() { r.killOn(kmsg.Produce, true, r.sends("shop.public.t")) })
		if rec := r.record(); rec.LSN != before.LSN {
			t.Errorf("position %s was stored, and nothing was answered", rec.LSN)
		}
		r.recovered(1005)
	})
}

// The broker has answered for all rows, and gets the request that would make the position count.
func TestF05KilledBeforeThePositionIsStored(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, r *rig) {
		r.exactlyOnceWhole()
		before := r.killed(func() { r.killOn(kmsg.EndTxn, false, r.afterSending("shop.public.t", 1000)) })
		if rec := r.record(); rec.LSN != before.LSN {
			t.Errorf("position %s was stored", rec.LSN)
		}
		seen := len(r.recovered(1005))
		if n := r.sent(); n < 2005 || !r.exactly() && seen != 2005 {
			t.Errorf("%d records are there, and %d count: the rows were not sent twice", n, seen)
		}
	})
}

// exactlyOnceWhole makes Kafka transactions large enough for any transaction of these tests.
func (r *rig) exactlyOnceWhole() {
	if r.exactly() {
		r.exactlyOnce(1 << 20)
	}
}

// The position is stored, and nobody has heard of it: not the connector, not the slot. What is
// stored counts, so nothing comes again in either mode.
func TestF06KilledBeforeTheSlotIsTold(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, r *rig) {
		r.exactlyOnceWhole()
		before := r.killed(func() { r.killOn(kmsg.EndTxn, true, r.afterSending("shop.public.t", 1000)) })
		rec := r.record()
		if flushed := r.confirmedFlush(); rec.LSN <= before.LSN || flushed >= rec.LSN {
			t.Fatalf("stored %s after %s, the slot at %s: want a slot that is behind", rec.LSN,
				before.LSN, flushed)
		}
		sameInts(t, "ids", r.recovered(1005), sequence(1, 1005))
	})
}

func TestF07KilledAfterTheSlotWasTold(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, r *rig) {
		r.killed(func() {
			end := r.lsn("SELECT pg_current_wal_insert_lsn()::text")
			c := r.child()
			r.until("the slot is told", func() bool { return r.confirmedFlush() >= end })
			c.kill()
		})
		if stored, flushed := r.record().LSN, r.confirmedFlush(); flushed > stored {
			t.Errorf("the slot is at %s, and %s is stored", flushed, stored)
		}
		sameInts(t, "ids", r.recovered(1005), sequence(1, 1005))
	})
}

// One source transaction is many batches, and exactly once many Kafka transactions.
func TestF08KilledWithinATransaction(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, r *rig) {
		r.extra["producer.override.max.request.size"] = "10000"
		if r.exactly() {
			r.exactlyOnce(8 << 10)
		}
		before := r.killed(func() { r.killOn(kmsg.Produce, true, r.afterSending("shop.public.t", 300)) })
		rec := r.record()
		if n := r.sent(); n < 100 || n > 1000 {
			t.Fatalf("%d records are there: it is not the midst", n)
		}
		if cut := rec.LSNCommit != 0; cut != r.exactly() ||
			!cut && rec.LSN != before.LSN {
			t.Errorf("stored in the midst of the transaction: %+v", rec)
		}
		r.recovered(1005)
	})
}

// The registry has the schema or has not got it, and the process that asked for it is dead.
func TestF09KilledWhileItRegistersASchema(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, r *rig) {
		r.onePartition()
		r.streamedOnce()
		r.exec("ALTER TABLE t ADD COLUMN n int", insertNumbers(5, 7))
		for _, stored := range []bool{false, true} {
			r.registry.Inject(testenv.RegistryFault{
				Method: "POST", Path: "shop.public.t-value", Count: -1, Hang: true, AfterStoring: stored,
			})
			asked := len(r.registry.Requests())
			c := r.child()
			r.until("it registers", func() bool {
				return slices.Contains(r.registry.Requests()[asked:],
					"POST /subjects/shop.public.t-value/versions")
			})
			c.kill()
			r.registry.ClearFaults()
			sameInts(t, "ids", ids(r.committed("shop.public.t"), "id"), sequence(1, 4))
		}
		r.exec(insertNumbers(8, 8))
		run := r.start()
		r.streaming(run)
		r.caughtUp(run)
		r.clean(run)
		// Reading resolves the id of every record.
		sameInts(t, "ids", ids(r.committed("shop.public.t"), "id"), sequence(1, 8))
		if n := r.versions("shop.public.t-value"); n != 2 {
			t.Errorf("the subject has %d versions, want 2", n)
		}
	})
}

func (r *rig) versions(subject string) int {
	r.t.Helper()
	client, err := sr.NewClient(sr.URLs(r.registry.URL))
	if err != nil {
		r.t.Fatal(err)
	}
	versions, err := client.SubjectVersions(r.t.Context(), subject)
	if err != nil {
		r.t.Fatal(err)
	}
	return len(versions)
}
