package deliver

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-cdc/tidemark/envelope"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/internal/kafkadial"
)

// pending is a record between Send and its promise. It is the record's own context, so that the
// promise, one function for all records, finds it without a closure or a map.
type pending struct {
	// The Producer's. Never written again: the client may look at the context of a topic's first
	// record after its promise, when this pending is another record's.
	context.Context
	rec    kgo.Record
	block  *block
	buffer *envelope.Buffer
	tx     Acker
	topic  *topic
	size   int64
	hash   uint32 // murmur2, when every is negative
	every  int32  // RouteEach: the partition of this copy; else -1
	op     byte
	sent   time.Time
}

// block is pendings that are taken from the pool together, one after another, and go back together:
// the promises run on another processor than Send, and passing each record's own memory between the
// two costs more than all else in Send.
type block struct {
	all  [blockSize]pending
	next int          // of all, the first that was not taken; Send's
	left atomic.Int32 // of all, those whose promise has not run
}

const blockSize = 32

func newBlock(ctx context.Context) *block {
	b := &block{}
	b.left.Store(blockSize)
	for i := range b.all {
		b.all[i].Context, b.all[i].block = ctx, b
	}
	return b
}

// pending takes the next pending of the present block. Under sendMu.
func (p *Producer) pending() *pending {
	if p.block == nil {
		p.block = p.pool.Get().(*block)
	}
	d := &p.block.all[p.block.next]
	if p.block.next++; p.block.next == blockSize {
		p.block = nil // the last promise gives it back
	}
	return d
}

// finished gives a block back whose promises have all run.
func (p *Producer) finished(b *block) {
	if b.left.Add(-1) == 0 {
		b.next = 0
		b.left.Store(blockSize)
		p.pool.Put(b)
	}
}

// Send hands records on, in order. It waits while the queue has no room for them all, and returns
// when each is with the client; confirmations go to tx (nil: nobody asks). Send owns the records'
// references from the call on: each Buffer is released exactly once, also for records that were
// never produced because of an error. After an error nothing of recs was or will be produced,
// unless it is the Producer's own failure (Err), which ends everything.
func (p *Producer) Send(ctx context.Context, recs []envelope.Record, tx Acker) error {
	err := p.Hold(ctx, recs, tx)
	p.Push()
	return err
}

// holdMost is how many records wait for a Push at most. The client begins to send at the first
// record that it is given and has one request at a time under way: records that come one by one
// make small requests, each of which costs as much as a hundred records.
const holdMost = 256

// Hold is Send for a caller with more to come: the records may stay here until there are some
// hundred of them, or until the next Push, Send or Flush, whoever calls it. Whoever calls Hold
// calls Push before waiting for anything.
func (p *Producer) Hold(ctx context.Context, recs []envelope.Record, tx Acker) error {
	if len(recs) == 0 {
		return p.Err()
	}
	var room [8]int
	copies, err := p.admit(ctx, recs, room[:0])
	if err != nil {
		for i := range recs {
			release(recs[i].Buffer)
		}
		return err
	}
	for i, c := range copies {
		if tx != nil {
			tx.Add(c)
		}
		if b := recs[i].Buffer; b != nil { // before the first promise can run
			for range c - 1 {
				b.Retain()
			}
		}
	}
	p.sendMu.Lock()
	if len(p.held) == 0 {
		p.sent = time.Now() // of all that is held together: no wait is between them
	}
	for i := range recs {
		p.hold(&recs[i], copies[i], tx, p.sent)
	}
	// Close pushes once, behind closed: what is held after that has nobody else to push it.
	if len(p.held) >= holdMost || p.closed.Load() {
		p.push()
	}
	p.sendMu.Unlock()
	return p.Err()
}

// Push gives the client what Hold has kept.
func (p *Producer) Push() {
	p.sendMu.Lock()
	p.push()
	p.sendMu.Unlock()
}

// hurryTopics is with how many topics Hurry does nothing: the client looks at every partition of
// each, for each row that comes alone, and with thousands that costs more than the wait.
const hurryTopics = 256

// Hurry is Push for a caller that has nothing more at hand: what lingers is sent at once. linger.ms
// is for rows that have others close behind them; one that comes alone would only be late by it.
func (p *Producer) Hurry() {
	p.Push()
	if p.o.Producer.Linger <= 0 || !p.lingers.Swap(false) || len(*p.topics.Load()) > hurryTopics {
		return
	}
	// Flush ends every linger before it waits, and this one does not wait.
	_ = p.client.Flush(alreadyOver)
}

// alreadyOver is a context that has ended.
var alreadyOver = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

func (p *Producer) push() {
	if len(p.held) > 0 {
		p.lingers.Store(true)
	}
	for i, d := range p.held {
		p.held[i] = nil
		p.client.Produce(p.ctx, &d.rec, p.promise)
	}
	p.held = p.held[:0]
}

// admit checks the records, takes the queue's bytes for them and counts them. It appends to copies
// how many of Kafka's records each of ours becomes.
func (p *Producer) admit(ctx context.Context, recs []envelope.Record, copies []int) (
	[]int, error,
) {
	copies, size, err := p.check(recs, copies)
	if err != nil {
		return nil, err
	}
	if err := p.acquire(ctx, size); err != nil {
		return nil, err
	}
	n := 0
	for _, c := range copies {
		n += c
	}
	if err := p.add(n); err != nil {
		p.queue.free(size)
		return nil, err
	}
	return copies, nil
}

// acquire takes the queue's bytes, or returns why it could not.
func (p *Producer) acquire(ctx context.Context, size int64) error {
	err := error(nil)
	if !p.queue.tryAcquire(size) {
		p.Push() // nothing of what is held would ever be given back
		err = p.queue.acquire(ctx, size, p.ended)
	}
	select {
	case <-p.ended:
	default:
		return err
	}
	if err == nil {
		p.queue.free(size)
	}
	select { // a promise is on its way with the reason
	case <-p.failed:
		return p.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// hold makes a record, or its copies, ready for the client. Under sendMu.
func (p *Producer) hold(r *envelope.Record, copies int, tx Acker, sent time.Time) {
	t := p.topic(r.Topic)
	hash := t.hash
	if r.Route == envelope.RouteKey {
		hash = murmur2(r.HashKey)
	}
	size := int64(r.Size())
	for i := range copies {
		d := p.pending()
		d.buffer, d.tx, d.topic = r.Buffer, tx, t
		d.size, d.hash, d.every, d.op, d.sent = size, hash, -1, r.Op, sent
		if r.Route == envelope.RouteEach {
			d.every = int32(i)
		}
		d.rec.Topic, d.rec.Key, d.rec.Value = t.name, r.Key, r.Value
		d.rec.Headers, d.rec.Timestamp, d.rec.Context = clientHeaders(r.Headers), sent, d
		p.held = append(p.held, d)
	}
}

// clientHeaders are the same headers under the client's name for them: the two types are alike,
// which the compiler checks here, and the client only reads them. They are in the record's Buffer,
// which stays until the promise.
func clientHeaders(h []envelope.Header) []kgo.RecordHeader {
	return unsafe.Slice((*kgo.RecordHeader)(unsafe.SliceData(h)), len(h))
}

// done is every record's promise. The client runs one at a time.
func (p *Producer) done(rec *kgo.Record, err error) {
	d := rec.Context.(*pending)
	if err != nil {
		p.fail(p.explain(d, err))
		err = p.Err()
	} else {
		p.confirmed(d)
	}
	tx, size, buffer, block := d.tx, d.size, d.buffer, d.block
	*rec = kgo.Record{}
	d.tx, d.topic, d.buffer = nil, nil, nil
	p.finished(block)
	release(buffer)
	p.queue.free(size)
	if tx != nil {
		tx.Done(err)
	}
	p.subtract(1)
}

// clockEvery is how many confirmations of a crowd share one look at the clock.
const clockEvery = 32

// confirmed notes that the broker has confirmed something. The clock is read for each record when
// few are out, and now and then when many are.
func (p *Producer) confirmed(d *pending) {
	if p.unclocked++; p.unclocked >= clockEvery || p.out.Load() <= clockEvery {
		p.unclocked = 0
		p.moved()
	}
	if p.o.Metrics.Acked != nil {
		p.o.Metrics.Acked(d.topic.name, d.op, d.sent)
	}
}

// explain turns a promise's error into a fault that names the topic.
func (p *Producer) explain(d *pending, err error) error {
	if failure := p.Err(); failure != nil {
		return failure
	}
	if errors.Is(err, context.Canceled) {
		return context.Cause(p.ctx)
	}
	if errors.Is(err, kerr.InvalidRecord) && len(d.rec.Key) == 0 {
		return d.topic.compactedWithoutKey(d.op)
	}
	if p.o.Transactions != nil {
		err = explainTransaction(err)
	}
	return kafkadial.Wrap("Write", "topic "+d.topic.name, err)
}

func release(b *envelope.Buffer) {
	if b != nil {
		b.Release()
	}
}

// check refuses what the broker would refuse, before anything of the event is sent. It appends to
// copies as admit does, and returns the bytes of all records.
func (p *Producer) check(recs []envelope.Record, copies []int) ([]int, int64, error) {
	var size int64
	for i := range recs {
		r := &recs[i]
		t := p.topic(r.Topic)
		if t == nil {
			return nil, 0, fault.New(fault.Internal, "no topic was prepared for "+r.Topic)
		}
		if r.Key == nil && t.compacted {
			return nil, 0, t.compactedWithoutKey(r.Op)
		}
		if n := r.EncodedSize(); n > t.maxBytes {
			return nil, 0, t.tooLarge(r, n)
		}
		n := 1
		if r.Route == envelope.RouteEach {
			n = t.count()
		}
		copies = append(copies, n)
		size += int64(n) * int64(r.Size())
	}
	return copies, size, nil
}
