package deliver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/envelope"
	"github.com/tidemark-cdc/tidemark/internal/fault"
)

func TestKeysKeepTheirOrderOnJavasPartition(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(4, "t"))
	p := producer(t, options(c), "t")
	m, tx := newMade(t), newAcks()
	for i := range 100 {
		must(t, p.Send(t.Context(), []envelope.Record{
			m.record("t", "21", fmt.Sprint(i)), m.record("t", "abc", fmt.Sprint(i)),
			m.record("t", "foobar", fmt.Sprint(i)),
		}, tx))
	}
	must(t, p.Flush(t.Context()))
	if tx.added != 300 || tx.done != 300 || len(tx.errs) != 0 {
		t.Fatalf("added %d, done %d, errors %v", tx.added, tx.done, tx.errs)
	}
	m.allReleased()
	got := read(t, c, "t")
	// 1173551340 % 4, 479470107 % 4, 1357151166 % 4: murmur2 of the key without its first five bytes
	for key, partition := range map[string]int32{"21": 0, "abc": 3, "foobar": 2} {
		recs := got[partition]
		if len(recs) != 100 {
			t.Fatalf("partition %d holds %d records, want 100", partition, len(recs))
		}
		for i, r := range recs {
			if string(r.Key) != "\x00\x00\x00\x00\x07"+key || string(r.Value) != fmt.Sprint(i) {
				t.Fatalf("partition %d, record %d: key %q, value %q", partition, i, r.Key, r.Value)
			}
			if len(r.Headers) != 1 || r.Headers[0].Key != "tidemark.op" {
				t.Fatalf("headers %v", r.Headers)
			}
		}
	}
	if p.Unconfirmed() != 0 || p.Stalled() != 0 || p.queue.Used() != 0 {
		t.Fatalf("after Flush: %d unconfirmed, stalled %v, %d bytes queued",
			p.Unconfirmed(), p.Stalled(), p.queue.Used())
	}
}

func TestTombstoneIsANullValueAndNoEmptyOne(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(1, "t"))
	p := producer(t, options(c), "t")
	m := newMade(t)
	r := m.record("t", "k", "")
	r.Value = nil
	must(t, p.Send(t.Context(), []envelope.Record{r}, nil))
	must(t, p.Flush(t.Context()))
	if got := read(t, c, "t")[0][0]; got.Value != nil {
		t.Fatalf("value %#v, want null", got.Value)
	}
}

func TestTruncateReachesEveryPartition(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(5, "t"))
	p := producer(t, options(c), "t")
	m, tx := newMade(t), newAcks()
	r := m.record("t", "", "truncate")
	r.Key, r.HashKey, r.Route, r.Op = nil, nil, envelope.RouteEach, 't'
	must(t, p.Send(t.Context(), []envelope.Record{r}, tx))
	must(t, p.Flush(t.Context()))
	if tx.added != 5 || tx.done != 5 {
		t.Fatalf("added %d, done %d, want 5 each", tx.added, tx.done)
	}
	m.allReleased()
	got := read(t, c, "t")
	for partition := range int32(5) {
		recs := got[partition]
		if len(recs) != 1 || string(recs[0].Value) != "truncate" || recs[0].Key != nil {
			t.Fatalf("partition %d: %v", partition, recs)
		}
	}
}

func TestRecordsWithoutAKeyShareOnePartition(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(10, "abc"))
	p := producer(t, options(c), "abc")
	m := newMade(t)
	for i := range 20 {
		r := m.record("abc", "", fmt.Sprint(i))
		r.Key, r.HashKey, r.Route = nil, nil, envelope.RouteOne
		must(t, p.Send(t.Context(), []envelope.Record{r}, nil))
	}
	must(t, p.Flush(t.Context()))
	recs := read(t, c, "abc")[7] // murmur2("abc") = 479470107
	if len(recs) != 20 {
		t.Fatalf("partition 7 holds %d records, want 20", len(recs))
	}
	for i, r := range recs {
		if string(r.Value) != fmt.Sprint(i) {
			t.Fatalf("record %d is %q", i, r.Value)
		}
	}
}

// gate holds produce requests at the broker until it is opened.
func gate(c *kfake.Cluster) (open func()) {
	opened := make(chan struct{})
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		c.SleepControl(func() { <-opened })
		return nil, nil, false
	})
	return sync.OnceFunc(func() { close(opened) })
}

func TestBackPressureHoldsTheBoundAndResumes(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(2, "t"))
	open := gate(c)
	defer open()
	var mu sync.Mutex
	var paused time.Duration
	o := options(c)
	const limit = 10_000
	o.Queue = NewQueue(limit, func(d time.Duration) {
		mu.Lock()
		paused += d
		mu.Unlock()
	})
	p := producer(t, o, "t")
	m, tx := newMade(t), newAcks()
	sent := make(chan error, 1)
	go func() {
		for i := range 200 {
			r := m.record("t", fmt.Sprint(i), "0123456789")
			if err := p.Send(t.Context(), []envelope.Record{r}, tx); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	deadline := time.Now().Add(patience)
	for !p.queue.Blocked() {
		if time.Now().After(deadline) {
			t.Fatal("Send never waited for room")
		}
		time.Sleep(time.Millisecond)
	}
	if used := p.queue.Used(); used > limit || used < limit/2 {
		t.Fatalf("%d bytes are queued, limit %d", used, limit)
	}
	if p.Stalled() == 0 {
		t.Error("nothing is confirmed, yet the producer is not stalled")
	}
	open()
	must(t, <-sent)
	must(t, p.Flush(t.Context()))
	if tx.done != 200 || p.queue.Used() != 0 {
		t.Fatalf("done %d, %d bytes queued", tx.done, p.queue.Used())
	}
	m.allReleased()
	mu.Lock()
	defer mu.Unlock()
	if paused == 0 {
		t.Error("the wait was not reported")
	}
}

func TestSendEndsWithItsContextWhileTheQueueIsFull(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(1, "t"))
	open := gate(c)
	defer open()
	o := options(c)
	o.Queue = NewQueue(100, nil) // less than one record counts for
	p := producer(t, o, "t")
	m, tx := newMade(t), newAcks()
	must(t, p.Send(t.Context(), []envelope.Record{m.record("t", "a", "1")}, tx))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := p.Send(ctx, []envelope.Record{m.record("t", "b", "2")}, tx)
	if !errors.Is(err, context.Canceled) || p.Err() != nil {
		t.Fatalf("Send: %v, producer: %v", err, p.Err())
	}
	open()
	must(t, p.Flush(t.Context()))
	if tx.added != 1 || tx.done != 1 {
		t.Fatalf("added %d, done %d, want 1 each", tx.added, tx.done)
	}
	m.allReleased()
}

func TestCloseGivesEveryRecordBack(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(1, "t"))
	open := gate(c)
	defer open()
	p := producer(t, options(c), "t")
	m, tx := newMade(t), newAcks()
	for range 50 {
		must(t, p.Send(t.Context(), []envelope.Record{m.record("t", "k", "v")}, tx))
	}
	p.Close()
	p.Close()
	if tx.done != 50 || len(tx.failures()) != 50 || p.queue.Used() != 0 {
		t.Fatalf("done %d, failed %d, %d bytes queued", tx.done, len(tx.errs), p.queue.Used())
	}
	if err := p.Send(t.Context(), []envelope.Record{m.record("t", "k", "v")}, tx); err == nil {
		t.Fatal("Send after Close succeeded")
	}
	m.allReleased()
}

func TestCloseWhileOthersSend(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(3, "t"))
	p := producer(t, options(c), "t")
	m, tx := newMade(t), newAcks()
	var senders sync.WaitGroup
	for i := range 4 {
		senders.Go(func() {
			for n := 0; ; n++ {
				r := m.record("t", fmt.Sprint(i, n), "v")
				if p.Send(t.Context(), []envelope.Record{r}, tx) != nil {
					return
				}
			}
		})
	}
	tx.wait(t, 100)
	p.Close()
	tx.mu.Lock()
	if tx.added != tx.done {
		t.Errorf("%d records were taken, %d given back when Close returned", tx.added, tx.done)
	}
	tx.mu.Unlock()
	senders.Wait()
	if tx.added != tx.done || p.queue.Used() != 0 {
		t.Errorf("added %d, done %d, %d bytes queued", tx.added, tx.done, p.queue.Used())
	}
	m.allReleased()
}

func TestTheEndOfTheContextEndsDelivery(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(1, "t"))
	ctx, cancel := context.WithCancel(t.Context())
	p, err := New(ctx, options(c))
	must(t, err)
	defer p.Close()
	cancel()
	await(t, "the producer's end", p.Failed())
	if !errors.Is(p.Err(), context.Canceled) {
		t.Fatalf("Err: %v", p.Err())
	}
}

func TestUnknownTopicAndUnpreparedTopicAreToldApart(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	p := producer(t, options(c))
	m := newMade(t)
	err := p.Send(t.Context(), []envelope.Record{m.record("never", "k", "v")}, nil)
	wantCode(t, err, fault.Internal)
	if p.Err() != nil {
		t.Fatalf("a caller's mistake ended the producer: %v", p.Err())
	}
	m.allReleased()
}
