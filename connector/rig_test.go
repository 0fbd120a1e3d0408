package connector_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/linkedin/goavro/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/connector"
	"github.com/tidemark-cdc/tidemark/connector/metrics"
	"github.com/tidemark-cdc/tidemark/testenv"
	"github.com/tidemark-cdc/tidemark/testenv/avrocompat"
)

// TestMain lets more tests run at a time than there are processors: they mostly wait for servers.
func TestMain(m *testing.M) {
	if file := os.Getenv(childConfig); file != "" {
		runChild(file)
		return
	}
	flag.Parse()
	if flag.Lookup("test.parallel").Value.String() == fmt.Sprint(runtime.GOMAXPROCS(0)) {
		_ = flag.Set("test.parallel", "6")
	}
	testenv.Main(m)
}

// patience is how long a test waits for what must come: three minutes, since several tests share
// two cores under the race detector.
const patience = 3 * time.Minute

// rig is a database, a broker and a registry, with a configuration of a connector between them.
type rig struct {
	t        *testing.T
	pg       *testenv.Postgres
	db       string
	sql      *pgx.Conn
	broker   *testenv.FakeBroker
	registry *testenv.FakeRegistry
	extra    map[string]string // connector keys over the defaults
	log      *lockedBuffer
	kafka    *testenv.Kafka // in the broker's place, when it is not nil
}

func newRig(t *testing.T, version string) *rig {
	t.Helper()
	return newRigOn(t, testenv.SharedPostgres(t, version))
}

// newRigOn is newRig on a server that the test does not share.
func newRigOn(t *testing.T, pg *testenv.Postgres) *rig {
	t.Helper()
	r := &rig{t: t, pg: pg, extra: map[string]string{}}
	r.db = testenv.NewDatabase(t, r.pg)
	var err error
	if r.broker, err = testenv.StartFakeBroker(testenv.FakeBrokerOptions{}); err != nil {
		t.Fatal(err)
	}
	broker := r.broker // a test may put another one in its place
	t.Cleanup(func() { broker.Close() })
	if r.registry, err = testenv.StartFakeRegistry(testenv.FakeRegistryOptions{Compatible: avrocompat.Check}); err != nil {
		t.Fatal(err)
	}
	registry := r.registry
	t.Cleanup(func() { registry.Close() })
	if r.sql, err = r.pg.Connect(t.Context(), r.db); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.sql.Close(context.Background()) })
	r.log = &lockedBuffer{}
	return r
}

// exec runs SQL statements on the source, each in a transaction of its own unless it has BEGIN.
func (r *rig) exec(sql ...string) {
	r.t.Helper()
	for _, q := range sql {
		if _, err := r.sql.PgConn().Exec(r.t.Context(), q).ReadAll(); err != nil {
			r.t.Fatalf("%s: %v", q, err)
		}
	}
}

func (r *rig) query(sql string, args ...any) (out string) {
	r.t.Helper()
	if err := r.sql.QueryRow(r.t.Context(), sql, args...).Scan(&out); err != nil {
		r.t.Fatalf("%s: %v", sql, err)
	}
	return out
}

// slot is the slot's name: slots are the server's, not the database's.
func (r *rig) slot() string { return "s_" + r.db }

// addrs are the brokers'.
func (r *rig) addrs() []string {
	if r.kafka != nil {
		return r.kafka.Addrs()
	}
	return r.broker.Addrs()
}

func (r *rig) settings() *config.File {
	r.t.Helper()
	f, _, err := config.Load(r.configuration(), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return f
}

// configuration writes the configuration's file and returns its path.
func (r *rig) configuration() string {
	r.t.Helper()
	keys := map[string]string{
		"topic.prefix":      "shop",
		"database.hostname": r.pg.Host, "database.port": fmt.Sprint(r.pg.Port),
		"database.user": r.pg.User, "database.password": r.pg.Password, "database.dbname": r.db,
		"slot.name": r.slot(), "table.include.list": "public\\\\..*",
		"topic.creation.default.partitions": "3", "topic.creation.default.replication.factor": "1",
		"slot.takeover.timeout.ms": "5000", "offset.flush.interval.ms": "100",
	}
	for k, v := range r.extra {
		keys[k] = v
	}
	var b strings.Builder
	fmt.Fprintf(&b, "worker:\n  bootstrap.servers: \"%s\"\n  schema.registry.url: %q\n",
		strings.Join(r.addrs(), ","), r.registry.URL)
	b.WriteString("  http.listen: \"\"\nconnectors:\n  c1:\n")
	for k, v := range keys {
		fmt.Fprintf(&b, "    %s: \"%s\"\n", k, v)
	}
	file := filepath.Join(r.t.TempDir(), "tidemark.yaml")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		r.t.Fatal(err)
	}
	return file
}

// running is a connector that runs; stop ends it in order and returns what Run returned.
type running struct {
	c      *connector.Connector
	reg    *prometheus.Registry
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

func (r *rig) start() *running {
	r.t.Helper()
	f := r.settings()
	ctx, cancel := context.WithCancel(context.Background())
	reg := prometheus.NewRegistry()
	c := connector.New(f.Connectors[0], f.Worker, connector.Deps{
		Log:     slog.New(slog.NewTextHandler(r.log, nil)),
		Metrics: metrics.New(reg).Connector("c1"), Version: "test",
	})
	run := &running{c: c, reg: reg, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(run.done)
		run.err = c.Run(ctx)
	}()
	r.t.Cleanup(func() { run.stop() })
	return run
}

func (r *running) stop() error {
	r.cancel()
	<-r.done
	return r.err
}

// ended waits until the connector has ended by itself.
func (r *running) ended(t *testing.T) error {
	t.Helper()
	select {
	case <-r.done:
		return r.err
	case <-time.After(patience):
		t.Fatal("the connector did not end")
		return nil
	}
}

// until waits for a condition with a deadline.
func (r *rig) until(what string, ok func() bool) {
	r.t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			r.t.Fatalf("timed out: %s\nlog:\n%s", what, r.log.String())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (r *rig) streaming(run *running) {
	r.t.Helper()
	r.until("the connector streams", func() bool {
		select {
		case <-run.done:
			r.t.Fatalf("the connector ended: %v\nlog:\n%s", run.err, r.log.String())
		default:
		}
		return run.c.Status().State == "streaming"
	})
}

// event is a record of a topic, decoded by goavro.
type event struct {
	topic     string
	partition int32
	key       any
	value     map[string]any // nil: tombstone
	headers   map[string]string
}

func (e event) op() string {
	if e.value == nil {
		return "tombstone"
	}
	return e.value["op"].(string)
}

// read returns n events of a topic, from its beginning, in the order of offsets of each partition
// and across partitions by arrival.
func (r *rig) read(topic string, n int) []event {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(r.addrs()...), kgo.ConsumeTopics(topic),
		kgo.UnknownTopicRetries(-1), kgo.MetadataMinAge(50*time.Millisecond))
	if err != nil {
		r.t.Fatal(err)
	}
	defer client.Close()
	toEvent := r.toEvent(ctx)
	var out []event
	for len(out) < n {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			r.t.Fatalf("%d of %d events of %s came\nlog:\n%s", len(out), n, topic, r.log.String())
		}
		fetches.EachRecord(func(rec *kgo.Record) {
			out = append(out, toEvent(rec))
		})
	}
	return out
}

// toEvent returns what decodes a record.
func (r *rig) toEvent(ctx context.Context) func(*kgo.Record) event {
	r.t.Helper()
	reg, err := sr.NewClient(sr.URLs(r.registry.URL))
	if err != nil {
		r.t.Fatal(err)
	}
	codecs := map[int]*goavro.Codec{}
	decode := func(b []byte) any {
		if b == nil {
			return nil
		}
		id := int(b[1])<<24 | int(b[2])<<16 | int(b[3])<<8 | int(b[4])
		if codecs[id] == nil {
			s, err := reg.SchemaByID(ctx, id)
			if err != nil {
				r.t.Fatal(err)
			}
			if codecs[id], err = goavro.NewCodec(s.Schema); err != nil {
				r.t.Fatal(err)
			}
		}
		v, rest, err := codecs[id].NativeFromBinary(b[5:])
		if err != nil || len(rest) != 0 {
			r.t.Fatalf("decode: %v, %d bytes left", err, len(rest))
		}
		return v
	}
	return func(rec *kgo.Record) event {
		e := event{
			topic: rec.Topic, partition: rec.Partition, key: decode(rec.Key),
			headers: map[string]string{},
		}
		if v := decode(rec.Value); v != nil {
			e.value = v.(map[string]any)
		}
		for _, h := range rec.Headers {
			e.headers[h.Key] = string(h.Value)
		}
		return e
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
