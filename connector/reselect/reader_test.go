package reselect_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/connector/reselect"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/schema"
	"github.com/tidemark-cdc/tidemark/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// rig is a database, a session that changes it, and a Reader that is opened at its first use.
type rig struct {
	t    *testing.T
	pg   *testenv.Postgres
	db   string
	conn *pgx.Conn
	o    reselect.Options
	r    *reselect.Reader
	log  bytes.Buffer
}

func newRig(t *testing.T, sql ...string) *rig {
	t.Helper()
	t.Parallel()
	r := &rig{t: t, pg: testenv.SharedPostgres(t, "18")}
	r.db = testenv.NewDatabase(t, r.pg)
	r.conn = r.connect()
	r.o = reselect.Options{
		Database: config.Database{
			Host: r.pg.Host, Port: uint16(r.pg.Port), User: r.pg.User, Name: r.db,
			Password: config.NewSecret(r.pg.Password), SSLMode: "disable",
			ConnectTimeout: 10 * time.Second,
		},
		AppName: "test", Logger: slog.New(slog.NewTextHandler(&r.log, nil)),
		LockTimeout: 100 * time.Millisecond, VisibleTimeout: 100 * time.Millisecond,
	}
	r.exec(sql...)
	return r
}

func (r *rig) connect() *pgx.Conn {
	r.t.Helper()
	conn, err := r.pg.Connect(r.t.Context(), r.db)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func (r *rig) exec(sql ...string) {
	r.t.Helper()
	for _, q := range sql {
		if _, err := r.conn.PgConn().Exec(r.t.Context(), q).ReadAll(); err != nil {
			r.t.Fatalf("%s: %v", q, err)
		}
	}
}

// relation is a table as the stream announces it; key are its identity's columns.
func (r *rig) relation(table string, key ...string) *schema.Relation {
	r.t.Helper()
	rel := &schema.Relation{Namespace: "public", Name: strings.Trim(table, `"`), Identity: 'd'}
	rows, err := r.conn.Query(r.t.Context(), `SELECT attrelid, attname::text, atttypid, atttypmod
		FROM pg_attribute WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped
		ORDER BY attnum`, table)
	if err != nil {
		r.t.Fatal(err)
	}
	var c schema.Column
	_, err = pgx.ForEachRow(rows, []any{&rel.OID, &c.Name, &c.TypeOID, &c.TypeMod}, func() error {
		c.Key = slices.Contains(key, c.Name)
		rel.Columns = append(rel.Columns, c)
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return rel
}

// ask reads all columns that are not the identity's, of rows named by one text for each of that,
// and returns a line each.
func (r *rig) ask(rel *schema.Relation, xids []uint32, rows ...[]string) []string {
	r.t.Helper()
	got, err := r.try(rel, xids, 1<<20, rows...)
	if err != nil {
		r.t.Fatal(err)
	}
	return got
}

func (r *rig) try(
	rel *schema.Relation, xids []uint32, budget int64, rows ...[]string,
) ([]string, error) {
	r.t.Helper()
	if r.r == nil {
		var err error
		if r.r, err = reselect.Open(r.t.Context(), r.o); err != nil {
			return nil, err
		}
		r.t.Cleanup(r.r.Close)
	}
	q := reselect.Question{Relation: rel}
	for i, c := range rel.Columns {
		if c.Key {
			q.Identity = append(q.Identity, i)
		} else {
			q.Columns = append(q.Columns, i)
		}
	}
	var names [][][]byte
	for _, row := range rows {
		var name [][]byte
		for _, text := range row {
			name = append(name, []byte(text))
		}
		names = append(names, name)
	}
	answers, err := r.r.Ask(r.t.Context(), q, names, xids, budget)
	var lines []string
	for _, a := range answers {
		line := string(a.Reason)
		for _, v := range a.Values {
			line += fmt.Sprintf("%c%s ", v.Kind, v.Text)
		}
		if !a.Done {
			line = "again"
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines, err
}

func same(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestRowsAreFoundByEveryKindOfName(t *testing.T) {
	r := newRig(t,
		`CREATE TABLE "Odd ""t""" ("a b" text, "SELECT" int, c numeric(9,3), "v.1" text, w int,
			PRIMARY KEY ("SELECT", "a b", c))`,
		`INSERT INTO "Odd ""t""" VALUES (E'q"{}\\,\n\t x', 7, 1.5, 'big', NULL), ('', -1, 0, '', 3),
			('NULL', 7, 1.5, 'null', 4)`,
		`CREATE TABLE p (id int, k int, v text, PRIMARY KEY (id, k)) PARTITION BY RANGE (k)`,
		`CREATE TABLE p1 (v text, k int NOT NULL, id int NOT NULL)`,
		`ALTER TABLE p ATTACH PARTITION p1 FOR VALUES FROM (0) TO (10)`,
		`INSERT INTO p VALUES (1, 5, 'leaf')`,
		`CREATE TABLE parent (id int PRIMARY KEY, v text)`,
		`CREATE TABLE child () INHERITS (parent)`,
		`INSERT INTO parent VALUES (1, 'mine')`, `INSERT INTO child VALUES (1, 'yours')`,
	)
	odd := r.relation(`"Odd ""t"""`, "a b", "SELECT", "c")
	odd.Name = `Odd "t"`
	same(t, r.ask(odd, nil, []string{"q\"{}\\,\n\t x", "7", "1.500"}, []string{"", "-1", "0.000"},
		[]string{"NULL", "7", "1.5"}, []string{"none", "7", "1.5"}),
		"tbig n", "t t3", "tnull t4", "row_gone")
	same(t, r.ask(r.relation("p", "id", "k"), nil, []string{"1", "5"}), "tleaf")
	same(t, r.ask(r.relation("parent", "id"), nil, []string{"1"}), "tmine")
	same(t, r.ask(r.relation("child", "id"), nil, []string{"1"}), "tyours")
	r.exec(`ALTER TABLE p RENAME TO q`, `CREATE SCHEMA elsewhere`, `ALTER TABLE q SET SCHEMA elsewhere`)
	same(t, r.ask(&schema.Relation{
		OID: r.relation("elsewhere.q").OID, Namespace: "public", Name: "p", Identity: 'd',
		Columns: r.relation("elsewhere.q", "id", "k").Columns,
	}, nil, []string{"1", "5"}), "tleaf")
}

// A table is as the stream announced it, then something happens, and the row is asked for.
var refusals = []struct {
	reason, after string
	logged        bool
}{
	{"row_gone", `UPDATE t SET id = 2`, false},
	{"row_gone", `DELETE FROM t`, false},
	{"row_gone", `TRUNCATE t`, false},
	{"no_identity", `ALTER TABLE t DROP CONSTRAINT t_pkey; INSERT INTO t VALUES (1, 'other')`, false},
	{"table_gone", `DROP TABLE t`, true},
	{"table_gone", `DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY, v text)`, true},
	{"column_gone", `ALTER TABLE t DROP v`, true},
	{"column_gone", `ALTER TABLE t RENAME v TO w`, true},
	{"column_gone", `ALTER TABLE t RENAME id TO i`, true},
	{"type_changed", `ALTER TABLE t ALTER v TYPE varchar(7)`, true},
	{"type_changed", `ALTER TABLE t ALTER id TYPE bigint`, true},
	{"type_changed", `ALTER TABLE t DROP v; ALTER TABLE t ADD v int`, true},
	{"not_permitted", `REVOKE SELECT ON t FROM ROLE`, true},
	{"not_permitted", `REVOKE SELECT ON t FROM ROLE; GRANT SELECT (id) ON t TO ROLE`, true},
	{"not_permitted", `REVOKE USAGE ON SCHEMA SCHEMA FROM ROLE`, true},
	{
		"not_permitted",
		`ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (id = 1)`, true,
	},
	{"statement_error", `ALTER DOMAIN d ADD CHECK (VALUE > 5) NOT VALID`, true},
}

func TestWhatCannotBeHadSaysWhy(t *testing.T) {
	r := newRig(t)
	role := "role_" + r.db
	r.exec(`CREATE ROLE ` + role + ` LOGIN PASSWORD 'secret'`)
	t.Cleanup(func() {
		if err := r.pg.Exec(context.Background(), r.db, `DROP OWNED BY `+role+`; DROP ROLE `+role); err != nil {
			t.Error(err)
		}
	})
	r.o.Database.User, r.o.Database.Password = role, config.NewSecret("secret")
	for i, c := range refusals {
		for _, known := range []bool{false, true} { // what is known of the table is old
			name := fmt.Sprintf("s%d_%t", i, known)
			r.exec(`CREATE SCHEMA `+name, `SET search_path = `+name, `CREATE DOMAIN d AS int`,
				`CREATE TABLE t (id d PRIMARY KEY, v text)`, `INSERT INTO t VALUES (1, 'x')`,
				`GRANT USAGE ON SCHEMA `+name+` TO `+role, `GRANT SELECT ON t TO `+role)
			rel := r.relation("t", "id")
			rel.Namespace = name
			if known {
				same(t, r.ask(rel, nil, []string{"1"}), "tx")
			}
			after := strings.ReplaceAll(strings.ReplaceAll(c.after, "ROLE", role), "SCHEMA SCHEMA",
				"SCHEMA "+name)
			r.exec(after)
			r.log.Reset()
			for range 2 {
				if got := r.ask(rel, nil, []string{"1"}); !slices.Equal(got, []string{c.reason}) {
					t.Errorf("%s: %q, want %s", after, got, c.reason)
				}
			}
			if n := strings.Count(r.log.String(), "reason="+c.reason); n > 1 || (n == 1) != c.logged ||
				strings.Contains(r.log.String(), "other") {
				t.Errorf("%s: log %s", after, r.log.String())
			}
			// The connection goes on.
			r.exec(`CREATE TABLE other (id int PRIMARY KEY, v text)`, `INSERT INTO other VALUES (3, 'y')`,
				`GRANT USAGE ON SCHEMA `+name+` TO `+role, `GRANT SELECT ON other TO `+role)
			other := r.relation("other", "id")
			other.Namespace = name
			same(t, r.ask(other, nil, []string{"3"}), "ty")
		}
	}
}

// A renamed table is found by its OID, though another one has its name.
func TestATableThatWasRenamedIsRead(t *testing.T) {
	r := newRig(t, `CREATE TABLE t (id int PRIMARY KEY, v text)`, `INSERT INTO t VALUES (1, 'x')`,
		`CREATE TABLE u (id int PRIMARY KEY, v text)`, `INSERT INTO u VALUES (1, 'other')`)
	rel := r.relation("t", "id")
	same(t, r.ask(rel, nil, []string{"1"}), "tx")
	r.exec(`BEGIN; ALTER TABLE t RENAME TO v; ALTER TABLE u RENAME TO t; COMMIT`)
	same(t, r.ask(rel, nil, []string{"1"}), "tx")
}

func TestLocksAndSlowStatementsAreNotWaitedFor(t *testing.T) {
	r := newRig(t, `CREATE TABLE t (id int PRIMARY KEY, v text)`, `INSERT INTO t VALUES (1, 'x')`)
	rel := r.relation("t", "id")
	same(t, r.ask(rel, nil, []string{"1"}), "tx")
	r.exec(`BEGIN; LOCK TABLE t`)
	same(t, r.ask(rel, nil, []string{"1"}, []string{"2"}), "lock_timeout", "lock_timeout")
	r.exec(`ROLLBACK`)
	same(t, r.ask(rel, nil, []string{"1"}), "tx")

	r.r.Close()
	r.r, r.o.StatementTimeout, r.o.LockTimeout = nil, 100*time.Millisecond, time.Minute
	r.exec(`BEGIN; LOCK TABLE t`)
	same(t, r.ask(rel, nil, []string{"1"}), "timeout")
	r.exec(`ROLLBACK`)
	same(t, r.ask(rel, nil, []string{"1"}), "tx")
}

// What is read while the change's own transaction is not visible yet would be older than the change.
func TestAValueIsNoOlderThanItsChange(t *testing.T) {
	r := newRig(t, `CREATE TABLE t (id int PRIMARY KEY, v text)`, `INSERT INTO t VALUES (1, 'old')`,
		`BEGIN; UPDATE t SET v = 'new'`)
	var xid uint32
	err := r.conn.QueryRow(t.Context(), `SELECT (pg_current_xact_id()::text::numeric % 4294967296)::int8`).
		Scan(&xid)
	if err != nil {
		t.Fatal(err)
	}
	rel := r.relation("t", "id")
	same(t, r.ask(rel, []uint32{xid - 1}, []string{"1"}), "told")
	same(t, r.ask(rel, []uint32{xid}, []string{"1"}), "not_visible")

	r.r.Close()
	r.r, r.o.VisibleTimeout = nil, time.Minute
	asking := make(chan []string, 1)
	watch := r.connect()
	go func() {
		lines, err := r.try(rel, []uint32{xid}, 1<<20, []string{"1"})
		asking <- append(lines, fmt.Sprint(err))
	}()
	waitFor(t, watch, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database()
		AND query = 'SELECT pg_catalog.pg_current_snapshot()::text')`)
	select {
	case got := <-asking:
		t.Fatalf("%q while the transaction ran", got)
	default:
	}
	r.exec(`COMMIT`)
	same(t, <-asking, "tnew", "<nil>")
}

// waitFor waits until a query says true.
func waitFor(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		var ok bool
		if err := conn.QueryRow(t.Context(), sql).Scan(&ok); err != nil {
			t.Fatal(err)
		}
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("timed out: %s", sql)
		}
	}
}

// Values beyond the budget are asked for again, and the next statements ask for fewer rows.
func TestValuesAreBoundedByTheBudget(t *testing.T) {
	r := newRig(t, `CREATE TABLE t (id int PRIMARY KEY, v text)`,
		`INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(1, 10) i`)
	rel := r.relation("t", "id")
	var rows [][]string
	for i := range 10 {
		rows = append(rows, []string{fmt.Sprint(i + 1)})
	}
	for _, done := range []int{3, 2} { // 2500 bytes hold two rows, and the one that crosses the line
		got, err := r.try(rel, nil, 2500, rows...)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, line := range got {
			if line != "again" {
				n++
			}
		}
		if n != done || got[0] == "again" {
			t.Errorf("%d answers, want %d", n, done)
		}
	}
	got, err := r.try(rel, nil, -1, rows...)
	if err != nil || got[0] == "again" || got[1] != "again" {
		t.Errorf("without room for one: %.20q, %v", got, err)
	}
}

func TestOnlyErrorsOfTheConnectionAreErrors(t *testing.T) {
	r := newRig(t, `CREATE TABLE t (id int PRIMARY KEY, v text)`, `INSERT INTO t VALUES (1, 'x')`)
	rel := r.relation("t", "id")
	same(t, r.ask(rel, nil, []string{"1"}), "tx")
	r.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE application_name = 'test' AND datname = current_database()`)
	_, err := r.try(rel, nil, 1<<20, []string{"1"})
	if fault.CodeOf(err) != fault.PostgresUnreachable {
		t.Errorf("error %v", err)
	}
	r.exec(`ALTER DATABASE ` + r.db + ` CONNECTION LIMIT 0`)
	role := "role_" + r.db
	r.exec(`CREATE ROLE ` + role + ` LOGIN PASSWORD 'secret'`)
	t.Cleanup(func() { _ = r.pg.Exec(context.Background(), r.db, `DROP ROLE `+role) })
	r.o.Database.User, r.o.Database.Password = role, config.NewSecret("secret")
	if _, err := reselect.Open(t.Context(), r.o); fault.CodeOf(err) != fault.SlotsExhausted {
		t.Errorf("no connection is left: %v", err)
	}
}
