package converge

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/envelope"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/internal/kafkadial"
)

// Schemas gives a schema's text by its id; schema/registry's Client is one.
type Schemas interface {
	SchemaByID(ctx context.Context, id int) (string, error)
}

// Options say what to join.
type Options struct {
	Kafka   config.Kafka
	Topic   string
	Schemas Schemas
	// Shape is the table's present key.
	Shape *envelope.KeyShape
	// Dir is where files are spilled to; "" is the system's directory for temporary files.
	Dir string
	// MaxMemory bounds what a pair of files takes when it is joined; 0 is 32 MiB.
	MaxMemory int64
	Logger    *slog.Logger
}

// maxMemory is small enough to go unnoticed beside max.queue.bytes, and takes some 300 000 keys:
// with 64 files a table of 20 million rows is joined in one pass.
const maxMemory = 32 << 20

// Join is the comparison of one table with its topic. It is used once, by one goroutine: New, Table
// for each row of the snapshot, ReadTopic, Gone, Close.
type Join struct {
	o      Options
	client *kgo.Client
	admin  *kadm.Client
	parts  map[int32]*part
	shapes map[uint32]keySchema

	seed   seeds
	table  *spill
	topic  *spill
	splits int // how often a pair of files was too large, for tests
}

// part is what is to be read of a partition.
type part struct {
	start, end, next int64
	cleared          int64 // offset of the last truncate; -1: none
}

// keySchema is what is known of a schema id.
type keySchema struct {
	shape *envelope.KeyShape // nil: not known
	same  bool               // as the table's present key
}

// New notes where the topic ends now: what is sent from here on is no part of the comparison.
func New(ctx context.Context, o Options) (*Join, error) {
	o.MaxMemory = cmp.Or(o.MaxMemory, maxMemory)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	opts, err := kafkadial.Options(o.Kafka)
	if err != nil {
		return nil, err
	}
	opts = append(
		opts,
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxWait(fetchWait),
		// Metadata are asked for twice in a row: for the offsets, then for reading.
		kgo.MetadataMinAge(100*time.Millisecond),
		// The markers that end transactions have offsets too: they tell that an end is reached.
		kgo.KeepControlRecords(),
		// An offset that retention has deleted meanwhile: go on with the oldest there is.
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	j := &Join{o: o, parts: map[int32]*part{}, shapes: map[uint32]keySchema{}}
	if j.client, err = kgo.NewClient(opts...); err != nil {
		return nil, fault.Wrap(fault.ConfigInvalid, "a consumer setting is refused", err)
	}
	j.admin = kadm.NewClient(j.client)
	if err = j.look(ctx); err == nil {
		err = j.open()
	}
	if err != nil {
		j.Close()
		return nil, err
	}
	return j, nil
}

// open makes the files, when there is anything to compare.
func (j *Join) open() (err error) {
	if j.Empty() {
		return nil
	}
	j.seed = newSeeds()
	if j.table, err = newSpill(j.o.Dir, j.seed[0], fanout); err != nil {
		return err
	}
	j.topic, err = newSpill(j.o.Dir, j.seed[0], fanout)
	return err
}

// Close ends the connections and removes the files.
func (j *Join) Close() {
	j.client.Close()
	for _, s := range []*spill{j.table, j.topic} {
		if s != nil {
			s.close()
		}
	}
}

// Empty reports whether the topic has no record: then no key can be gone.
func (j *Join) Empty() bool { return len(j.parts) == 0 }

// look asks where each partition begins and ends.
func (j *Join) look(ctx context.Context) error {
	starts, err := listed(j.admin.ListStartOffsets(ctx, j.o.Topic))
	if err != nil {
		return kafkadial.Wrap("Describe", "topic "+j.o.Topic, err)
	}
	ends, err := listed(j.admin.ListEndOffsets(ctx, j.o.Topic))
	if err != nil {
		return kafkadial.Wrap("Describe", "topic "+j.o.Topic, err)
	}
	cut := int64(0)
	for id, end := range ends[j.o.Topic] {
		start, _ := starts.Lookup(j.o.Topic, id)
		cut += start.Offset
		if start.Offset < end.Offset {
			j.parts[id] = &part{
				start: start.Offset, end: end.Offset, next: start.Offset, cleared: -1,
			}
		}
	}
	if cut > 0 {
		j.o.Logger.Warn("retention has deleted records of the topic: keys that only they had are "+
			"not known, and get no delete if they are gone from the table", "topic", j.o.Topic,
			"records", cut)
	}
	return nil
}

func listed(offsets kadm.ListedOffsets, err error) (kadm.ListedOffsets, error) {
	if err == nil {
		err = offsets.Error()
	}
	return offsets, err
}

// Table takes a key that the table has: its record key, in wire format. It is not kept.
func (j *Join) Table(key []byte) error {
	if j.Empty() {
		return nil
	}
	return j.table.write(key[keyHead:], tableEntry(key[keyHead:]))
}

// Gone calls fn with each key that is live in the topic and was not given to Table: as the topic
// has it, with the shape of its schema (nil: not known). key is valid until fn returns.
func (j *Join) Gone(
	ctx context.Context, fn func(key []byte, shape *envelope.KeyShape) error,
) error {
	if j.Empty() {
		return nil
	}
	return j.join(ctx, 0, j.table, j.topic, func(key []byte) error {
		return fn(key, j.shapes[schemaID(key)].shape)
	})
}

func diskFault(err error) error {
	return fault.Wrap(fault.Internal, "keys could not be spilled to disk", err).With("",
		"room for the keys of the topic and of the table", "make room, or set TMPDIR to a "+
			"directory that has it")
}
