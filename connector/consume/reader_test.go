package consume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/connector/decode"
	"github.com/tidemark-cdc/tidemark/connector/deliver"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/schema"
	"github.com/tidemark-cdc/tidemark/schema/registry"
	"github.com/tidemark-cdc/tidemark/testenv"
	"github.com/tidemark-cdc/tidemark/testenv/avrocompat"
)

const patience = 20 * time.Second

func cluster(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func client(t *testing.T, c *kfake.Cluster, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	opts = append(opts, kgo.SeedBrokers(c.ListenAddrs()...), kgo.ProducerLinger(0),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

func produce(t *testing.T, cl *kgo.Client, topic string, partition int32, values ...string) {
	t.Helper()
	for _, v := range values {
		r := &kgo.Record{Topic: topic, Partition: partition, Value: []byte(`"` + v + `"`)}
		if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

func reader(t *testing.T, c *kfake.Cluster, o Options) *Reader {
	t.Helper()
	o.Kafka = config.Kafka{Bootstrap: c.ListenAddrs()}
	o.lookEvery = 50 * time.Millisecond
	r, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// next reads n messages (all, when n is negative) as "topic/partition value".
func next(t *testing.T, r *Reader, n int) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out []string
	for len(out) != n {
		m, err := r.Next(ctx)
		if n < 0 && errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("after %q: %v", out, err)
		}
		out = append(out, fmt.Sprintf("%s/%d %s", m.Topic, m.Partition, m.ValueBytes))
	}
	return out
}

func same(t *testing.T, want, got []string) {
	t.Helper()
	slices.Sort(want)
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("messages (-want +got):\n%s", d)
	}
}

func TestAllTopicsOfAConnectorToTheirEnd(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(2, "shop.public.a", "shop.public.empty", "shop.message",
		"shop.tidemark-events", "shopping.public.a", "shop.eu.public.a", "other"))
	cl := client(t, c)
	produce(t, cl, "shop.public.a", 0, "1", "2")
	produce(t, cl, "shop.public.a", 1, "3")
	produce(t, cl, "shop.message", 0, "4")
	for _, topic := range []string{
		"shop.tidemark-events", "shopping.public.a", "shop.eu.public.a", "other",
	} {
		produce(t, cl, topic, 0, "not this connector's")
	}
	r := reader(t, c, Options{Prefixes: []string{"shop"}, FromBeginning: true, ExitAtEnd: true})
	produce(t, cl, "shop.public.a", 0, "after the end")
	same(t, []string{
		`shop.public.a/0 "1"`, `shop.public.a/0 "2"`, `shop.public.a/1 "3"`, `shop.message/0 "4"`,
	}, next(t, r, -1))
	if got := strings.Join(r.Topics(), " "); got != "shop.message shop.public.a shop.public.empty" {
		t.Errorf("topics %s", got)
	}
}

func TestFollowingBeginsNowAndFindsNewTopics(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(1, "shop.public.a"))
	cl := client(t, c)
	produce(t, cl, "shop.public.a", 0, "before")
	r := reader(t, c, Options{Prefixes: []string{"shop"}})
	produce(t, cl, "shop.public.a", 0, "now")
	same(t, []string{`shop.public.a/0 "now"`}, next(t, r, 1))
	if err := c.CreateTopic("shop.public.b", 1, nil); err != nil {
		t.Fatal(err)
	}
	produce(t, cl, "shop.public.b", 0, "first of a new topic", "second")
	same(t, []string{
		`shop.public.b/0 "first of a new topic"`, `shop.public.b/0 "second"`,
	}, next(t, r, 2))
}

func TestATopicThatIsNamedMustExist(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(1, "there"))
	_, err := New(t.Context(), Options{
		Kafka: config.Kafka{Bootstrap: c.ListenAddrs()}, Topics: []string{"there", "missing"},
	})
	if fault.CodeOf(err) != fault.TopicMissing || !strings.Contains(err.Error(), "topic missing") {
		t.Fatalf("got %v", err)
	}
}

func TestReadCommittedLeavesAbortedRecordsOutAndStillEnds(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(1, "t"))
	cl := client(t, c, kgo.TransactionalID("x"))
	for value, commit := range map[string]kgo.TransactionEndTry{
		"aborted": kgo.TryAbort, "committed": kgo.TryCommit,
	} {
		if err := cl.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		produce(t, cl, "t", 0, value)
		if err := cl.EndTransaction(t.Context(), commit); err != nil {
			t.Fatal(err)
		}
	}
	o := Options{Topics: []string{"t"}, FromBeginning: true, ExitAtEnd: true, ReadCommitted: true}
	same(t, []string{`t/0 "committed"`}, next(t, reader(t, c, o), -1))
	o.ReadCommitted = false
	same(t, []string{`t/0 "aborted"`, `t/0 "committed"`}, next(t, reader(t, c, o), -1))
}

// Compaction may leave nothing at a partition's last offsets.
func TestOffsetsWithoutARecordDoNotHoldTheEndUp(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(1, "t"))
	produce(t, client(t, c), "t", 0, "1")
	o := Options{
		Topics: []string{"t"}, FromBeginning: true, ExitAtEnd: true,
		quietEnd: 200 * time.Millisecond,
	}
	r := reader(t, c, o)
	r.parts["t"][0].end += 3
	same(t, []string{`t/0 "1"`}, next(t, r, -1))
}

// Whoever takes long for what was fetched has not waited: there may be more.
func TestASlowCallerIsNotTakenForTheEnd(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(1, "t"))
	cl := client(t, c)
	produce(t, cl, "t", 0, "1")
	r := reader(t, c, Options{
		Topics: []string{"t"}, FromBeginning: true, ExitAtEnd: true, quietEnd: 1,
	})
	r.parts["t"][0].end++
	same(t, []string{`t/0 "1"`}, next(t, r, 1))
	r.looked = time.Now().Add(-time.Hour) // the caller printed for an hour
	if err := r.fetch(t.Context()); err != nil || r.open != 1 {
		t.Fatalf("%d partitions are open after a look that waited for nothing (%v)", r.open, err)
	}
	r.o.quietEnd = patience
	produce(t, cl, "t", 0, "2")
	same(t, []string{`t/0 "2"`}, next(t, r, -1))
}

// From a change to its text: encoder, producer, broker, registry, reader.
func TestWhatTheConnectorWritesIsRead(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	fake, err := testenv.StartFakeRegistry(testenv.FakeRegistryOptions{Compatible: avrocompat.Check})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fake.Close() })
	schemas, err := registry.New(registry.Options{URLs: []string{fake.URL}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(schemas.Close)

	s := newShop(t, orders(schema.IdentityFull), primaryKey)
	key, err := schemas.Register(t.Context(), "shop.public.orders-key", s.table.KeySchema)
	if err != nil {
		t.Fatal(err)
	}
	value, err := schemas.Register(t.Context(), "shop.public.orders-value", s.table.ValueSchema)
	if err != nil {
		t.Fatal(err)
	}
	s.table.SetIDs(key, value)
	p, err := deliver.New(t.Context(), deliver.Options{
		Kafka:    config.Kafka{Bootstrap: c.ListenAddrs()},
		Creation: config.TopicCreation{Partitions: 3, Replication: 1},
		Queue:    deliver.NewQueue(1<<20, nil),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	if err := p.EnsureTopic(t.Context(), s.table.Topic, s.table.HasKey()); err != nil {
		t.Fatal(err)
	}
	recs := s.change(decode.KindUpdate, 'O', tuple("7", "new", "1.00", null, null),
		tuple("7", "paid", "1.00", null, null))
	recs = append(recs, s.change(decode.KindDelete, 'O',
		tuple("7", "paid", "1.00", null, null), nil)...)
	if err := p.Send(t.Context(), recs, nil); err != nil {
		t.Fatal(err)
	}
	if err := p.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}

	r := reader(t, c, Options{
		Schemas: schemas, Prefixes: []string{"shop"}, FromBeginning: true, ExitAtEnd: true,
	})
	var seen []string
	for {
		m, err := r.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text := printed(t, m)
		seen = append(seen, strings.Fields(text)[2])
		if e := m.Event(); e != nil && e.Op == "u" &&
			!strings.Contains(text, `~ status  "new" -> "paid"`) {
			t.Errorf("no difference in\n%s", text)
		}
	}
	if got := strings.Join(seen, " "); got != "UPDATE DELETE TOMBSTONE" {
		t.Errorf("saw %s", got)
	}
}

func TestARegistryThatIsAwayEndsReading(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(1, "t"))
	cl := client(t, c)
	r := &kgo.Record{Topic: "t", Value: []byte{0, 0, 0, 0, 1, 2}}
	if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
		t.Fatal(err)
	}
	rd := reader(t, c, Options{Topics: []string{"t"}, FromBeginning: true, Schemas: away{}})
	if _, err := rd.Next(t.Context()); fault.CodeOf(err) != fault.RegistryUnreachable {
		t.Fatalf("got %v", err)
	}
}

type away struct{}

func (away) SchemaByID(context.Context, int) (string, error) {
	return "", fault.New(fault.RegistryUnreachable, "nobody answers")
}
