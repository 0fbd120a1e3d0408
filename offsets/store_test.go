package offsets

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

const offsetsTopic = "tidemark-offsets"

func newCluster(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func storeOptions(c *kfake.Cluster) StoreOptions {
	return StoreOptions{
		ClientOpts: []kgo.Opt{kgo.SeedBrokers(c.ListenAddrs()...)},
		Topic:      offsetsTopic, Connector: "shop", Prefix: "shop", Replication: 1,
		TransactionTimeout: 10 * time.Second, CallTimeout: 5 * time.Second,
		ReadTimeout: 5 * time.Second,
	}
}

func openStore(t *testing.T, c *kfake.Cluster, change ...func(*StoreOptions)) *Store {
	t.Helper()
	opts := storeOptions(c)
	for _, f := range change {
		f(&opts)
	}
	s, err := OpenStore(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func fenced(t *testing.T, c *kfake.Cluster, change ...func(*StoreOptions)) *Store {
	t.Helper()
	s := openStore(t, c, change...)
	if err := s.Fence(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func position(lsn LSN) Record {
	return Record{LSN: lsn, SystemID: "7", Timeline: 1, Slot: "s", Epoch: 1}
}

func mustSave(t *testing.T, s *Store, r Record) {
	t.Helper()
	if err := s.Save(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

func wantLoad(t *testing.T, s *Store, want LSN) {
	t.Helper()
	r, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := LSN(0)
	if r != nil {
		got = r.LSN
	}
	if got != want {
		t.Fatalf("loaded %s, want %s", got, want)
	}
}

// produce writes a record by another program, without a transaction.
func produce(t *testing.T, c *kfake.Cluster, key, value string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	r := &kgo.Record{Topic: offsetsTopic, Key: []byte(key), Value: []byte(value)}
	if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// openTransaction leaves a transaction of another program open, with one record of a key in it.
func openTransaction(t *testing.T, c *kfake.Cluster, id, key, value string) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.TransactionalID(id))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if err := client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	r := &kgo.Record{Topic: offsetsTopic, Key: []byte(key), Value: []byte(value)}
	if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
		t.Fatal(err)
	}
	return client
}

const (
	shopKey   = `["shop",{"server":"shop"}]`
	foreign   = `["other",{"server":"other"}]`
	shopValue = `{"lsn":99,"history":0,"system_id":"7"}`
)

func TestRecordKeyIsConnects(t *testing.T) {
	for _, c := range []struct{ connector, prefix, want string }{
		{"shop", "shop", shopKey},
		{`a "b" & <c>`, "p", `["a \"b\" & <c>",{"server":"p"}]`},
		{"Größe", "p", `["Größe",{"server":"p"}]`},
	} {
		if got, err := RecordKey(c.connector, c.prefix); err != nil || string(got) != c.want {
			t.Errorf("%s %v, want %s", got, err, c.want)
		}
	}
}

func TestStoreMakesACompactedTopic(t *testing.T) {
	c := newCluster(t)
	s := openStore(t, c, func(o *StoreOptions) { o.Partitions = 3 })
	topics, err := s.admin.ListTopics(t.Context(), offsetsTopic)
	if err != nil || len(topics[offsetsTopic].Partitions) != 3 {
		t.Fatalf("%v %v", topics, err)
	}
	configs, err := s.admin.DescribeTopicConfigs(t.Context(), offsetsTopic)
	if err != nil {
		t.Fatal(err)
	}
	policy := ""
	for _, e := range configs[0].Configs {
		if e.Key == "cleanup.policy" {
			policy = e.MaybeValue()
		}
	}
	if policy != "compact" {
		t.Fatalf("cleanup.policy=%s", policy)
	}
	openStore(t, c) // and takes it as it is the next time
}

func TestF31StoreRefusesATopicThatIsNotCompactedOnly(t *testing.T) {
	for _, policy := range []string{"delete", "compact,delete"} {
		c := newCluster(t)
		client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
		if err != nil {
			t.Fatal(err)
		}
		_, err = kadm.NewClient(client).CreateTopic(t.Context(), 1, 1,
			map[string]*string{"cleanup.policy": &policy}, offsetsTopic)
		client.Close()
		if err != nil {
			t.Fatal(err)
		}
		_, err = OpenStore(t.Context(), storeOptions(c))
		if fault.CodeOf(err) != fault.OffsetsTopicNotCompact ||
			!strings.Contains(err.Error(), "cleanup.policy="+policy+",") {
			t.Errorf("%s: %v", policy, err)
		}
	}
}

func TestStoreSavesAndLoads(t *testing.T) {
	c := newCluster(t)
	s := fenced(t, c)
	wantLoad(t, s, 0)
	mustSave(t, s, position(10))
	mustSave(t, s, position(20))
	wantLoad(t, s, 20)
	wantLoad(t, openStore(t, c), 20) // a reader without a fence: offsets show
	if err := s.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantLoad(t, s, 0)
	mustSave(t, s, position(5))
	wantLoad(t, s, 5)
}

// The partitions come of Java's murmur2 over the key's bytes, computed by another implementation.
func TestStorePartitionIsConnects(t *testing.T) {
	for _, k := range []struct {
		connector, prefix string
		want              int32
	}{
		{"shop", "shop", 0}, {"shop", "fulfillment", 21}, {"inventory", "dbserver1", 3},
	} {
		c := newCluster(t)
		s := fenced(t, c, func(o *StoreOptions) {
			o.Partitions, o.Connector, o.Prefix = 25, k.connector, k.prefix
		})
		if s.Partition() != k.want || s.Topic() != offsetsTopic {
			t.Errorf("%s %s: partition %d, want %d", k.connector, k.prefix, s.Partition(), k.want)
		}
		mustSave(t, s, position(10))
		wantLoad(t, s, 10)
	}
}

func TestF33StoreIgnoresForeignKeys(t *testing.T) {
	c := newCluster(t)
	s := fenced(t, c)
	mustSave(t, s, position(10))
	produce(t, c, foreign, `{"lsn":999,"history":0,"system_id":"7"}`)
	produce(t, c, "garbage", "\x00\x01")
	produce(t, c, `["shop",{"server":"other"}]`, `{"format":99}`)
	wantLoad(t, s, 10)
}

func TestF33StoreRefusesItsOwnUnreadableRecord(t *testing.T) {
	for _, value := range []string{"garbage", `{"format":2,"lsn":5,"history":0}`} {
		c := newCluster(t)
		s := fenced(t, c)
		mustSave(t, s, position(10))
		produce(t, c, shopKey, value)
		if r, err := s.Load(t.Context()); fault.CodeOf(err) != fault.OffsetsUnreadable {
			t.Errorf("%s: %+v %v", value, r, err)
		}
		mustSave(t, s, position(11)) // a later one that can be read counts
		wantLoad(t, s, 11)
	}
}

func TestStoreIgnoresAbortedTransactions(t *testing.T) {
	c := newCluster(t)
	s := fenced(t, c)
	mustSave(t, s, position(10))
	other := openTransaction(t, c, "x", shopKey, shopValue)
	if err := other.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
	wantLoad(t, s, 10)
}

// The end of the log may be control records, or batches that compaction has emptied: Load stops
// there at once.
func TestStoreLoadsToAnEndThatHoldsNoRecords(t *testing.T) {
	c := newCluster(t)
	s := fenced(t, c)
	for i := range LSN(5) {
		mustSave(t, s, position(10+i))
	}
	other := openTransaction(t, c, "x", "k", "v")
	if err := other.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
	c.Compact()
	began := time.Now()
	wantLoad(t, s, 14)
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("took %s", took)
	}
}

func TestF38StoreNamesWhoBlocksTheEnd(t *testing.T) {
	c := newCluster(t)
	s := fenced(t, c, func(o *StoreOptions) { o.ReadTimeout = 300 * time.Millisecond })
	mustSave(t, s, position(10))
	other := openTransaction(t, c, "somebody", foreign, "v")
	_, err := s.Load(t.Context())
	if fault.CodeOf(err) != fault.OffsetsUnreadable ||
		!strings.Contains(err.Error(), `transactional id "somebody"`) ||
		!strings.Contains(err.Error(), "offset 2 of 3") {
		t.Fatalf("%v", err)
	}
	if err := other.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	wantLoad(t, s, 10)
}

func TestF38StoreWaitsForATransactionThatEnds(t *testing.T) {
	c := newCluster(t)
	s := fenced(t, c)
	mustSave(t, s, position(10))
	other := openTransaction(t, c, "somebody", shopKey, shopValue)
	ended := make(chan error, 1)
	looked := make(chan struct{}, 1)
	c.ControlKey(int16(kmsg.ListOffsets), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if req.(*kmsg.ListOffsetsRequest).IsolationLevel == 1 {
			select {
			case looked <- struct{}{}:
			default:
			}
		}
		return nil, nil, false
	})
	go func() {
		<-looked
		ended <- other.EndTransaction(context.WithoutCancel(t.Context()), kgo.TryCommit)
	}()
	wantLoad(t, s, 99)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}
