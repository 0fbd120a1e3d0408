package connector_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/connector"
	"github.com/tidemark-cdc/tidemark/connector/consume"
	"github.com/tidemark-cdc/tidemark/connector/metrics"
	"github.com/tidemark-cdc/tidemark/connector/worker"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/schema/registry"
	"github.com/tidemark-cdc/tidemark/testenv"
)

// vault is three peers that demand TLS and a login, and the settings to reach them.
type vault struct {
	t        *testing.T
	pg       *testenv.Postgres
	sql      *pgx.Conn
	broker   *testenv.FakeBroker
	registry *testenv.FakeRegistry
	secrets  map[string]string // the properties file that the configuration refers to
	file     string            // that file
	worker   map[string]string
	keys     map[string]string
	log      *lockedBuffer
	metrics  *prometheus.Registry
}

// guardedPostgres starts a server that speaks TLS only, with the role guard.
func guardedPostgres(t *testing.T) *testenv.Postgres {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	pg, err := testenv.StartPostgres(ctx, testenv.PostgresOptions{TLS: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pg.Close(); err != nil {
			t.Error(err)
		}
	})
	err = pg.Exec(ctx, "postgres",
		"CREATE ROLE "+guard+" LOGIN REPLICATION PASSWORD '"+pgSecret+"'")
	if err != nil {
		t.Fatal(err)
	}
	return pg
}

// newVault makes a database, a broker and a registry; acls make the broker's user a limited one.
func newVault(t *testing.T, pg *testenv.Postgres, acls ...kfake.ACL) *vault {
	t.Helper()
	v := &vault{t: t, pg: pg, log: &lockedBuffer{}, metrics: prometheus.NewRegistry()}
	db := testenv.NewDatabase(t, pg)
	var users []kfake.Opt
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		if len(acls) > 0 {
			users = append(users, kfake.User(mechanism, guard, kafkaSecret, acls...))
		} else {
			users = append(users, kfake.Superuser(mechanism, guard, kafkaSecret))
		}
	}
	var err error
	if v.broker, err = testenv.StartFakeBroker(testenv.FakeBrokerOptions{
		TLS: true, SASL: true, ACLs: true, Options: users,
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.broker.Close() })
	if v.registry, err = testenv.StartFakeRegistry(testenv.FakeRegistryOptions{
		TLS: true, User: guard, Password: registrySecret,
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.registry.Close() })
	if v.sql, err = pg.Connect(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.sql.Close(context.Background()) })
	v.secrets = map[string]string{
		"pg": pgSecret, "kafka": kafkaSecret, "registry": registrySecret, "wrong": wrongSecret,
	}
	v.worker = map[string]string{
		"bootstrap.servers": strings.Join(v.broker.Addrs(), ","), "http.listen": "",
		"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512",
		"sasl.jaas.config":        jaas("kafka"),
		"ssl.truststore.location": v.broker.CAFile,
		"schema.registry.url":     v.registry.URL, "basic.auth.user.info": guard + ":" + ref("registry"),
		"schema.registry.ssl.truststore.location": v.registry.CAFile,
	}
	v.keys = map[string]string{
		"topic.prefix": "shop", "database.hostname": "localhost", "database.port": fmt.Sprint(pg.Port),
		"database.user": guard, "database.password": ref("pg"), "database.dbname": db,
		"database.sslmode": "verify-full", "database.sslrootcert": pg.CAFile,
		"slot.name": "s_" + db, "offset.flush.interval.ms": "100", "errors.max.retries": "0",
	}
	v.exec("CREATE TABLE t (id int PRIMARY KEY, v text)",
		fmt.Sprintf("INSERT INTO t VALUES (1, '%s')", rowValue),
		"GRANT SELECT ON t TO "+guard, "CREATE PUBLICATION tidemark FOR TABLE t")
	return v
}

// ref is a reference to a line of the secrets file, whose path load puts in.
func ref(key string) string { return "${file:SECRETS:" + key + "}" }

func jaas(key string) string {
	return `org.apache.kafka.common.security.scram.ScramLoginModule required username=\"` + guard +
		`\" password=\"` + ref(key) + `\";`
}

func (v *vault) exec(sql ...string) {
	v.t.Helper()
	for _, q := range sql {
		if _, err := v.sql.PgConn().Exec(v.t.Context(), q).ReadAll(); err != nil {
			v.t.Fatalf("%s: %v", q, err)
		}
	}
}

// load writes the configuration and its secrets as files, and reads them with the real loader.
func (v *vault) load() *config.File {
	v.t.Helper()
	dir := v.t.TempDir()
	var secrets, text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(v.secrets)) {
		fmt.Fprintf(&secrets, "%s=%s\n", key, v.secrets[key])
	}
	file, properties := filepath.Join(dir, "tidemark.yaml"), filepath.Join(dir, "secrets")
	v.file = properties
	section := func(indent string, m map[string]string) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			fmt.Fprintf(&text, "%s%s: \"%s\"\n", indent, key,
				strings.ReplaceAll(m[key], "SECRETS", properties))
		}
	}
	text.WriteString("worker:\n")
	section("  ", v.worker)
	text.WriteString("connectors:\n  c1:\n")
	section("    ", v.keys)
	for name, content := range map[string]string{file: text.String(), properties: secrets.String()} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			v.t.Fatal(err)
		}
	}
	f, _, err := config.Load(file, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	return f
}

// run runs the connector until ok says so, or until it ends by itself; then it looks everywhere for
// canaries. It returns what Run returned.
func (v *vault) run(ok func(*connector.Connector) bool) error {
	v.t.Helper()
	f := v.load()
	log := slog.New(slog.NewTextHandler(v.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	log.Info("settings", "worker", f.Worker, "connector", *f.Connectors[0])
	c := connector.New(f.Connectors[0], f.Worker, connector.Deps{
		Log: log, Metrics: metrics.New(v.metrics).Connector("c1"), Version: "test",
	})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	var err error
	for ended := false; !ended; {
		select {
		case err = <-done:
			ended = true
		case <-time.After(20 * time.Millisecond):
			if ok(c) {
				cancel()
			}
		}
	}
	v.inspect(c, err)
	return err
}

// inspect looks for canaries in the log, the error, /readyz and /metrics.
func (v *vault) inspect(c *connector.Connector, err error) {
	v.t.Helper()
	handler := worker.New("127.0.0.1:0", v.metrics, func() []worker.Status {
		return []worker.Status{c.Status()}
	}).Handler()
	texts := map[string]string{"the log": v.log.String(), "the error": fmt.Sprintf("%v %+v", err, err)}
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequestWithContext(v.t.Context(), "GET", path, nil))
		texts[path] = answer.Body.String()
	}
	for where, text := range texts {
		for _, canary := range canaries {
			if i := strings.Index(text, canary); i >= 0 {
				v.t.Errorf("%s holds %s: %.300s", where, canary, text[max(0, i-200):])
			}
		}
	}
}

// refused expects a stop with a code and its exit status.
func (v *vault) refused(code fault.Code, exit int) error {
	v.t.Helper()
	err := v.run(func(*connector.Connector) bool { return false })
	if err == nil || fault.CodeOf(err) != code || fault.Exit(fault.CodeOf(err)) != exit {
		v.t.Fatalf("stopped with %v, want %s, exit %d\nlog:\n%s", err, code, exit, v.log.String())
	}
	return err
}

// refuseLogins makes the broker answer a login as Kafka answers a wrong one; by itself it hangs up.
func (v *vault) refuseLogins() {
	v.broker.Control(int16(kmsg.SASLAuthenticate), func(r kmsg.Request) (kmsg.Response, error, bool) {
		v.broker.Cluster().KeepControl()
		answer := r.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		answer.ErrorCode = kerr.SaslAuthenticationFailed.Code
		return answer, nil, true
	})
}

// first reads the first event of the table's topic, over TLS and with the login too.
func (v *vault) first() string {
	v.t.Helper()
	f := v.load()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	w := f.Worker.Registry
	schemas, err := registry.New(registry.Options{
		URLs: w.URLs, User: w.User, Password: w.Password.Reveal(), CAFile: w.TLSCAFile,
	})
	if err != nil {
		v.t.Fatal(err)
	}
	defer schemas.Close()
	r, err := consume.New(ctx, consume.Options{
		Kafka: f.Worker.Kafka, Schemas: schemas, Topics: []string{"shop.public.t"}, FromBeginning: true,
	})
	if err != nil {
		v.t.Fatal(err)
	}
	defer r.Close()
	m, err := r.Next(ctx)
	if err != nil {
		v.t.Fatal(err)
	}
	return fmt.Sprint(m.Value)
}
