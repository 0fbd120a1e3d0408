package deliver

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/internal/kafkadial"
)

// Acker is told what became of a transaction's records; offsets.Tx is one. Add is called before
// the first of n records is given to the client, Done once for each of them, from the client's
// goroutine: it must neither block nor call the Producer.
type Acker interface {
	Add(n int)
	Done(err error)
}

// Metrics are called from the client's goroutine and must not block. Each may be nil.
type Metrics struct {
	// Acked is called for each record that the broker confirmed. sent is when Send was called.
	Acked func(topic string, op byte, sent time.Time)
	// Partitions is called when a topic is seen to have another number of partitions than before:
	// from then on keys go to other partitions, and the order of a key's events across that
	// moment is only what their pairs say.
	Partitions func(topic string, before, now int)
}

// Options are a Producer's settings. Queue may be shared with whoever reads the frames that the
// records are made of; it must not be nil. Logger nil: discarded.
type Options struct {
	Kafka    config.Kafka
	Producer config.Producer
	Creation config.TopicCreation
	Queue    *Queue
	Metrics  Metrics
	Logger   *slog.Logger
	// Transactions: nil is at least once.
	Transactions *Transactions

	extra []kgo.Opt // tests: shorter waits
}

// Producer sends records to Kafka: acks=all, idempotent, each key's records in the order of Send.
// See the package comment for what it promises. All methods are for any goroutine; the order of a
// key's records is that of one goroutine's Sends.
type Producer struct {
	o      Options
	log    *slog.Logger
	client *kgo.Client
	admin  *kadm.Client
	queue  *Queue

	ctx    context.Context // every record's; ends with the Producer, its failure, or a new epoch
	cancel context.CancelCauseFunc
	unlink func() bool // from New's ctx

	topicsMu sync.Mutex // of writers
	topics   atomic.Pointer[map[string]*topic]

	sendMu sync.Mutex
	held   []*pending // made ready and not yet given to the client
	sent   time.Time  // when the first of held was
	block  *block     // that the next pending is taken from

	lingers atomic.Bool // records were given to the client since the last Hurry

	pool    sync.Pool // of *block
	promise func(*kgo.Record, error)
	ended   <-chan struct{} // ctx's

	failOnce sync.Once
	failure  atomic.Pointer[error] // set before failed is closed
	failed   chan struct{}

	out       atomic.Int64  // records given to the client whose promise has not run
	closed    atomic.Bool   // no more are given
	drained   chan struct{} // closed when closed is set and out is 0
	drainOnce sync.Once
	began     time.Time
	lastMoved atomic.Int64 // nanoseconds since began: out rose from 0, or records were confirmed
	unclocked int          // confirmations since lastMoved; the promises'

	closeOnce sync.Once
}

// New makes a producer and asks the brokers who they are, so that a wrong address or password is
// an error here. Delivery goes on until ctx ends, a record fails, or Close; for records to be
// flushed at a stop, ctx must outlive the stop.
func New(ctx context.Context, o Options) (*Producer, error) {
	p := &Producer{
		o: o, log: o.Logger, queue: o.Queue, began: time.Now(),
		failed: make(chan struct{}), drained: make(chan struct{}),
	}
	p.topics.Store(&map[string]*topic{})
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	p.ctx, p.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	p.promise = p.done
	p.ended = p.ctx.Done()
	p.pool.New = func() any { return newBlock(p.ctx) }
	opts, err := p.clientOptions()
	if err != nil {
		p.cancel(nil)
		return nil, err
	}
	if p.client, err = kgo.NewClient(opts...); err != nil {
		p.cancel(nil)
		return nil, fault.Wrap(fault.ConfigInvalid, "a producer setting is refused", err)
	}
	p.admin = kadm.NewClient(p.client)
	if _, err := p.admin.BrokerMetadata(ctx); err != nil {
		p.cancel(nil)
		p.client.Close()
		return nil, kafkadial.Wrap("Describe", "cluster", err)
	}
	p.unlink = context.AfterFunc(ctx, func() { p.fail(context.Cause(ctx)) })
	return p, nil
}

// Bounds of delivery that are not settings.
const (
	// After so many answers "unknown topic" in a row a topic is gone (brokers learn of a new one one
	// after another, but EnsureTopic has waited for that). Tries are between a quarter of a second
	// and two seconds apart, so this is 10 to 80 s.
	unknownTopicTries = 40
	// A broker may take this long to write a batch to all replicas; it then answers that it timed
	// out, and the client sends the batch again.
	defaultRequestTimeout = 30 * time.Second
	// Kafka's default of max.request.size, and of message.max.bytes less its overhead.
	defaultRequestBytes = 1 << 20
)

func (p *Producer) clientOptions() ([]kgo.Opt, error) {
	opts, err := kafkadial.Options(p.o.Kafka)
	if err != nil {
		return nil, err
	}
	compressed, err := compression(p.o.Producer.Compression)
	if err != nil {
		return nil, err
	}
	timeout := p.o.Producer.RequestTimeout
	if timeout <= 0 {
		timeout = defaultRequestTimeout
	}
	opts = append(
		opts,
		kgo.RequiredAcks(kgo.AllISRAcks()),
		// A sequence that the broker does not expect means that records it had confirmed are gone
		// or that we lost count: what follows must not be written. The caller starts again from
		// the last stored position.
		kgo.StopProducerOnDataLossDetected(),
		kgo.UnknownTopicRetries(unknownTopicTries),
		kgo.ProduceRequestTimeout(timeout),
		kgo.ProducerLinger(p.o.Producer.Linger),
		compressed,
		kgo.ProducerBatchMaxBytesFn(p.batchMaxBytes),
		kgo.BrokerMaxWriteBytes(int32(max(100<<20, p.requestBytes()+1<<20))), // a whole request
		kgo.RecordPartitioner(kgo.BasicConsistentPartitioner(p.partitioner)),
		// Our queue is the bound. A record counts for 320 bytes at least (envelope.Record.Size),
		// so the client's own bound cannot be reached; its waits know nothing of frames.
		kgo.MaxBufferedRecords(math.MaxInt32),
		kgo.WithLogger(&clientLog{log: p.log, newEpoch: p.newEpoch, refused: p.refused}),
	)
	if p.o.Producer.DeliveryTimeout > 0 {
		opts = append(opts, kgo.RecordDeliveryTimeout(p.o.Producer.DeliveryTimeout))
	}
	if t := p.o.Transactions; t != nil {
		opts = append(opts, t.options()...)
	}
	return append(opts, p.o.extra...), nil
}

// compression is what a batch is compressed with; the client falls back to none by itself when a
// batch grows by it or the broker is too old.
func compression(name string) (kgo.Opt, error) {
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(),
		"snappy": kgo.SnappyCompression(), "zstd": kgo.ZstdCompression(),
	}
	if name == "" || name == "lz4" {
		return kgo.WithCompressor(newLZ4Compressor()), nil
	}
	c, ok := codecs[name]
	if !ok {
		return nil, fault.New(fault.ConfigInvalid, "compression.type is not known").
			With(name, "none, gzip, snappy, lz4 or zstd", "")
	}
	return kgo.ProducerBatchCompression(c, kgo.NoCompression()), nil
}

// Err returns why the producer failed, or nil.
func (p *Producer) Err() error {
	if err := p.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// Failed is closed when the producer has failed: Err says why, nothing more is sent.
func (p *Producer) Failed() <-chan struct{} { return p.failed }

// fail makes the first error the producer's end: every record that is not on the wire yet is
// given back with an error, since its context ends.
func (p *Producer) fail(err error) {
	p.failOnce.Do(func() {
		p.failure.Store(&err)
		close(p.failed)
		p.cancel(err)
	})
}

// newEpoch ends the records' context before the client writes under a new epoch. The promise that
// made the new epoch necessary says what happened, and comes before those that this fails.
func (p *Producer) newEpoch() { p.cancel(errNewEpoch) }

// refused ends the producer: nobody but a person can make the brokers take its login.
func (p *Producer) refused(err error) { p.fail(kafkadial.Wrap("Write", "the brokers", err)) }

var errNewEpoch = fault.New(fault.Internal,
	"a batch failed, and nothing that follows it may be written before it")

// Flush sends what lingers and waits until every record so far has been confirmed or has failed, or
// the producer has: a record that may have been written is never given back while its client lives.
func (p *Producer) Flush(ctx context.Context) error {
	p.Push()
	flushing, end := context.WithCancel(ctx)
	defer end()
	go func() {
		select {
		case <-p.failed:
			end()
		case <-flushing.Done():
		}
	}()
	if err := p.client.Flush(flushing); err != nil {
		if failure := p.Err(); failure != nil {
			return failure
		}
		return fmt.Errorf("waiting for the brokers to confirm %d records: %w", p.Unconfirmed(), err)
	}
	return p.Err()
}

// Unconfirmed returns how many records the brokers have not confirmed yet.
func (p *Producer) Unconfirmed() int { return int(p.out.Load()) }

// Stalled returns for how long records have been waiting without any being confirmed; zero when
// none waits. Delivery has no limit of retries, so this is how a broker that is away shows.
func (p *Producer) Stalled() time.Duration {
	if p.Unconfirmed() == 0 {
		return 0
	}
	return time.Since(p.began) - time.Duration(p.lastMoved.Load())
}

// moved notes that the brokers owe something from now on. It goes by the time since began, which a
// leap of the wall clock does not touch.
func (p *Producer) moved() { p.lastMoved.Store(int64(time.Since(p.began))) }

// Close gives every record that is not confirmed back with an error, and returns when each of
// them has been given back and the client's goroutines are gone. It does not flush.
func (p *Producer) Close() {
	p.closeOnce.Do(func() {
		p.unlink()
		p.fail(errClosed)
		p.closed.Store(true)
		if p.out.Load() == 0 {
			p.drain()
		}
		p.Push() // for each of them to be given back
		p.client.Close()
	})
	<-p.drained
}

var errClosed = fault.New(fault.Internal, "the producer is closed")

// add counts n records that are about to be given to the client; after Close it is too late. It
// counts first and looks then, as Close closes first and counts then: one of the two sees the other.
func (p *Producer) add(n int) error {
	if p.out.Add(int64(n)) == int64(n) {
		p.moved()
	}
	if p.closed.Load() {
		p.subtract(n)
		return p.Err()
	}
	return nil
}

func (p *Producer) subtract(n int) {
	if p.out.Add(int64(-n)) == 0 && p.closed.Load() {
		p.drain()
	}
}

func (p *Producer) drain() { p.drainOnce.Do(func() { close(p.drained) }) }
