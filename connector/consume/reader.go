package consume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/internal/kafkadial"
)

// Options say what to read.
type Options struct {
	Kafka   config.Kafka
	Schemas Schemas
	// Topics are read; each must exist. When there are none, all topics of Prefixes are (each a
	// topic.prefix; see Belongs), also those that appear while reading.
	Topics   []string
	Prefixes []string
	// FromBeginning starts at the oldest record; else only what is written from now on is read.
	// Topics and partitions that appear later are always read from their oldest record.
	FromBeginning bool
	// ExitAtEnd ends reading (io.EOF) at what the end was when the Reader was made.
	ExitAtEnd bool
	// ReadCommitted leaves out records of transactions that were aborted or are open.
	ReadCommitted bool
	Logger        *slog.Logger // nil: discarded

	// Tests wait less; 0 is the constant of the same name.
	lookEvery, quietEnd time.Duration
}

// Reader reads topics. It is for one goroutine.
type Reader struct {
	o      Options
	client *kgo.Client
	admin  *kadm.Client
	decode decoders
	parts  map[string]map[int32]*part
	open   int // partitions that are not at their end yet; ExitAtEnd only

	fetched []*kgo.Record
	looked  time.Time // when topics were listed last
	// waited is how long was waited for records since some came last. The time that the caller takes
	// for records is none of it.
	waited time.Duration
}

// part is what is known of a partition.
type part struct {
	next int64 // offset of the next record
	end  int64 // ExitAtEnd: where to stop
}

// Pauses of reading.
const (
	// Topics that appear are found within this; the first of them within a tenth of it.
	lookEvery = 3 * time.Second
	// A broker answers a fetch that finds nothing after this.
	fetchWait = 500 * time.Millisecond
	// A partition's last offsets may belong to no record (compaction empties batches). When
	// nothing came for this long and the broker still answers, the end is reached.
	quietEnd = 10 * time.Second
)

// Belongs reports whether a topic is one of a connector's with this topic.prefix: a table's
// (prefix, schema, table) or the logical messages'. The connector's own topics are not.
func Belongs(topic, prefix string) bool {
	rest, ok := strings.CutPrefix(topic, prefix+".")
	return ok && (rest == "message" || strings.Count(rest, ".") == 1)
}

// New connects, finds the topics and where they begin and end. An explicit topic that does not
// exist is topic_missing.
func New(ctx context.Context, o Options) (*Reader, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.lookEvery, o.quietEnd = cmp.Or(o.lookEvery, lookEvery), cmp.Or(o.quietEnd, quietEnd)
	opts, err := kafkadial.Options(o.Kafka)
	if err != nil {
		return nil, err
	}
	isolation := kgo.ReadUncommitted()
	if o.ReadCommitted {
		isolation = kgo.ReadCommitted()
	}
	opts = append(
		opts,
		kgo.FetchIsolationLevel(isolation),
		kgo.FetchMaxWait(fetchWait),
		// The markers that end transactions have offsets too: they tell that an end is reached.
		kgo.KeepControlRecords(),
		// An offset that retention has deleted meanwhile: go on with the oldest there is.
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, fault.Wrap(fault.ConfigInvalid, "a consumer setting is refused", err)
	}
	r := &Reader{
		o: o, client: client, admin: kadm.NewClient(client),
		decode: decoders{schemas: o.Schemas, byID: map[int]*decoder{}},
		parts:  map[string]map[int32]*part{},
	}
	if err := r.look(ctx, o.FromBeginning); err != nil {
		client.Close()
		return nil, err
	}
	return r, nil
}

// Close ends the connections.
func (r *Reader) Close() { r.client.Close() }

// Buffered returns how many records are here already: Next does not wait for them.
func (r *Reader) Buffered() int { return len(r.fetched) }

// Topics returns the topics that are read, sorted.
func (r *Reader) Topics() []string {
	names := make([]string, 0, len(r.parts))
	for name := range r.parts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// look lists the topics and adds partitions that are not read yet.
func (r *Reader) look(ctx context.Context, fromBeginning bool) error {
	names, err := r.list(ctx)
	r.looked = time.Now()
	if err != nil || len(names) == 0 {
		return err
	}
	starts, err := r.offsets(ctx, r.admin.ListStartOffsets, names)
	if err != nil {
		return err
	}
	list := r.admin.ListEndOffsets
	if r.o.ReadCommitted {
		list = r.admin.ListCommittedOffsets
	}
	ends, err := r.offsets(ctx, list, names)
	if err != nil {
		return err
	}
	add := map[string]map[int32]kgo.Offset{}
	ends.Each(func(end kadm.ListedOffset) {
		if r.parts[end.Topic][end.Partition] != nil {
			return
		}
		p := &part{next: end.Offset, end: end.Offset}
		if start, ok := starts.Lookup(end.Topic, end.Partition); ok && fromBeginning {
			p.next = start.Offset
		}
		if r.parts[end.Topic] == nil {
			r.parts[end.Topic] = map[int32]*part{}
		}
		r.parts[end.Topic][end.Partition] = p
		if r.o.ExitAtEnd && p.next >= p.end {
			return
		}
		r.open++
		if add[end.Topic] == nil {
			add[end.Topic] = map[int32]kgo.Offset{}
		}
		add[end.Topic][end.Partition] = kgo.NewOffset().At(p.next)
	})
	r.client.AddConsumePartitions(add)
	return nil
}

// list returns the names of the topics to read.
func (r *Reader) list(ctx context.Context) ([]string, error) {
	details, err := r.admin.ListTopics(ctx, r.o.Topics...)
	if err != nil {
		return nil, kafkadial.Wrap("Describe", "cluster", err)
	}
	var names []string
	for _, d := range details.Sorted() {
		switch {
		case len(r.o.Topics) > 0 && d.Err != nil:
			return nil, kafkadial.Wrap("Describe", "topic "+d.Topic, d.Err)
		case d.Err == nil && (len(r.o.Topics) > 0 || r.belongs(d.Topic)):
			names = append(names, d.Topic)
		}
	}
	return names, nil
}

func (r *Reader) belongs(topic string) bool {
	return slices.ContainsFunc(r.o.Prefixes, func(p string) bool { return Belongs(topic, p) })
}

type lister func(ctx context.Context, topics ...string) (kadm.ListedOffsets, error)

func (r *Reader) offsets(ctx context.Context, list lister, names []string) (
	kadm.ListedOffsets, error,
) {
	listed, err := list(ctx, names...)
	if err == nil {
		err = listed.Error()
	}
	return listed, kafkadial.Wrap("Describe", "topics "+strings.Join(names, ", "), err)
}

// Next returns the next record. It waits until there is one, and returns io.EOF at the end when
// ExitAtEnd is set, ctx's error when that ends, else a fault.
func (r *Reader) Next(ctx context.Context) (*Message, error) {
	for {
		if len(r.fetched) > 0 {
			rec := r.fetched[0]
			r.fetched = r.fetched[1:]
			if r.passed(rec) {
				continue
			}
			return r.decode.message(ctx, rec)
		}
		if r.o.ExitAtEnd && r.open == 0 {
			return nil, io.EOF
		}
		if err := r.fetch(ctx); err != nil {
			return nil, err
		}
	}
}

// passed moves the partition on and reports whether the record is not to be shown.
func (r *Reader) passed(rec *kgo.Record) bool {
	p := r.parts[rec.Topic][rec.Partition]
	before := p.next
	p.next = rec.Offset + 1
	if !r.o.ExitAtEnd {
		return rec.Attrs.IsControl()
	}
	if before < p.end && p.next >= p.end {
		r.open--
		r.client.PauseFetchPartitions(map[string][]int32{rec.Topic: {rec.Partition}})
	}
	return rec.Attrs.IsControl() || rec.Offset >= p.end
}

// nextLook is when topics are to be listed again.
func (r *Reader) nextLook() time.Time {
	if len(r.parts) == 0 {
		return r.looked.Add(r.o.lookEvery / 10)
	}
	return r.looked.Add(r.o.lookEvery)
}

// fetch waits for records, at most until topics are to be listed again.
func (r *Reader) fetch(ctx context.Context) error {
	began, until := time.Now(), r.nextLook()
	pollCtx, cancel := context.WithDeadline(ctx, until)
	fetches := r.client.PollFetches(pollCtx)
	cancel()
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, f := range fetches.Errors() {
		if !errors.Is(f.Err, context.DeadlineExceeded) && !kafkadial.Temporary(f.Err) {
			return kafkadial.Wrap("Read", "topic "+f.Topic, f.Err)
		}
	}
	if r.fetched = fetches.Records(); len(r.fetched) > 0 {
		r.waited = 0
		return nil
	}
	if began.Before(until) { // else the poll only took what was there
		r.waited += time.Since(began)
	}
	if time.Now().Before(until) {
		return nil
	}
	if r.o.ExitAtEnd {
		return r.quiet(ctx)
	}
	// A broker that is away for a while is no reason to stop following.
	if err := r.look(ctx, true); err != nil && !kafkadial.Temporary(err) {
		return err
	}
	return nil
}

// quiet ends reading when nothing has come for long, though the brokers answer.
func (r *Reader) quiet(ctx context.Context) error {
	names := r.Topics()
	r.looked = time.Now()
	listed, err := r.offsets(ctx, r.admin.ListEndOffsets, names)
	if err != nil {
		return err
	}
	if r.waited >= r.o.quietEnd {
		r.o.Logger.Debug("the last offsets belong to no record", "partitions", r.open)
		r.open = 0
	}
	if len(listed) < len(names) {
		return kafkadial.Wrap("Read", fmt.Sprint("topics ", names), kerr.UnknownTopicOrPartition)
	}
	return nil
}
