package offsets

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// data is a producer of events, as far as the store knows.
type data struct {
	t      *testing.T
	client *kgo.Client
	failed error
}

func (d *data) Client() *kgo.Client             { return d.client }
func (d *data) Flush(ctx context.Context) error { return errors.Join(d.failed, d.client.Flush(ctx)) }

// send produces an event to partition 0 of the topic events and waits.
func (d *data) send(value string) error {
	return d.client.ProduceSync(d.t.Context(), &kgo.Record{
		Topic: "events", Value: []byte(value),
	}).FirstErr()
}

func newData(t *testing.T, c *kfake.Cluster) *data {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...),
		kgo.TransactionalID(TransactionalID("shop")), kgo.TransactionTimeout(10*time.Second),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &data{t: t, client: client}
}

func eventsCluster(t *testing.T) *kfake.Cluster {
	return newCluster(t, kfake.SeedTopics(1, "events"))
}

// fencedWith returns a store whose writer is the producer of events.
func fencedWith(t *testing.T, c *kfake.Cluster) (*Store, *data) {
	t.Helper()
	s, d := openStore(t, c), newData(t, c)
	if err := s.FenceWith(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	return s, d
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantEvents fails unless a read_committed consumer sees these events.
func wantEvents(t *testing.T, c *kfake.Cluster, want ...string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ConsumeTopics("events"),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	must(t, err)
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(t.Context(), "events")
	must(t, err)
	end, _ := ends.Lookup("events", 0)
	var got []string
	for next := int64(0); next < end.Offset; {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		fetches := client.PollFetches(ctx)
		cancel()
		must(t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			next = r.Offset + 1
			if !r.Attrs.IsControl() {
				got = append(got, string(r.Value))
			}
		})
	}
	if !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
}

func TestStoreCommitsEventsAndRecordTogether(t *testing.T) {
	c := eventsCluster(t)
	s, d := fencedWith(t, c)
	mustSave(t, s, position(5)) // without events
	for i, value := range []string{"a", "b"} {
		must(t, s.Begin(t.Context()))
		must(t, s.Begin(t.Context())) // again is nothing
		must(t, d.send(value))
		mustSave(t, s, position(LSN(10*(i+1))))
	}
	wantLoad(t, s, 20)
	wantEvents(t, c, "a", "b")
}

func TestStoreCommitsNothingWhenAnEventFailed(t *testing.T) {
	c := eventsCluster(t)
	s, d := fencedWith(t, c)
	must(t, s.Begin(t.Context()))
	must(t, d.send("lost"))
	d.failed = fault.New(fault.RecordTooLarge, "an event is too large")
	if err := s.Save(t.Context(), position(10)); fault.CodeOf(err) != fault.RecordTooLarge {
		t.Fatalf("%v", err)
	}
	if err := s.Begin(t.Context()); !errors.Is(err, ErrNotFenced) {
		t.Fatalf("%v", err)
	}
	must(t, s.FenceWith(t.Context(), newData(t, c))) // aborts
	wantLoad(t, s, 0)
	wantEvents(t, c)
}

func TestStoreFencesTheProducerOfEvents(t *testing.T) {
	c := eventsCluster(t)
	first, d := fencedWith(t, c)
	must(t, first.Begin(t.Context()))
	must(t, d.send("never seen"))
	second, e := fencedWith(t, c)
	must(t, second.Begin(t.Context()))
	must(t, e.send("second"))
	if err := first.Save(t.Context(), position(10)); fault.CodeOf(err) != fault.Fenced {
		t.Errorf("%v", err)
	}
	if err := d.send("too late"); err == nil {
		t.Error("the first producer could still write")
	}
	mustSave(t, second, position(20)) // and was not fenced by the first one's attempts
	wantLoad(t, second, 20)
	wantEvents(t, c, "second")
}

// A client that takes another epoch in the midst of a transaction has lost what came before.
func TestStoreCommitsOnlyWhatItBegan(t *testing.T) {
	c := eventsCluster(t)
	s, d := fencedWith(t, c)
	must(t, s.Begin(t.Context()))
	must(t, d.send("a"))
	s.begun.epoch++
	err := s.Save(t.Context(), position(10))
	if fault.CodeOf(err) != fault.BrokerUnreachable || errors.Is(err, ErrUnknownOutcome) {
		t.Errorf("%v", err)
	}
	must(t, s.FenceWith(t.Context(), newData(t, c)))
	wantLoad(t, s, 0)
	wantEvents(t, c)
}

// The transaction of our own dead process is no reason to wait: it is not committed, and Fence
// ends it. One that is being committed is waited for.
func TestStoreLoadDoesNotWaitForOurOwnOpenTransaction(t *testing.T) {
	c := newCluster(t)
	s := fenced(t, c)
	mustSave(t, s, position(10))
	openTransaction(t, c, TransactionalID("shop"), shopKey, shopValue)
	began := time.Now()
	wantLoad(t, s, 10)
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("Load took %v", took)
	}
	committing := true
	c.ControlKey(int16(kmsg.DescribeTransactions), func(k kmsg.Request) (
		kmsg.Response, error, bool,
	) {
		c.KeepControl()
		if !committing {
			return nil, nil, false
		}
		resp := k.ResponseKind().(*kmsg.DescribeTransactionsResponse)
		st := kmsg.NewDescribeTransactionsResponseTransactionState()
		st.TransactionalID, st.State = TransactionalID("shop"), "PrepareCommit"
		resp.TransactionStates = append(resp.TransactionStates, st)
		return resp, nil, true
	})
	waiting := openStore(t, c, func(o *StoreOptions) { o.ReadTimeout = 300 * time.Millisecond })
	if _, err := waiting.Load(t.Context()); fault.CodeOf(err) != fault.OffsetsUnreadable {
		t.Errorf("%v", err)
	}
}

// A broker that was killed can hold our dead process's transaction for open in the partition though
// its coordinator holds it for ended. It is told by its producer id, and is no reason to wait either;
// one of another producer is.
func TestStoreLoadDoesNotWaitForOurOwnTransactionThatWasLeftOpen(t *testing.T) {
	c := newCluster(t)
	s := fenced(t, c)
	mustSave(t, s, position(10))
	openTransaction(t, c, TransactionalID("shop"), shopKey, shopValue)
	transactions, err := s.admin.DescribeTransactions(t.Context(), TransactionalID("shop"))
	if err != nil {
		t.Fatal(err)
	}
	ours := transactions[TransactionalID("shop")].ProducerID
	var described atomic.Int64 // the producer id that the coordinator gives for our transactional id
	described.Store(ours)
	c.ControlKey(int16(kmsg.DescribeTransactions), func(k kmsg.Request) (
		kmsg.Response, error, bool,
	) {
		c.KeepControl()
		resp := k.ResponseKind().(*kmsg.DescribeTransactionsResponse)
		st := kmsg.NewDescribeTransactionsResponseTransactionState()
		st.TransactionalID, st.State = TransactionalID("shop"), "CompleteCommit"
		st.ProducerID = described.Load()
		resp.TransactionStates = append(resp.TransactionStates, st)
		return resp, nil, true
	})
	wantLoad(t, openStore(t, c, func(o *StoreOptions) { o.ReadTimeout = 2 * time.Second }), 10)
	described.Store(ours + 1)
	waiting := openStore(t, c, func(o *StoreOptions) { o.ReadTimeout = 300 * time.Millisecond })
	if _, err := waiting.Load(t.Context()); fault.CodeOf(err) != fault.OffsetsUnreadable {
		t.Errorf("the transaction of another producer: %v", err)
	}
}

func TestStoreFenceWithThatIsForbidden(t *testing.T) {
	c := eventsCluster(t)
	c.ControlKey(int16(kmsg.InitProducerID), func(k kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		resp := k.ResponseKind().(*kmsg.InitProducerIDResponse)
		resp.ErrorCode = kerr.TransactionalIDAuthorizationFailed.Code
		return resp, nil, true
	})
	s := openStore(t, c)
	err := s.FenceWith(t.Context(), newData(t, c))
	if fault.CodeOf(err) != fault.BrokerForbids {
		t.Errorf("%v", err)
	}
	if err := s.Save(t.Context(), position(1)); !errors.Is(err, ErrNotFenced) {
		t.Errorf("%v", err)
	}
}
