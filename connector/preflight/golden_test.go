package preflight

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/testenv"
	"github.com/tidemark-cdc/tidemark/testenv/avrocompat"
	"github.com/tidemark-cdc/tidemark/testenv/download"
)

var update = flag.Bool("update", false, "write the golden files anew")

// world is a server of each kind, and the settings that point to them.
type world struct {
	pg       *testenv.Postgres
	db       string
	broker   *testenv.FakeBroker
	registry *testenv.FakeRegistry
	options  Options
}

// newWorld starts a broker and a registry in the process, and makes a database on pg.
func newWorld(t *testing.T, pg *testenv.Postgres, broker testenv.FakeBrokerOptions) *world {
	t.Helper()
	w := &world{pg: pg, db: testenv.NewDatabase(t, pg)}
	var err error
	if w.broker, err = testenv.StartFakeBroker(broker); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.broker.Close(); err != nil {
			t.Error(err)
		}
	})
	if w.registry, err = testenv.StartFakeRegistry(testenv.FakeRegistryOptions{Compatible: avrocompat.Check}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.registry.Close(); err != nil {
			t.Error(err)
		}
	})
	w.options = Options{
		Connector: &config.Connector{
			ReselectUnavailable: true,
			Name:                "shop", TopicPrefix: "shop", SlotName: "tidemark", Publication: "tidemark",
			PublicationAutocreate: "filtered", SnapshotMode: "initial", OnSlotGap: "fail",
			SlotTakeover: time.Second, HeartbeatInterval: 10 * time.Second,
			Database: config.Database{
				Host: pg.Host, Port: uint16(pg.Port), User: pg.User, Name: w.db,
				Password: config.NewSecret(pg.Password), SSLMode: "disable",
				ConnectTimeout: 5 * time.Second,
			},
			TopicCreation: config.TopicCreation{Partitions: 1, Replication: 1},
			Producer:      config.Producer{MaxRequestBytes: 1 << 20},
		},
		Worker: config.Worker{
			Kafka: config.Kafka{Bootstrap: w.broker.Addrs()},
			Registry: config.Registry{
				URLs: []string{w.registry.URL}, Timeout: 5 * time.Second,
			},
			OffsetTopic: "tidemark-offsets", OffsetPartitions: 1, OffsetReplication: 1,
		},
		Timeout: 10 * time.Second,
	}
	return w
}

// exec runs statements one by one as the superuser, in the world's database.
func (w *world) exec(t *testing.T, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if err := w.pg.Exec(context.Background(), w.db, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// check runs all checks.
func (w *world) check(t *testing.T) *Report {
	t.Helper()
	report, err := Run(context.Background(), w.options)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func include(t *testing.T, expressions ...string) []*regexp.Regexp {
	t.Helper()
	var out []*regexp.Regexp
	for _, e := range expressions {
		out = append(out, regexp.MustCompile("(?i)^(?:"+e+")$"))
	}
	return out
}

// volatile lists what differs from run to run, and what the golden files have in its place.
var volatile = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "127.0.0.1:PORT"},
	{regexp.MustCompile(`db\d+_test[a-z0-9_]*`), "shop"},
	{regexp.MustCompile(`system \d{10,}`), "system SYSTEM"},
	{regexp.MustCompile(`[0-9A-F]+/[0-9A-F]{4,}`), "LSN"},
	{regexp.MustCompile(`PID \d+`), "PID N"},
	{regexp.MustCompile(`pg_terminate_backend\(\d+\)`), "pg_terminate_backend(N)"},
	{regexp.MustCompile(`\b\d+ of (\d+) in use`), "N of $1 in use"},
	{regexp.MustCompile(`oldest is \d+ transactions`), "oldest is N transactions"},
	{regexp.MustCompile(`open for [0-9hms.]+`), "open for AGE"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:]+\+\d\d`), "TIME"},
	{regexp.MustCompile(`[0-9.]+ (B|KiB|MiB) of WAL`), "SIZE of WAL"},
	{regexp.MustCompile(`\b18\.\d+\b`), "18.N"},
	{regexp.MustCompile(`\b\d+ relations in`), "N relations in"},
}

func normalise(text string) string {
	for _, v := range volatile {
		text = v.what.ReplaceAllString(text, v.with)
	}
	return text
}

// golden compares a report's text with testdata/NAME.txt.
func golden(t *testing.T, name string, report *Report) {
	t.Helper()
	var b bytes.Buffer
	if err := report.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	got := normalise(b.String())
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s differs (-want +got):\n%s", file, d)
	}
}

func TestHealthyServer(t *testing.T) {
	w := newWorld(t, testenv.SharedPostgres(t, ""), testenv.FakeBrokerOptions{})
	w.exec(t,
		`CREATE TABLE orders (id bigint PRIMARY KEY, customer int NOT NULL, total numeric(10,2))`,
		`ALTER TABLE orders REPLICA IDENTITY FULL`,
		`CREATE TABLE customers (id int PRIMARY KEY, active boolean)`,
		`ALTER SYSTEM SET max_slot_wal_keep_size = '1GB'`, `SELECT pg_reload_conf()`)
	t.Cleanup(func() {
		w.exec(t, `ALTER SYSTEM RESET max_slot_wal_keep_size`, `SELECT pg_reload_conf()`)
	})
	w.options.Connector.Tables.TableInclude = include(t, "public.orders", "public.customers")
	report := w.check(t)
	golden(t, "healthy", report)
	if !report.Passed || report.Exit() != 0 {
		t.Errorf("a healthy server does not pass: exit %d", report.Exit())
	}
}

// badSQL prepares about everything wrongly that can be wrong in one database.
var badSQL = []string{
	`CREATE ROLE app LOGIN PASSWORD 'app'`,
	`CREATE TABLE nokey (a int, b int)`,
	`CREATE TABLE nothing (id int PRIMARY KEY, note text)`,
	`ALTER TABLE nothing REPLICA IDENTITY NOTHING`,
	`CREATE TABLE deferred (id int PRIMARY KEY DEFERRABLE, code int NOT NULL UNIQUE)`,
	`CREATE TABLE lostindex (id int PRIMARY KEY, k int NOT NULL)`,
	`CREATE UNIQUE INDEX lostindex_k ON lostindex (k)`,
	`ALTER TABLE lostindex REPLICA IDENTITY USING INDEX lostindex_k`,
	`DROP INDEX lostindex_k`,
	`CREATE TABLE fullnokey (a int, doc jsonb)`,
	`ALTER TABLE fullnokey REPLICA IDENTITY FULL`,
	`CREATE TABLE "Mixed Case" (id int PRIMARY KEY, "Big Text" text, file oid,
	   twice int GENERATED ALWAYS AS (id * 2) STORED)`,
	`CREATE TABLE a_b (id int PRIMARY KEY)`,
	`CREATE SCHEMA a`, `CREATE TABLE a.x_b (id int PRIMARY KEY)`,
	`CREATE SCHEMA a_x`, `CREATE TABLE a_x.b (id int PRIMARY KEY)`,
	`CREATE UNLOGGED TABLE scratch (id int PRIMARY KEY)`,
	`CREATE VIEW everything AS SELECT * FROM nokey`,
	`CREATE TABLE hidden (id int PRIMARY KEY)`,
	`ALTER TABLE hidden ENABLE ROW LEVEL SECURITY`,
	`CREATE SEQUENCE numbers`,
	`SELECT lo_create(0)`,
	`GRANT SELECT ON hidden TO app`,
	`REVOKE EXECUTE ON FUNCTION pg_logical_emit_message(boolean, text, text, boolean) FROM PUBLIC`,
	`CREATE PUBLICATION tidemark FOR TABLE nokey, a_b WITH (publish = 'insert, update')`,
}

func TestF61BadlyPreparedServer(t *testing.T) {
	pg, err := testenv.StartPostgres(context.Background(), testenv.PostgresOptions{
		Settings: map[string]string{"wal_level": "replica", "max_replication_slots": "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pg.Close(); err != nil {
			t.Error(err)
		}
	})
	w := newWorld(t, pg, testenv.FakeBrokerOptions{})
	w.exec(t, badSQL...)
	w.options.Connector.Database.User = "app"
	w.options.Connector.Database.Password = config.NewSecret("app")
	w.options.Connector.PublicationAutocreate = "disabled"
	w.options.Connector.Tables.TableInclude = include(t,
		`public\..*`, `a\.x_b`, `a_x\.b`, `public.missing`)
	w.options.Connector.BeforeImageRequired = include(t, `public.a_b`)
	w.options.Connector.MessageKeyColumns = []config.KeyColumns{
		{Table: include(t, `a\.x_b`)[0], Columns: []string{"id", "other"}},
		{Table: include(t, `no\.table`)[0], Columns: []string{"x"}},
	}
	w.topic(t, "tidemark-offsets", map[string]string{"cleanup.policy": "delete"})
	w.topic(t, "shop.public.nokey", map[string]string{"cleanup.policy": "compact"})
	w.topic(t, "shop.public.a_b", map[string]string{
		"cleanup.policy": "compact", "max.message.bytes": "1000",
	})
	w.registryLevel(t, "NONE")
	report := w.check(t)
	golden(t, "bad", report)
	if report.Passed || report.Exit() != 3 {
		t.Errorf("a badly prepared server passes: exit %d", report.Exit())
	}
}

func TestNothingAnswers(t *testing.T) {
	w := newWorld(t, testenv.SharedPostgres(t, ""), testenv.FakeBrokerOptions{})
	w.options.Connector.Database.Port = 1
	w.options.Connector.Database.Password = config.NewSecret("sesame")
	w.options.Worker.Kafka.Bootstrap = []string{"127.0.0.1:1"}
	w.options.Worker.Registry.URLs = []string{"http://u:sesame@127.0.0.1:1"}
	w.options.Timeout = time.Second
	report := w.check(t)
	golden(t, "unreachable", report)
	if report.Exit() != 3 {
		t.Errorf("exit %d", report.Exit())
	}
	for _, f := range report.Findings {
		if strings.Contains(f.Found+f.Object+f.Fix, "sesame") {
			t.Errorf("%s shows the password: %+v", f.Check, f)
		}
	}
}

func TestAllVersionsCanBeChecked(t *testing.T) {
	for _, version := range download.PostgresVersions() {
		t.Run(version, func(t *testing.T) {
			w := newWorld(t, testenv.SharedPostgres(t, version), testenv.FakeBrokerOptions{})
			w.exec(t, `CREATE TABLE orders (id int PRIMARY KEY, t text)`,
				`CREATE PUBLICATION tidemark FOR TABLE orders`,
				`SELECT pg_create_logical_replication_slot('tidemark', 'pgoutput')`)
			for _, f := range w.check(t).Findings {
				if f.Status == Unknown || f.Status == NotChecked {
					t.Errorf("%s: %s", f.Check, f.Found)
				}
				// A slot without a stored position is not adopted.
				if f.Severity == Error && f.Status == Failed && f.Check != "position" {
					t.Errorf("%s: %s %s", f.Check, f.Object, f.Found)
				}
				major, _ := strconv.Atoi(version)
				if f.Check == "server_version" && !strings.Contains(f.Found, strconv.Itoa(major)) {
					t.Errorf("server_version: %s", f.Found)
				}
			}
		})
	}
}
