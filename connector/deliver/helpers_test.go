package deliver

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/envelope"
	"github.com/tidemark-cdc/tidemark/internal/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second // a test that waits longer has failed

func cluster(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func options(c *kfake.Cluster) Options {
	return Options{
		Kafka: config.Kafka{Bootstrap: c.ListenAddrs()},
		Queue: NewQueue(1<<20, nil),
		extra: []kgo.Opt{kgo.MetadataMinAge(10 * time.Millisecond)},
	}
}

func producer(t *testing.T, o Options, topics ...string) *Producer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	t.Cleanup(cancel)
	p, err := New(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	for _, name := range topics {
		must(t, p.EnsureTopic(t.Context(), name, true))
	}
	return p
}

// made makes records whose Buffers are checked when the test ends: released exactly once.
type made struct {
	t       *testing.T
	pool    *envelope.BufferPool
	mu      sync.Mutex
	buffers []*envelope.Buffer
}

func newMade(t *testing.T) *made {
	return &made{t: t, pool: envelope.NewBufferPool(64)}
}

// record returns a keyed record; its schema id bytes must have no part in the partition.
func (m *made) record(topic, key, value string) envelope.Record {
	b := m.pool.Get()
	b.Retain() // the test's own reference, so that a second Release panics and none is seen
	m.mu.Lock()
	m.buffers = append(m.buffers, b)
	m.mu.Unlock()
	b.Bytes = append(append(b.Bytes, 0, 0, 0, 0, 7), key...)
	n := len(b.Bytes)
	b.Bytes = append(b.Bytes, value...)
	return envelope.Record{
		Topic: topic, Key: b.Bytes[:n], HashKey: b.Bytes[5:n], Value: b.Bytes[n:],
		Headers: []envelope.Header{{Key: "tidemark.op", Value: []byte("c")}},
		Op:      'c', Buffer: b,
	}
}

// allReleased fails when a record's reference was not given back, or twice.
func (m *made) allReleased() {
	m.t.Helper()
	for i, b := range m.buffers {
		if !released(b) {
			m.t.Errorf("buffer %d was not released exactly once", i)
		}
	}
}

// released reports whether the test's reference was the last one: a second Release then panics.
// A reference that was given back twice panics at the first, or took the Buffer to its pool.
func released(b *envelope.Buffer) (ok bool) {
	b.Release()
	defer func() { ok = recover() != nil }()
	b.Release()
	return false
}

// acks is an Acker that counts.
type acks struct {
	mu      sync.Mutex
	added   int
	done    int
	errs    []error
	changed chan struct{}
	onDone  func()
}

func newAcks() *acks { return &acks{changed: make(chan struct{}, 1)} }

func (a *acks) Add(n int) {
	a.mu.Lock()
	a.added += n
	a.mu.Unlock()
}

func (a *acks) Done(err error) {
	if a.onDone != nil {
		a.onDone()
	}
	a.mu.Lock()
	a.done++
	if err != nil {
		a.errs = append(a.errs, err)
	}
	a.mu.Unlock()
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

// wait returns when n records are done.
func (a *acks) wait(t *testing.T, n int) {
	t.Helper()
	deadline := time.After(patience)
	for {
		a.mu.Lock()
		done := a.done
		a.mu.Unlock()
		if done >= n {
			return
		}
		select {
		case <-a.changed:
		case <-deadline:
			t.Fatalf("%d of %d records are done after %v", done, n, patience)
		}
	}
}

func (a *acks) failures() []error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.errs
}

// read returns all records of a topic, by partition, in order.
func read(t *testing.T, c *kfake.Cluster, topic string) map[int32][]*kgo.Record {
	t.Helper()
	cl, err := kgo.NewClient(
		kgo.SeedBrokers(c.ListenAddrs()...), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, topic)
	if err != nil {
		t.Fatal(err)
	}
	left := int64(0)
	ends.Each(func(o kadm.ListedOffset) { left += o.Offset })
	out := map[int32][]*kgo.Record{}
	for left > 0 {
		f := cl.PollFetches(ctx)
		if err := f.Err0(); err != nil {
			t.Fatal(err)
		}
		f.EachRecord(func(r *kgo.Record) {
			out[r.Partition] = append(out[r.Partition], r)
			left--
		})
	}
	return out
}

func wantCode(t *testing.T, err error, code fault.Code) {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != code {
		t.Fatalf("error %v, want code %s", err, code)
	}
}

func await(t *testing.T, what string, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(patience):
		t.Fatalf("waited %v for %s", patience, what)
	}
}
