package deliver

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/tidemark-cdc/tidemark/envelope"
)

func TestHeldRecordsGoOutAtThePush(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(1, "t"))
	p := producer(t, options(c), "t")
	m, tx := newMade(t), newAcks()
	for i := range 3 {
		must(t, p.Hold(t.Context(), []envelope.Record{m.record("t", "k", fmt.Sprint(i))}, tx))
	}
	if tx.added != 3 || p.Unconfirmed() != 3 || p.queue.Used() == 0 {
		t.Fatalf("added %d, unconfirmed %d, queued %d before the push: a held record counts",
			tx.added, p.Unconfirmed(), p.queue.Used())
	}
	if n := p.client.BufferedProduceRecords(); n != 0 {
		t.Fatalf("the client has %d records before the push", n)
	}
	p.Push()
	tx.wait(t, 3)
	must(t, p.Send(t.Context(), []envelope.Record{m.record("t", "k", "3")}, tx))
	must(t, p.Flush(t.Context()))
	for i, r := range read(t, c, "t")[0] {
		if string(r.Value) != fmt.Sprint(i) {
			t.Errorf("record %d is %q", i, r.Value)
		}
	}
	m.allReleased()
}

// With a linger that outlasts the test, a record is on its way at Hurry and not at Push.
func TestWhatLingersGoesOutAtHurry(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(1, "t"))
	o := options(c)
	o.Producer.Linger = 3 * patience
	p := producer(t, o, "t")
	m, tx := newMade(t), newAcks()
	// A topic's first record waits until the client knows its partitions.
	must(t, p.Send(t.Context(), []envelope.Record{m.record("t", "k", "first")}, tx))
	must(t, p.Flush(t.Context()))
	for i := range 3 { // the second and third: nothing is left behind by the one before
		must(t, p.Send(t.Context(), []envelope.Record{m.record("t", "k", fmt.Sprint(i))}, tx))
		if n := p.client.BufferedProduceRecords(); n != 1 {
			t.Fatalf("record %d did not linger: the client has %d", i, n)
		}
		p.Hurry()
		tx.wait(t, i+2)
	}
	m.allReleased()
}

func TestHeldRecordsGoOutWhenThereAreMany(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(1, "t"))
	p := producer(t, options(c), "t")
	m, tx := newMade(t), newAcks()
	for i := range holdMost {
		must(t, p.Hold(t.Context(), []envelope.Record{m.record("t", "k", fmt.Sprint(i))}, tx))
	}
	tx.wait(t, holdMost)
	m.allReleased()
}

// What is held takes room in the queue: waiting for room without pushing it would last for ever.
func TestHeldRecordsGoOutWhenTheQueueIsFull(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(1, "t"))
	o := options(c)
	o.Queue = NewQueue(1000, nil)
	p := producer(t, o, "t")
	m, tx := newMade(t), newAcks()
	for i := range 20 {
		must(t, p.Hold(t.Context(), []envelope.Record{m.record("t", "k", fmt.Sprint(i))}, tx))
	}
	must(t, p.Flush(t.Context()))
	if tx.done != 20 {
		t.Errorf("%d of 20 records are done", tx.done)
	}
	m.allReleased()
}

func TestHeldRecordsAreGivenBackByClose(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(1, "t"))
	p := producer(t, options(c), "t")
	m, tx := newMade(t), newAcks()
	for range 5 {
		must(t, p.Hold(t.Context(), []envelope.Record{m.record("t", "k", "v")}, tx))
	}
	p.Close()
	if tx.done != 5 || len(tx.failures()) != 5 || p.queue.Used() != 0 {
		t.Errorf("%d done, %d of them failed, %d bytes queued", tx.done, len(tx.failures()),
			p.queue.Used())
	}
	if got := read(t, c, "t"); len(got[0]) != 0 {
		t.Errorf("%d records were written by Close", len(got[0]))
	}
	if err := p.Hold(t.Context(), []envelope.Record{m.record("t", "k", "v")}, tx); err == nil {
		t.Error("a record was taken after Close")
	}
	m.allReleased()
}

// Headers stay in the record's Buffer, under the client's name for them.
func TestClientHeadersAreTheRecordsOwn(t *testing.T) {
	t.Parallel()
	h := []envelope.Header{{Key: "a", Value: []byte("1")}, {Key: "b", Value: nil}}
	got := clientHeaders(h)
	if len(got) != 2 || got[0].Key != "a" || string(got[0].Value) != "1" || got[1].Key != "b" ||
		got[1].Value != nil || &got[0].Value[0] != &h[0].Value[0] {
		t.Errorf("%v became %v", h, got)
	}
	if len(clientHeaders(nil)) != 0 {
		t.Error("no headers became some")
	}
}
