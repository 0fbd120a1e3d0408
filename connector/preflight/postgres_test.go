package preflight

import (
	"context"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/testenv"
)

// wantFailed asserts that a check failed for exactly these objects, with a code, and returns them.
func wantFailed(t *testing.T, r *Report, check string, code fault.Code, objects ...string) []Finding {
	t.Helper()
	found := find(r, check)
	var got []string
	for _, f := range found {
		got = append(got, f.Object)
		if f.Code != code {
			t.Errorf("%s %s: code %q, want %q", check, f.Object, f.Code, code)
		}
	}
	if strings.Join(got, " | ") != strings.Join(objects, " | ") {
		t.Errorf("%s failed for %q, want %q", check, got, objects)
	}
	return found
}

// TestTheFixesMend runs what the report says, as a superuser, and wants the errors gone.
func TestTheFixesMend(t *testing.T) {
	w := newWorld(t, testenv.SharedPostgres(t, ""), testenv.FakeBrokerOptions{})
	role := "mend"
	w.exec(t,
		`CREATE ROLE mend LOGIN PASSWORD 'mend'`,
		`CREATE TABLE nokey (a int)`,
		`CREATE TABLE nothing (id int PRIMARY KEY, note text)`,
		`ALTER TABLE nothing REPLICA IDENTITY NOTHING`,
		`CREATE TABLE deferred (id int PRIMARY KEY DEFERRABLE, code int NOT NULL UNIQUE)`,
		`CREATE SCHEMA "S p"`, `CREATE TABLE "S p"."T b" (id int PRIMARY KEY, "C 1" int)`,
		`CREATE TABLE hidden (id int PRIMARY KEY)`,
		`ALTER TABLE hidden ENABLE ROW LEVEL SECURITY`,
		`CREATE PUBLICATION tidemark FOR TABLE nothing WITH (publish = 'insert')`,
		`REVOKE CONNECT ON DATABASE `+w.db+` FROM PUBLIC`,
		`GRANT CONNECT ON DATABASE `+w.db+` TO mend`)
	t.Cleanup(func() {
		w.exec(t, `DROP OWNED BY mend`, `DROP ROLE mend`)
	})
	c := w.options.Connector
	c.Database.User, c.Database.Password = role, config.NewSecret(role)
	c.PublicationAutocreate = "disabled"
	c.BeforeImageRequired = include(t, `public.hidden`)
	c.MessageKeyColumns = []config.KeyColumns{
		{Table: include(t, `S p\.T b`)[0], Columns: []string{"C 1"}},
	}
	mended := map[string]bool{}
	// A statement can uncover the next thing: what is identity FULL has a key column to be NOT NULL.
	for range 3 {
		for _, f := range w.check(t).Findings {
			if f.Status == Failed && f.Severity == Error && strings.Contains(f.Fix, ";") {
				w.exec(t, f.Fix)
				mended[f.Check] = true
			}
		}
	}
	for _, want := range []string{
		"replication_role", "table_select", "row_security", "replica_identity",
		"publication_tables", "publication_operations", "before_image_required",
		"message_key_columns",
	} {
		if !mended[want] {
			t.Errorf("%s had nothing to mend", want)
		}
	}
	for _, f := range w.check(t).Findings {
		if f.Status != OK && f.Severity == Error {
			t.Errorf("%s %s: %s is left; fix: %s", f.Check, f.Object, f.Found, f.Fix)
		}
	}
}

func TestPartitions(t *testing.T) {
	w := newWorld(t, testenv.SharedPostgres(t, ""), testenv.FakeBrokerOptions{})
	w.exec(t,
		`CREATE TABLE logs (day int, id int, body text, PRIMARY KEY (day, id))
		 PARTITION BY RANGE (day)`,
		`ALTER TABLE logs REPLICA IDENTITY FULL`,
		`CREATE TABLE logs_1 PARTITION OF logs FOR VALUES FROM (0) TO (10)`,
		`ALTER TABLE logs_1 REPLICA IDENTITY FULL`,
		`CREATE TABLE logs_2 PARTITION OF logs FOR VALUES FROM (10) TO (20)`,
		`CREATE TABLE logs_3 PARTITION OF logs FOR VALUES FROM (20) TO (30)`,
		`CREATE UNIQUE INDEX other ON logs_3 (id)`,
		`ALTER TABLE logs_3 REPLICA IDENTITY USING INDEX other`,
		`CREATE TABLE logs_4 PARTITION OF logs FOR VALUES FROM (30) TO (40)`,
		`ALTER TABLE logs_4 REPLICA IDENTITY NOTHING`)
	c := w.options.Connector
	c.PublishViaRoot = true
	c.Tables.TableInclude = include(t, "public.logs")
	r := w.check(t)
	wantFailed(t, r, "leaf_identity", "", "public.logs_2", "public.logs_3", "public.logs_4")
	wantFailed(t, r, "leaf_key", fault.ReplicaIdentityUnusable, "public.logs_3", "public.logs_4")
	wantFailed(t, r, "replica_identity", fault.ReplicaIdentityUnusable, "public.logs_4")
	wantFailed(t, r, "toast", "", "public.logs")
	wantFailed(t, r, "root_and_leaf", fault.TopicsCollide)

	c.Tables.TableInclude = include(t, "public.logs", "public.logs_1")
	wantFailed(t, w.check(t), "root_and_leaf", fault.TopicsCollide, "public.logs_1")

	c.Tables.TableInclude = include(t, "public.logs_1")
	wantFailed(t, w.check(t), "root_and_leaf", fault.TopicsCollide, "public.logs_1")

	c.PublishViaRoot = false
	wantFailed(t, w.check(t), "root_and_leaf", fault.TopicsCollide)

	c.Tables.TableInclude = include(t, "public.logs", "public.logs_[12]")
	wantFailed(t, w.check(t), "root_and_leaf", fault.TopicsCollide, "public.logs_3", "public.logs_4")

	w.exec(t, `CREATE PUBLICATION tidemark FOR TABLE logs
		WITH (publish_via_partition_root = true)`)
	wantFailed(t, w.check(t), "publication_root", fault.PublicationChanged, "publication tidemark")
}

func TestSlots(t *testing.T) {
	w := newWorld(t, testenv.SharedPostgres(t, ""), testenv.FakeBrokerOptions{})
	w.exec(t, `CREATE TABLE orders (id int PRIMARY KEY)`)
	c := w.options.Connector
	// A slot that was made before its publication, and one that was made after it.
	w.exec(t, `SELECT pg_create_logical_replication_slot('early', 'pgoutput')`,
		`CREATE PUBLICATION tidemark FOR TABLE orders`)
	c.SlotName = "early"
	wantFailed(t, w.check(t), "publication_age", "", "publication tidemark")
	w.exec(t, `SELECT pg_drop_replication_slot('early')`,
		`SELECT pg_create_logical_replication_slot('late', 'pgoutput')`)
	c.SlotName = "late"
	r := w.check(t)
	wantFailed(t, r, "publication_age", "")
	// Without a stored position history before the slot is unknown.
	wantFailed(t, r, "position", fault.SlotWithoutOffset, "stored position none")
	c.SlotAdopt = true
	wantFailed(t, w.check(t), "position", fault.SlotWithoutOffset)

	w.exec(t, `SELECT pg_create_logical_replication_slot('decoder', 'test_decoding')`,
		`SELECT pg_create_physical_replication_slot('standby')`)
	t.Cleanup(func() { w.exec(t, `SELECT pg_drop_replication_slot('standby')`) })
	for _, name := range []string{"decoder", "standby"} {
		c.SlotName = name
		f := wantFailed(t, w.check(t), "slot", fault.SlotForeign, "slot "+name)
		if len(f) == 1 && !strings.Contains(f[0].Fix, "pg_drop_replication_slot('"+name+"')") {
			t.Errorf("fix: %s", f[0].Fix)
		}
	}
}

func TestSlotInUse(t *testing.T) {
	w := newWorld(t, testenv.SharedPostgres(t, ""), testenv.FakeBrokerOptions{})
	w.exec(t, `CREATE TABLE orders (id int PRIMARY KEY)`,
		`CREATE PUBLICATION tidemark FOR TABLE orders`,
		`SELECT pg_create_logical_replication_slot('busy', 'pgoutput')`)
	w.options.Connector.SlotName = "busy"
	stop := w.stream(t, "busy")
	defer stop()
	f := wantFailed(t, w.check(t), "slot_active", "", "slot busy")
	if len(f) == 1 && !strings.Contains(f[0].Found, "application reader") {
		t.Errorf("found: %s", f[0].Found)
	}
}

func TestOpenTransactionsAreNamed(t *testing.T) {
	w := newWorld(t, testenv.SharedPostgres(t, ""), testenv.FakeBrokerOptions{})
	w.exec(t, `CREATE TABLE orders (id int PRIMARY KEY)`,
		`BEGIN; INSERT INTO orders VALUES (1); PREPARE TRANSACTION 'it''s'`)
	f := wantFailed(t, w.check(t), "open_transactions", "", "prepared transaction it's")
	if len(f) == 1 && !strings.Contains(f[0].Fix, "ROLLBACK PREPARED 'it''s'") {
		t.Errorf("fix: %s", f[0].Fix)
	}
}

func TestPublicationThatHoldsTooMuch(t *testing.T) {
	w := newWorld(t, testenv.SharedPostgres(t, ""), testenv.FakeBrokerOptions{})
	w.exec(t, `CREATE TABLE orders (id int PRIMARY KEY, secret text)`,
		`CREATE TABLE other (id int PRIMARY KEY)`,
		`CREATE PUBLICATION tidemark FOR TABLE orders (id) WHERE (id > 0), other`)
	c := w.options.Connector
	c.Tables.TableInclude = include(t, "public.orders")
	r := w.check(t)
	f := wantFailed(t, r, "publication_extra", "", "publication tidemark")
	if len(f) == 1 && f[0].Fix != "ALTER PUBLICATION tidemark DROP TABLE public.other;" {
		t.Errorf("fix: %s", f[0].Fix)
	}
	wantFailed(t, r, "publication_filters", "", "public.orders", "public.orders")

	w.exec(t, `CREATE PUBLICATION everything FOR ALL TABLES`)
	c.Publication = "everything"
	f = wantFailed(t, w.check(t), "publication_extra", "", "publication everything")
	if len(f) == 1 && !strings.Contains(f[0].Found, "FOR ALL TABLES") {
		t.Errorf("found: %s", f[0].Found)
	}
}

func TestRoleThatMayNotMakeThePublication(t *testing.T) {
	w := newWorld(t, testenv.SharedPostgres(t, ""), testenv.FakeBrokerOptions{})
	w.exec(t, `CREATE TABLE orders (id int PRIMARY KEY)`,
		`CREATE ROLE maker LOGIN REPLICATION PASSWORD 'maker'`, `GRANT SELECT ON orders TO maker`)
	t.Cleanup(func() { w.exec(t, `DROP OWNED BY maker`, `DROP ROLE maker`) })
	c := w.options.Connector
	c.Database.User, c.Database.Password = "maker", config.NewSecret("maker")
	f := wantFailed(t, w.check(t), "publication_right", fault.PrivilegeMissing, "database "+w.db)
	if len(f) == 1 {
		w.exec(t, f[0].Fix)
	}
	f = wantFailed(t, w.check(t), "publication_right", fault.PrivilegeMissing, "public.orders")
	if len(f) == 1 {
		_, sql, _ := strings.Cut(f[0].Fix, ": ")
		w.exec(t, sql)
	}
	if r := w.check(t); !r.Passed {
		t.Errorf("after the fixes %d errors are left", r.Errors)
	}
}

func TestVersionLines(t *testing.T) {
	for line, fork := range map[string]bool{
		"PostgreSQL 18.4 on x86_64-pc-linux-musl, compiled by gcc":               false,
		"PostgreSQL 15.18 (Debian 15.18-0+deb12u1) on x86_64-pc-linux-gnu":       false,
		"PostgreSQL 19beta1 on aarch64-apple-darwin":                             false,
		"PostgreSQL 19devel on x86_64-pc-linux-gnu":                              false,
		"PostgreSQL 15.4 (EnterpriseDB Advanced Server 15.4.0) on x86_64":        true,
		"PostgreSQL 9.4.26 (Greenplum Database 6.20.0 build) on x86_64":          true,
		"PostgreSQL 11.2-YB-2.18.0.0-b0 on x86_64-pc-linux-gnu":                  true,
		"CockroachDB CCL v23.1.0 (x86_64-pc-linux-gnu, built 2023)":              true,
		"PostgreSQL 8.0.2 on i686-pc-linux-gnu, compiled by GCC, Redshift 1.0.1": true,
	} {
		s := serverFacts{Version: line}
		if s.fork() != fork {
			t.Errorf("fork(%q) = %t", line, !fork)
		}
	}
}

func TestF62MinorVersionsWithTheSnapshotRace(t *testing.T) {
	for num, affected := range map[int]bool{
		140023: true, 150019: true, 150020: false, 160015: true, 160016: false, 170011: true,
		170012: false, 180006: true, 180007: false, 190000: false,
	} {
		var o outcome
		p := probe{server: serverFacts{VersionNum: num}}
		if err := checkMinor(context.Background(), &p, &o); err != nil {
			t.Fatal(err)
		}
		if got := len(o.bad) > 0; got != affected {
			t.Errorf("%d: affected %t, want %t", num, got, affected)
		}
	}
}

func TestOutputPluginLibraries(t *testing.T) {
	for list, ok := range map[string]bool{
		"pgoutput": true, "wal2json, pgoutput": true, `"pgoutput"`: true, "*": true,
		"wal2json": false, "": false, "mypgoutput": false,
	} {
		var o outcome
		p := probe{server: serverFacts{PluginLibraries: &list}}
		if err := checkPluginAllowed(context.Background(), &p, &o); err != nil {
			t.Fatal(err)
		}
		if got := len(o.bad) == 0; got != ok {
			t.Errorf("%q: allowed %t, want %t", list, got, ok)
		}
	}
}

func TestDatabaseWithoutEncoding(t *testing.T) {
	w := newWorld(t, testenv.SharedPostgres(t, ""), testenv.FakeBrokerOptions{})
	name := w.db + "_ascii"
	w.exec(t, `CREATE DATABASE `+name+` TEMPLATE template0 ENCODING 'SQL_ASCII'
		LC_COLLATE 'C' LC_CTYPE 'C'`)
	t.Cleanup(func() { w.exec(t, `DROP DATABASE `+name) })
	w.options.Connector.Database.Name = name
	wantFailed(t, w.check(t), "encoding", "", "database "+name)
}

// TestServerThatIsTooOld: a version that the queries are not made for is asked nothing more.
func TestServerThatIsTooOld(t *testing.T) {
	p := probe{away: map[need]string{}, server: serverFacts{
		Version: "PostgreSQL 13.22 on x86_64-pc-linux-gnu, compiled by gcc", VersionNum: 130022,
	}}
	var o outcome
	if err := checkVersion(context.Background(), &p, &o); err != nil {
		t.Fatal(err)
	}
	if len(o.bad) != 1 || o.bad[0].Found != "PostgreSQL 13.22 on x86_64-pc-linux-gnu" {
		t.Errorf("findings: %+v", o.bad)
	}
	for _, n := range []need{needPostgres, needSlot, needCatalog} {
		if p.away[n] == "" {
			t.Errorf("need %d is still there", n)
		}
	}
}
