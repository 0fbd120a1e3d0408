package cases_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/connector"
	"github.com/tidemark-cdc/tidemark/connector/metrics"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/offsets"
	"github.com/tidemark-cdc/tidemark/testenv"
	"github.com/tidemark-cdc/tidemark/testenv/avrocompat"
)

// The tests of this package are the cases of faults that published connectors have had, one a test,
// K01 to K30, each from SQL to decoded topic. Expected values are written by hand. F and a number
// before it is a row of the catalogue of faults (docs/faults.md).

// TestMain lets more tests run at a time than there are processors: they mostly wait for servers.
func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.parallel").Value.String() == fmt.Sprint(runtime.GOMAXPROCS(0)) {
		_ = flag.Set("test.parallel", "6")
	}
	testenv.Main(m)
}

// onVersions runs a case on PostgreSQL 18, and with TIDEMARK_TEST_ALL on 14 and 15 too. from is
// the first version that has what the case is about; why says what that is.
func onVersions(t *testing.T, from int, why string, test func(t *testing.T, r *rig)) {
	t.Helper()
	t.Parallel()
	versions := []int{18}
	if os.Getenv("TIDEMARK_TEST_ALL") != "" {
		versions = []int{14, 15, 18}
	}
	for _, v := range versions {
		t.Run(fmt.Sprint(v), func(t *testing.T) {
			t.Parallel()
			if v < from {
				t.Skipf("PostgreSQL %d has no %s", v, why)
			}
			r := newRig(t, testenv.SharedPostgres(t, fmt.Sprint(v)))
			r.major = v
			test(t, r)
		})
	}
}

// rig is a database, a broker and a registry, and the settings of a connector between them.
type rig struct {
	t        *testing.T
	pg       *testenv.Postgres
	major    int
	db       string
	sql      *pgx.Conn
	broker   *testenv.FakeBroker
	registry *testenv.FakeRegistry
	url      string            // of the registry that is used
	keys     map[string]string // connector keys over the defaults; empty takes one away
	worker   map[string]string // the same of the worker
	log      *lockedBuffer
}

func newRig(t *testing.T, pg *testenv.Postgres) *rig {
	t.Helper()
	return newRigIn(t, pg, testenv.NewDatabase(t, pg))
}

// newRigIn is newRig on a database that exists.
func newRigIn(t *testing.T, pg *testenv.Postgres, db string) *rig {
	t.Helper()
	r := &rig{
		t: t, pg: pg, db: db, keys: map[string]string{}, worker: map[string]string{},
		log: &lockedBuffer{},
	}
	var err error
	if r.broker, err = testenv.StartFakeBroker(testenv.FakeBrokerOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.broker.Close() })
	if r.registry, err = testenv.StartFakeRegistry(testenv.FakeRegistryOptions{Compatible: avrocompat.Check}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.registry.Close() })
	r.url = r.registry.URL
	r.connect()
	return r
}

// connect opens the session of exec anew, which then has the settings of its database.
func (r *rig) connect() {
	r.t.Helper()
	conn, err := r.pg.Connect(r.t.Context(), r.db)
	if err != nil {
		r.t.Fatal(err)
	}
	r.sql = conn
	r.t.Cleanup(func() { conn.Close(context.Background()) })
}

// exec runs statements on the source, each in a transaction of its own unless it has BEGIN in it.
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

func (r *rig) settings() (*config.File, error) {
	keys := map[string]string{
		"topic.prefix":      "shop",
		"database.hostname": r.pg.Host, "database.port": fmt.Sprint(r.pg.Port),
		"database.user": r.pg.User, "database.password": r.pg.Password, "database.dbname": r.db,
		"slot.name": r.slot(), "table.include.list": `public\..*`,
		"topic.creation.default.partitions": "1", "topic.creation.default.replication.factor": "1",
		"slot.takeover.timeout.ms": "5000", "offset.flush.interval.ms": "100",
	}
	maps.Copy(keys, r.keys)
	for k, v := range r.keys {
		if v == "" {
			delete(keys, k)
		}
	}
	worker := map[string]string{
		"bootstrap.servers":   strings.Join(r.broker.Addrs(), ","),
		"schema.registry.url": r.url, "http.listen": "",
	}
	maps.Copy(worker, r.worker)
	f, _, err := config.FromMaps(worker, map[string]map[string]string{"c1": keys})
	return f, err
}

// running is a connector that runs.
type running struct {
	c      *connector.Connector
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

func (r *rig) start() *running {
	r.t.Helper()
	f, err := r.settings()
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	run := &running{cancel: cancel, done: make(chan struct{})}
	run.c = connector.New(f.Connectors[0], f.Worker, connector.Deps{
		Log:     slog.New(slog.NewTextHandler(r.log, nil)),
		Metrics: metrics.New(prometheus.NewRegistry()).Connector("c1"), Version: "test",
	})
	go func() {
		defer close(run.done)
		run.err = run.c.Run(ctx)
	}()
	r.t.Cleanup(func() { run.stop() })
	return run
}

// stop ends the connector in order and returns what Run returned.
func (r *running) stop() error {
	r.cancel()
	<-r.done
	return r.err
}

// until waits for a condition while the connector runs.
func (r *rig) until(run *running, what string, ok func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		select {
		case <-run.done:
			r.t.Fatalf("%s: the connector ended: %v\nlog:\n%s", what, run.err, r.log.String())
		default:
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("timed out: %s\nlog:\n%s", what, r.log.String())
		}
	}
}

// streaming starts a connector and waits until its snapshot is done.
func (r *rig) streaming() *running {
	r.t.Helper()
	run := r.start()
	r.until(run, "streaming", func() bool { return run.c.Status().State == "streaming" })
	return run
}

// caughtUp waits until everything that was committed is confirmed, stored and told to the slot.
func (r *rig) caughtUp(run *running) {
	r.t.Helper()
	mark := r.lsn("SELECT pg_logical_emit_message(true, 'mark', '')::text")
	r.until(run, "caught up", func() bool { return r.flushed(run) > mark })
}

func (r *rig) flushed(run *running) offsets.LSN {
	r.t.Helper()
	text := run.c.Status().Positions["flushed"]
	if text == "" {
		return 0
	}
	lsn, err := offsets.ParseLSN(text)
	if err != nil {
		r.t.Fatal(err)
	}
	return lsn
}

func (r *rig) lsn(sql string, args ...any) offsets.LSN {
	r.t.Helper()
	lsn, err := offsets.ParseLSN(r.query(sql, args...))
	if err != nil {
		r.t.Fatal(err)
	}
	return lsn
}

// clean stops the connector and fails if that was not in order.
func (r *rig) clean(run *running) {
	r.t.Helper()
	if err := run.stop(); err != nil {
		r.t.Fatalf("an ordered stop returned %v\nlog:\n%s", err, r.log.String())
	}
	if strings.Contains(r.log.String(), "has been made again") {
		r.t.Errorf("no test takes a topic away, and one is missed:\n%s", r.log.String())
	}
}

// ends waits until the connector has ended by itself with the code, and returns the error's text,
// which must have each part in it.
func (r *rig) ends(run *running, want fault.Code, parts ...string) string {
	r.t.Helper()
	select {
	case <-run.done:
	case <-time.After(60 * time.Second):
		r.t.Fatalf("the connector did not end with %s\nlog:\n%s", want, r.log.String())
	}
	if run.err == nil || fault.CodeOf(run.err) != want {
		r.t.Fatalf("ended with %v, want code %s\nlog:\n%s", run.err, want, r.log.String())
	}
	text := run.err.Error()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			r.t.Errorf("%q is missing in: %s", p, text)
		}
	}
	return text
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
