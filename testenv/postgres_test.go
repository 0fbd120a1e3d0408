package testenv_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/testenv"
	"github.com/tidemark-cdc/tidemark/testenv/download"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func start(t *testing.T, o testenv.PostgresOptions) *testenv.Postgres {
	t.Helper()
	p, err := testenv.StartPostgres(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func queryOne[V any](t *testing.T, p *testenv.Postgres, db, sql string) V {
	t.Helper()
	conn, err := p.Connect(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var v V
	if err := conn.QueryRow(t.Context(), sql).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestAWarmClusterIsUpInTwoSeconds(t *testing.T) {
	start(t, testenv.PostgresOptions{}) // fills the cache
	const limit = 2 * time.Second
	var p *testenv.Postgres
	took := time.Hour
	for try := 0; try < 3 && took > limit; try++ { // other tests may keep the machine busy
		began := time.Now()
		p = start(t, testenv.PostgresOptions{})
		took = time.Since(began)
		t.Logf("PostgreSQL 18 took connections after %v", took)
	}
	if took > limit && !busy() {
		t.Errorf("start took %v, wanted at most %v", took, limit)
	}
	if got := queryOne[string](t, p, "postgres", "SHOW wal_level"); got != "logical" {
		t.Errorf("wal_level = %s", got)
	}
}

// busy reports whether more processes want to run than there are processors: then a duration says
// little about the code.
func busy() bool {
	var load float64
	text, err := os.ReadFile("/proc/loadavg")
	if err == nil {
		_, err = fmt.Sscan(string(text), &load)
	}
	return err == nil && load > float64(runtime.NumCPU())
}

func TestAllVersions(t *testing.T) {
	if os.Getenv("TIDEMARK_TEST_ALL") == "" {
		t.Skip("TIDEMARK_TEST_ALL is not set: PostgreSQL 18 alone")
	}
	for _, version := range download.PostgresVersions() {
		t.Run(version, func(t *testing.T) {
			p := start(t, testenv.PostgresOptions{Version: version})
			standby, err := testenv.StartStandby(t.Context(), p, testenv.PostgresOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = standby.Close() }()
			got := queryOne[int](t, standby, "postgres",
				"SELECT current_setting('server_version_num')::int / 10000")
			want := map[string]int{"14": 14, "15": 15, "16": 16, "17": 17, "18": 18}[version]
			if got != want {
				t.Errorf("server is version %d, wanted %d", got, want)
			}
		})
	}
}

func TestClustersDifferInTheirIdentifier(t *testing.T) {
	const sql = "SELECT system_identifier::text FROM pg_control_system()"
	first := start(t, testenv.PostgresOptions{})
	second := start(t, testenv.PostgresOptions{})
	if a, b := queryOne[string](t, first, "postgres", sql),
		queryOne[string](t, second, "postgres", sql); a == b {
		t.Errorf("both clusters have the system identifier %s", a)
	}
}

func TestAStandbyFollowsAndIsPromoted(t *testing.T) {
	primary := start(t, testenv.PostgresOptions{})
	ctx := t.Context()
	standby, err := testenv.StartStandby(ctx, primary, testenv.PostgresOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := standby.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := primary.Exec(ctx, "postgres", "CREATE TABLE t AS SELECT 7 AS v"); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(20 * time.Second)
	for !queryOne[bool](t, standby, "postgres", "SELECT to_regclass('t') IS NOT NULL") {
		if time.Now().After(deadline) {
			t.Fatal("the table did not reach the standby in 20 s")
		}
	}
	if !queryOne[bool](t, standby, "postgres", "SELECT pg_is_in_recovery()") {
		t.Error("the standby is no standby")
	}
	if err := standby.Exec(ctx, "postgres", "SELECT pg_promote()"); err != nil {
		t.Fatal(err)
	}
	if err := standby.Exec(ctx, "postgres", "INSERT INTO t VALUES (8)"); err != nil {
		t.Errorf("write after the promotion: %v", err)
	}
}

func TestTheServerDoesNotRunAsRoot(t *testing.T) {
	p := start(t, testenv.PostgresOptions{})
	info, err := os.Stat(p.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	if uid := info.Sys().(*syscall.Stat_t).Uid; uid == 0 {
		t.Errorf("the data directory belongs to uid 0")
	}
}

func TestDataOutlivesAKilledServer(t *testing.T) {
	p := start(t, testenv.PostgresOptions{Fsync: true})
	ctx := t.Context()
	if err := p.Exec(ctx, "postgres", "CREATE TABLE t AS SELECT 7 AS v"); err != nil {
		t.Fatal(err)
	}
	before := p.Port
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if p.PID() != 0 {
		t.Error("the server runs after Kill")
	}
	if _, err := p.Connect(ctx, "postgres"); err == nil {
		t.Error("a killed server took a connection")
	}
	if err := p.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if p.Port != before {
		t.Errorf("port changed from %d to %d", before, p.Port)
	}
	if got := queryOne[int](t, p, "postgres", "SELECT v FROM t"); got != 7 {
		t.Errorf("v = %d, wanted 7", got)
	}
}

func TestSettingsChangeAtStartByReloadAndByRestart(t *testing.T) {
	p := start(t, testenv.PostgresOptions{Settings: map[string]string{"work_mem": "3MB"}})
	ctx := t.Context()
	if got := queryOne[string](t, p, "postgres", "SHOW work_mem"); got != "3MB" {
		t.Errorf("work_mem = %s at start", got)
	}
	change := map[string]string{"work_mem": "5MB", "max_wal_senders": "7"}
	if err := p.SetConf(ctx, change); err != nil {
		t.Fatal(err)
	}
	if err := p.Restart(ctx, "fast"); err != nil {
		t.Fatal(err)
	}
	if got := queryOne[string](t, p, "postgres", "SHOW work_mem"); got != "5MB" {
		t.Errorf("work_mem = %s after SetConf", got)
	}
	if got := queryOne[string](t, p, "postgres", "SHOW max_wal_senders"); got != "7" {
		t.Errorf("max_wal_senders = %s after Restart", got)
	}
}

func TestAServerThatCannotStartSaysWhy(t *testing.T) {
	_, err := testenv.StartPostgres(t.Context(),
		testenv.PostgresOptions{Settings: map[string]string{"no_such_setting": "1"}})
	const want = `unrecognized configuration parameter "no_such_setting"`
	if err == nil || !contains(err, want) {
		t.Errorf("error is %v, wanted it to contain %s", err, want)
	}
	if _, err := testenv.StartPostgres(t.Context(),
		testenv.PostgresOptions{Version: "9"}); err == nil || !contains(err, "14, 15, 16, 17, 18") {
		t.Errorf("error is %v, wanted it to list the versions", err)
	}
}

func TestATLSServerRefusesPlainConnections(t *testing.T) {
	p := start(t, testenv.PostgresOptions{TLS: true})
	const sql = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
	if !queryOne[bool](t, p, "postgres", sql) {
		t.Error("the connection of URL is not encrypted")
	}
	config, err := pgx.ParseConfig(p.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	config.TLSConfig = nil
	config.Fallbacks = nil
	if conn, err := pgx.ConnectConfig(t.Context(), config); err == nil {
		_ = conn.Close(t.Context())
		t.Error("a plain connection was taken")
	}
}

func TestADatabaseIsDroppedWithItsSlotsAndPreparedTransactions(t *testing.T) {
	p := testenv.SharedPostgres(t, "")
	var name string
	t.Run("test", func(t *testing.T) {
		name = testenv.NewDatabase(t, p)
		for _, sql := range []string{
			"CREATE TABLE t (v int)",
			"SELECT pg_create_logical_replication_slot('left_over', 'pgoutput')",
			"BEGIN; INSERT INTO t VALUES (1); PREPARE TRANSACTION 'open'",
		} {
			if err := p.Exec(t.Context(), name, sql); err != nil {
				t.Fatal(err)
			}
		}
	})
	conn, err := p.Connect(t.Context(), name)
	if err == nil {
		_ = conn.Close(t.Context())
		t.Errorf("database %s is still there", name)
	}
	const sql = "SELECT count(*)::int FROM pg_replication_slots WHERE slot_name = 'left_over'"
	if n := queryOne[int](t, p, "postgres", sql); n != 0 {
		t.Error("the slot is still there")
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	p := start(t, testenv.PostgresOptions{})
	pid := p.PID()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d: %v, wanted it gone", pid, err)
	}
	if _, err := os.Stat(p.DataDir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("data directory: %v, wanted it gone", err)
	}
}
