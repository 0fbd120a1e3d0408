package deliver

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/envelope"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/testenv"
)

func TestF19F21ABrokerThatIsAwayIsWaitedFor(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(1, "t"))
	p := producer(t, options(c), "t")
	m, tx := newMade(t), newAcks()
	// Hang up on ten requests, then refuse three as a broker does that is losing its leadership.
	hangups := 0
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if hangups++; hangups > 10 {
			c.DropControl()
			return nil, nil, false
		}
		return nil, errHangUp, true
	})
	refused := c.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotEnoughReplicas, Count: 3,
	})
	for _, v := range []string{"1", "2", "3"} {
		must(t, p.Send(t.Context(), []envelope.Record{m.record("t", "k", v)}, tx))
	}
	tx.wait(t, 3)
	if len(tx.errs) != 0 || p.Err() != nil || refused.Hits() != 3 {
		t.Fatalf("errors %v, producer %v, refusals %d", tx.errs, p.Err(), refused.Hits())
	}
	var got []string
	for _, r := range read(t, c, "t")[0] {
		got = append(got, string(r.Value))
	}
	if strings.Join(got, " ") != "1 2 3" {
		t.Fatalf("the topic holds %v", got)
	}
	m.allReleased()
}

var errHangUp = kerr.NetworkException

func TestF19AClusterThatRestartsIsWaitedFor(t *testing.T) {
	t.Parallel()
	b, err := testenv.StartFakeBroker(testenv.FakeBrokerOptions{
		Persist: true, Options: []kfake.Opt{kfake.SeedTopics(2, "t")},
	})
	must(t, err)
	t.Cleanup(func() { must(t, b.Close()) })
	o := Options{
		Kafka: config.Kafka{Bootstrap: b.Addrs()}, Queue: NewQueue(1<<20, nil),
		extra: []kgo.Opt{kgo.MetadataMinAge(10 * time.Millisecond)},
	}
	p := producer(t, o, "t")
	m, tx := newMade(t), newAcks()
	const n = 40
	for i := range n {
		if i == n/2 {
			tx.wait(t, n/2)
			b.Stop()
		}
		must(t, p.Send(t.Context(), []envelope.Record{m.record("t", "abc", fmt.Sprint(i))}, tx))
	}
	waiting := time.Now().Add(patience)
	for p.Stalled() < 500*time.Millisecond { // some dials have been refused by then
		if time.Now().After(waiting) {
			t.Fatal("the producer does not say that nothing is confirmed")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if p.Err() != nil || p.Unconfirmed() != n/2 {
		t.Fatalf("Err %v, %d unconfirmed", p.Err(), p.Unconfirmed())
	}
	must(t, b.Start())
	tx.wait(t, n)
	if len(tx.failures()) != 0 || p.Stalled() != 0 {
		t.Fatalf("failures %v, stalled %v", tx.failures(), p.Stalled())
	}
	got := read(t, b.Cluster(), "t")[1] // 479470107 % 2
	if len(got) != n {
		t.Fatalf("%d records, want %d", len(got), n)
	}
	for i, r := range got {
		if string(r.Value) != fmt.Sprint(i) {
			t.Fatalf("record %d is %q", i, r.Value)
		}
	}
	m.allReleased()
}

func TestAFailedRecordEndsTheProducer(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(2, "t"))
	p := producer(t, options(c), "t")
	m, tx := newMade(t), newAcks()
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.MessageTooLarge})
	must(t, p.Send(t.Context(), []envelope.Record{m.record("t", "secret-key", "1")}, tx))
	await(t, "the failure", p.Failed())
	tx.wait(t, 1)
	wantCode(t, tx.failures()[0], fault.RecordTooLarge)
	err := p.Send(t.Context(), []envelope.Record{m.record("t", "secret-key", "2")}, tx)
	wantCode(t, err, fault.RecordTooLarge)
	if !strings.Contains(err.Error(), "topic t") || strings.Contains(err.Error(), "secret") {
		t.Errorf("the error is %q", err)
	}
	wantCode(t, p.Flush(t.Context()), fault.RecordTooLarge)
	if got := read(t, c, "t"); len(got) != 0 {
		t.Fatalf("the topic holds %v", got)
	}
	m.allReleased()
}

// The promises' goroutine is held up while a batch fails and a record of the same key follows. The
// client would write that record under a new epoch before anybody hears of the failure.
func TestF24NothingIsWrittenBehindAFailedBatch(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(1, "t"))
	p := producer(t, options(c), "t")
	m, first, tx := newMade(t), newAcks(), newAcks()
	confirmed, goOn := make(chan struct{}), make(chan struct{})
	first.onDone = func() { close(confirmed); <-goOn }
	free := sync.OnceFunc(func() { close(goOn) })
	defer free()
	must(t, p.Send(t.Context(), []envelope.Record{m.record("t", "k", "1")}, first))
	await(t, "the first record", confirmed)

	failing := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.MessageTooLarge})
	must(t, p.Send(t.Context(), []envelope.Record{m.record("t", "k", "2")}, tx))
	must(t, failing.Wait(t.Context(), 1))
	sent := make(chan error, 1)
	go func() {
		// The fault is counted before the client has the answer: go on until it has acted on it.
		for {
			err := p.Send(t.Context(), []envelope.Record{m.record("t", "k", "3")}, tx)
			if err != nil {
				sent <- err
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	await(t, "the client's new epoch", p.ctx.Done())
	free()
	wantCode(t, <-sent, fault.RecordTooLarge)
	wantCode(t, p.Err(), fault.RecordTooLarge)
	p.Close()
	got := read(t, c, "t")[0]
	if len(got) != 1 || string(got[0].Value) != "1" {
		t.Fatalf("%d records are in the topic, the last %q", len(got), got[len(got)-1].Value)
	}
	m.allReleased()
}

// Sequence numbers that the broker does not know mean that confirmed records are gone.
func TestF24DataLossEndsTheProducer(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(1, "t"))
	p := producer(t, options(c), "t")
	m, tx := newMade(t), newAcks()
	must(t, p.Send(t.Context(), []envelope.Record{m.record("t", "k", "1")}, tx))
	must(t, p.Flush(t.Context()))
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.OutOfOrderSequenceNumber})
	must(t, p.Send(t.Context(), []envelope.Record{m.record("t", "k", "2")}, tx))
	await(t, "the failure", p.Failed())
	wantCode(t, p.Err(), fault.BrokerDataLost)
	p.Close()
	m.allReleased()
}

func TestF27ATopicThatIsDeletedWhileRunningIsMissing(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(1, "t"))
	o := options(c)
	o.extra = append(o.extra, kgo.UnknownTopicRetries(2))
	p := producer(t, o, "t")
	m, tx := newMade(t), newAcks()
	must(t, p.Send(t.Context(), []envelope.Record{m.record("t", "k", "1")}, tx))
	must(t, p.Flush(t.Context()))
	must(t, c.DeleteTopic("t"))
	must(t, p.Send(t.Context(), []envelope.Record{m.record("t", "k", "2")}, tx))
	await(t, "the failure", p.Failed())
	wantCode(t, p.Err(), fault.TopicMissing)
	p.Close()
	m.allReleased()
}

func TestF29ARevokedRightNamesOperationAndTopic(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(1, "t"))
	p := producer(t, options(c), "t")
	m, tx := newMade(t), newAcks()
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.TopicAuthorizationFailed})
	must(t, p.Send(t.Context(), []envelope.Record{m.record("t", "k", "1")}, tx))
	await(t, "the failure", p.Failed())
	wantCode(t, p.Err(), fault.BrokerForbids)
	if !strings.Contains(p.Err().Error(), "allow the connector's principal Write on topic t") {
		t.Fatalf("Err: %v", p.Err())
	}
	p.Close()
	m.allReleased()
}

func TestF21F23DeliveryTimeoutIsTheOperatorsChoice(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(1, "t"))
	o := options(c)
	o.Producer.DeliveryTimeout = time.Second
	p := producer(t, o, "t")
	m, tx := newMade(t), newAcks()
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotEnoughReplicas, Count: -1})
	must(t, p.Send(t.Context(), []envelope.Record{m.record("t", "k", "1")}, tx))
	await(t, "the failure", p.Failed())
	wantCode(t, p.Err(), fault.BrokerUnreachable)
	p.Close()
	m.allReleased()
}
