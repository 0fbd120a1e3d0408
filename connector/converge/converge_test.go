package converge

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/envelope"
	"github.com/tidemark-cdc/tidemark/internal/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// schemas by id: 1 is the table's key, 2 the same with another width, 3 another key, 9 an error of
// the registry, the rest is not known.
type schemas struct{ asked map[int]int }

func (s schemas) SchemaByID(_ context.Context, id int) (string, error) {
	s.asked[id]++
	field := map[int]string{
		1: `{"name":"id","type":"long"}`, 2: `{"name":"id","type":"int"}`,
		3: `{"name":"other","type":"long"}`,
	}[id]
	switch {
	case id == 9:
		return "", fault.New(fault.RegistryUnreachable, "down")
	case field == "":
		return "", errors.New("no such schema")
	}
	return `{"type":"record","name":"Key","fields":[` + field + `]}`, nil
}

// key is a record key: a schema id and one number.
func key(id uint32, n int64) []byte {
	return binary.AppendVarint(binary.BigEndian.AppendUint32([]byte{0}, id), n)
}

func name(k []byte) string {
	n, _ := binary.Varint(k[keyHead:])
	return fmt.Sprintf("%d:%d", schemaID(k), n)
}

type bench struct {
	t       *testing.T
	addrs   []string
	client  *kgo.Client
	schemas schemas
}

func newBench(t *testing.T, partitions int32) *bench {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(partitions, "t"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	b := &bench{t: t, addrs: c.ListenAddrs(), schemas: schemas{map[int]int{}}}
	b.client, err = kgo.NewClient(kgo.SeedBrokers(b.addrs...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.client.Close)
	return b
}

// rec is a record of an op: "x" is a tombstone, "" one without headers.
func rec(partition int32, op string, k []byte) *kgo.Record {
	r := &kgo.Record{Topic: "t", Partition: partition, Key: k, Value: []byte("v")}
	switch op {
	case "":
		return r
	case "x":
		r.Value, op = nil, "d"
	}
	r.Headers = []kgo.RecordHeader{{Key: envelope.HeaderOp, Value: []byte(op)}}
	return r
}

func (b *bench) produce(recs ...*kgo.Record) {
	b.t.Helper()
	if err := b.client.ProduceSync(b.t.Context(), recs...).FirstErr(); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) join(memory int64) *Join {
	b.t.Helper()
	shape, err := envelope.ParseKeyShape(
		`{"type":"record","name":"Key","fields":[{"name":"id","type":"long"}]}`)
	if err != nil {
		b.t.Fatal(err)
	}
	j, err := New(b.t.Context(), Options{
		Kafka: config.Kafka{Bootstrap: b.addrs}, Topic: "t", Schemas: b.schemas, Shape: shape,
		Dir: b.t.TempDir(), MaxMemory: memory,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return j
}

// gone runs the join to its end and returns the keys that are gone, sorted; the files must be
// removed.
func (b *bench) gone(j *Join, table ...[]byte) []string {
	b.t.Helper()
	for _, k := range table {
		if err := j.Table(k); err != nil {
			b.t.Fatal(err)
		}
	}
	if err := j.ReadTopic(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	out := []string{}
	err := j.Gone(b.t.Context(), func(k []byte, shape *envelope.KeyShape) error {
		text := name(k)
		if shape == nil {
			text += " unknown"
		}
		out = append(out, text)
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	// Also before Close: a process that is killed leaves no file.
	if left, err := os.ReadDir(j.o.Dir); err != nil || len(left) != 0 {
		b.t.Errorf("files are left: %v, %v", left, err)
	}
	j.Close()
	slices.Sort(out)
	return out
}

func same(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("gone %v, want %v", got, want)
	}
}

func TestLiveKeysThatTheTableDoesNotHaveAreGone(t *testing.T) {
	t.Parallel()
	b := newBench(t, 2)
	b.produce(
		rec(0, "c", key(1, 1)), rec(0, "u", key(1, 1)), // in the table
		rec(0, "r", key(1, 2)),                                                 // gone
		rec(1, "c", key(1, 3)), rec(1, "d", key(1, 3)), rec(1, "x", key(1, 3)), // deleted
		rec(1, "c", key(1, 4)), rec(1, "x", key(1, 4)), rec(1, "c", key(1, 4)), // back, and gone
		rec(1, "c", key(1, 5)), rec(1, "d", key(1, 5)), // deleted, without a tombstone
		rec(0, "", key(1, 6)), // without headers: gone
	)
	same(t, b.gone(b.join(0), key(1, 1), key(1, 7)), "1:2", "1:4", "1:6")
}

func TestWhatIsSentAfterNewDoesNotCount(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	b.produce(rec(0, "c", key(1, 1)))
	j := b.join(0)
	b.produce(rec(0, "c", key(1, 2)), rec(0, "x", key(1, 1)))
	same(t, b.gone(j), "1:1")
}

func TestATruncateClearsItsPartition(t *testing.T) {
	t.Parallel()
	b := newBench(t, 2)
	b.produce(
		rec(0, "c", key(1, 1)), rec(1, "c", key(1, 2)), rec(0, "t", nil), rec(0, "c", key(1, 3)),
		rec(0, "m", nil), // no row and no truncate
	)
	same(t, b.gone(b.join(0)), "1:2", "1:3")
}

func TestKeysOfOtherSchemas(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	b.produce(
		rec(0, "c", key(2, 1)), rec(0, "c", key(2, 2)), // another width: the same keys
		rec(0, "c", key(3, 1)),                         // another key with the same bytes
		rec(0, "c", key(5, 1)), rec(0, "c", key(5, 3)), // a schema that nobody knows
		rec(0, "c", []byte(`{"id":4}`)), // another program's
	)
	same(t, b.gone(b.join(0), key(1, 1)), "2:2", "3:1", "5:3 unknown")
	for id, n := range b.schemas.asked {
		if n != 1 {
			t.Errorf("schema %d was asked for %d times", id, n)
		}
	}
}

func TestAKeyThatWasMovedByNewPartitionsIsNeverLeft(t *testing.T) {
	t.Parallel()
	b := newBench(t, 2)
	b.produce(
		rec(0, "c", key(1, 1)), rec(1, "x", key(1, 1)), // deleted on the new partition only
		rec(0, "c", key(1, 2)), rec(1, "u", key(1, 2)), // live on both: once
		rec(0, "c", key(1, 3)), rec(1, "x", key(1, 3)), // in the table again
	)
	same(t, b.gone(b.join(0), key(1, 3)), "1:1", "1:2")
}

func TestARegistryThatIsDownEndsIt(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	b.produce(rec(0, "c", key(9, 1)))
	j := b.join(0)
	defer j.Close()
	if err := j.ReadTopic(t.Context()); !fault.Has(err, fault.RegistryUnreachable) {
		t.Errorf("%v", err)
	}
}

func TestAnEmptyTopicNeedsNoFiles(t *testing.T) {
	t.Parallel()
	b := newBench(t, 3)
	j := b.join(0)
	if same(t, b.gone(j, key(1, 1))); j.table != nil {
		t.Error("files were made")
	}
}

// What was aborted nobody has applied.
func TestAbortedRecordsDoNotCount(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	b.produce(rec(0, "c", key(1, 1)), rec(0, "c", key(1, 2)))
	tx, err := kgo.NewClient(kgo.SeedBrokers(b.addrs...), kgo.TransactionalID("tx"))
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Close()
	if err := tx.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := tx.ProduceSync(t.Context(), rec(0, "x", key(1, 1)),
		rec(0, "c", key(1, 3))).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if err := tx.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
	same(t, b.gone(b.join(0), key(1, 2)), "1:1")
}

// 200 000 keys on each side, in an eighth of a megabyte a pair: files are split, and the answer is
// the same.
func TestJoinInLittleMemory(t *testing.T) {
	t.Parallel()
	b := newBench(t, 3)
	const keys = 200_000
	var recs []*kgo.Record
	for n := range int64(keys) {
		recs = append(recs, rec(int32(n%3), "c", key(1, n)))
		if n%1000 == 0 { // a key that changes all the time does not split
			for range 20 {
				recs = append(recs, rec(0, "u", key(1, 0)))
			}
		}
	}
	b.produce(recs...)
	j := b.join(128 << 10)
	for n := range int64(keys) {
		if n%100 == 7 {
			continue
		}
		if err := j.Table(key(1, n)); err != nil {
			t.Fatal(err)
		}
	}
	gone := b.gone(j, key(1, keys+1))
	if len(gone) != keys/100 || !slices.Contains(gone, "1:199907") {
		t.Errorf("%d keys are gone", len(gone))
	}
	if j.splits < fanout/2 {
		t.Errorf("%d splits", j.splits)
	}
}

func TestRetentionIsSaid(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	b.produce(rec(0, "c", key(1, 1)), rec(0, "c", key(1, 2)))
	adm := kadm.NewClient(b.client)
	_, err := adm.DeleteRecords(t.Context(), kadm.Offsets{"t": {0: {Topic: "t", At: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	shape, _ := envelope.ParseKeyShape(`{"type":"record","name":"Key","fields":[]}`)
	j, err := New(t.Context(), Options{
		Kafka: config.Kafka{Bootstrap: b.addrs}, Topic: "t", Schemas: b.schemas, Shape: shape,
		Dir: t.TempDir(), Logger: slogTo(&log),
	})
	if err != nil {
		t.Fatal(err)
	}
	same(t, b.gone(j), "1:2")
	if !strings.Contains(log.String(), "retention") {
		t.Errorf("log %q", log.String())
	}
}

func TestADiskThatIsFullOrAwayIsNamed(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	b.produce(rec(0, "c", key(1, 1)))
	_, err := New(t.Context(), Options{
		Kafka: config.Kafka{Bootstrap: b.addrs}, Topic: "t", Dir: "/no/such/directory",
	})
	if fault.CodeOf(err) != fault.Internal || !strings.Contains(err.Error(), "TMPDIR") {
		t.Errorf("%v", err)
	}
}

func slogTo(w *strings.Builder) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// batch is the head of a record batch: its first and last offset, its number of records.
func batch(first, last int64, records uint32, attributes uint16) []byte {
	b := make([]byte, batchHeader)
	binary.BigEndian.PutUint64(b, uint64(first))
	binary.BigEndian.PutUint32(b[batchLength:], batchHeader-batchLength-4)
	binary.BigEndian.PutUint16(b[batchAttributes:], attributes)
	binary.BigEndian.PutUint32(b[batchLastDelta:], uint32(last-first))
	binary.BigEndian.PutUint32(b[batchCount:], records)
	return b
}

func TestEmptyBatchesAreWalkedOver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		batches []byte
		next    int64
		rows    bool
	}{
		"nothing":         {nil, 5, false},
		"empty":           {batch(4, 9, 0, 0), 10, false},
		"a marker":        {batch(5, 5, 1, attributeMarker), 6, false},
		"records":         {batch(5, 7, 3, 0), 5, true},
		"records before":  {batch(1, 4, 4, 0), 5, false},
		"empty, records":  {slices.Concat(batch(5, 5, 0, 0), batch(6, 6, 1, 0)), 6, true},
		"empty and a bit": {slices.Concat(batch(5, 5, 0, 0), batch(6, 6, 1, 0)[:60]), 6, false},
	} {
		next, rows := emptyUpTo(c.batches, 5)
		if next != c.next || rows != c.rows {
			t.Errorf("%s: %d %t", name, next, rows)
		}
	}
}

// A silent broker is no empty partition: what is there is seen, and an end that is not reached yet.
func TestAPartitionWithRecordsIsNoHole(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	b.produce(rec(0, "c", key(1, 1)), rec(0, "c", key(1, 2)))
	j := b.join(0)
	defer j.Close()
	topics, err := j.admin.ListTopics(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []part{{next: 0, end: 2}, {next: 1, end: 2}, {next: 2, end: 3}} {
		empty, stable, err := j.hole(t.Context(), topics["t"], 0, &p)
		if empty || stable != 2 || err != nil {
			t.Errorf("%+v: empty %t, stable %d, %v", p, empty, stable, err)
		}
	}
	if n, err := j.quiet(t.Context(), silence); n != 0 || !fault.Has(err, fault.BrokerUnreachable) {
		t.Errorf("%d %v", n, err)
	}
}
