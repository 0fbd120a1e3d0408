package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-cdc/tidemark/testenv"
)

// commandServer starts a PostgreSQL server for a command's test, with a table of each identity.
func commandServer(t *testing.T) *testenv.Postgres {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	pg, err := testenv.StartPostgres(ctx, testenv.PostgresOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pg.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, sql := range []string{
		`CREATE TABLE orders (id bigint PRIMARY KEY, total numeric(10,2))`,
		`CREATE TABLE audit (at timestamptz, note text)`,
		`ALTER TABLE audit REPLICA IDENTITY FULL`,
		`CREATE TABLE parts (id int NOT NULL, code text NOT NULL UNIQUE)`,
		`ALTER TABLE parts REPLICA IDENTITY USING INDEX parts_code_key`,
		`CREATE TABLE nokey (a int)`,
		`CREATE TABLE logs (day int, id int, PRIMARY KEY (day, id)) PARTITION BY RANGE (day)`,
		`CREATE TABLE logs_1 PARTITION OF logs FOR VALUES FROM (0) TO (10)`,
		`ALTER TABLE logs REPLICA IDENTITY FULL`,
		`CREATE PUBLICATION tidemark FOR TABLE orders WHERE (total > 0), audit, logs
			WITH (publish_via_partition_root = true)`,
	} {
		if err := pg.Exec(ctx, "postgres", sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	return pg
}

// commandConfig writes a configuration and returns its path; keys are added to the connector's.
func commandConfig(t *testing.T, pg *testenv.Postgres, keys string) string {
	t.Helper()
	t.Setenv("TIDEMARK_TEST_PASSWORD", pg.Password)
	file := filepath.Join(t.TempDir(), "tidemark.yaml")
	text := fmt.Sprintf(`
worker:
  bootstrap.servers: 127.0.0.1:1
  schema.registry.url: http://127.0.0.1:1
connectors:
  shop:
    topic.prefix: shop
    database.hostname: %s
    database.port: %d
    database.user: %s
    database.password: ${env:TIDEMARK_TEST_PASSWORD}
    database.dbname: postgres
    publish.via.partition.root: true
%s`, pg.Host, pg.Port, pg.User, keys)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// command runs a command line and returns its exit status and output.
func command(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = execute(context.Background(), args, &out, &errs)
	return status, out.String(), errs.String()
}

const explained = `connector shop: database postgres, publication tidemark (exists)

public.audit
  key            none: REPLICA IDENTITY FULL and no primary key that is not deferrable
  identity       FULL
  before-image   update FULL, change of key FULL, delete FULL
  columns        at, note

public.logs
  key            day, id: primary key (REPLICA IDENTITY FULL)
  identity       FULL
  before-image   update ABSENT, change of key KEY, delete KEY
  columns        day, id

public.orders
  key            id: primary key (REPLICA IDENTITY DEFAULT)
  identity       DEFAULT (id)
  before-image   update ABSENT, change of key KEY, delete KEY
  columns        id, total
  row filter     (total > (0)::numeric)

public.parts
  key            code: index of the replica identity
  identity       USING INDEX (code)
  before-image   update ABSENT, change of key KEY, delete KEY
  columns        id, code
  publication    not in it yet
`

func TestExplain(t *testing.T) {
	pg := commandServer(t)
	file := commandConfig(t, pg, "    table.exclude.list: public.nokey\n")
	status, out, errs := command(t, "explain", "-c", file)
	var kept []string
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "  topic ") {
			if !strings.Contains(line, " shop.public.") {
				t.Errorf("topic: %s", line)
			}
			continue
		}
		kept = append(kept, line)
	}
	if d := cmp.Diff(explained, strings.Join(kept, "")); d != "" || status != 0 {
		t.Errorf("exit %d\n%s%s", status, d, errs)
	}
	status, out, _ = command(t, "explain", "-c", file, "--schemas")
	if status != 0 || !strings.Contains(out, `"name": "Envelope"`) ||
		!strings.Contains(out, `"name": "Key"`) {
		t.Errorf("exit %d, no schemas in\n%s", status, out)
	}

	file = commandConfig(t, pg, "    table.include.list: public.nokey, public.orders\n")
	status, out, _ = command(t, "explain", "-c", file, "--json", "--schemas")
	if status != 3 {
		t.Errorf("a table without an identity: exit %d, want 3", status)
	}
	var answer struct {
		Connectors []explanation
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		t.Fatal(err)
	}
	tables := answer.Connectors[0].Tables
	if len(tables) != 2 || !strings.HasPrefix(tables[0].Problem, "replica_identity_unusable") ||
		tables[1].Topic != "shop.public.orders" || tables[1].ValueSchema == nil {
		t.Errorf("tables: %+v", tables)
	}
}

// Columns that are left out or masked are told, the salt is not; a rule that harms a key is the
// table's problem, and a finding of check.
func TestExplainAndCheckKnowColumns(t *testing.T) {
	pg := commandServer(t)
	file := commandConfig(t, pg, `    table.include.list: public.parts, public.audit
    column.exclude.list: public.audit.at
    column.mask.hash.v2.SHA-256.with.salt.pepper: public.(parts.code|audit.note)
    column.mask.with.3.chars: public.audit.nowhere
`)
	status, out, _ := command(t, "explain", "-c", file)
	if status != 0 || strings.Contains(out, "pepper") || !strings.Contains(out,
		"  columns        note\n  left out       at\n"+
			"  masked         note: column.mask.hash.v2.SHA-256.with.salt.****\n") ||
		!strings.Contains(out, "  masked         code: column.mask.hash.v2.SHA-256.with.salt.****\n") {
		t.Errorf("exit %d\n%s", status, out)
	}
	_, out, _ = command(t, "check", "-c", file)
	if !strings.Contains(out, "public.audit.nowhere") || !strings.Contains(out,
		"matches no column, in column.mask.with.3.chars") || strings.Contains(out, "pepper") {
		t.Errorf("check\n%s", out)
	}
	file = commandConfig(t, pg, "    column.exclude.list: .*code\n    table.include.list: .*parts\n")
	const want = "column.exclude.list leaves out key column public.parts.code"
	if status, out, _ = command(t, "explain", "-c", file); status != 2 || !strings.Contains(out, want) {
		t.Errorf("exit %d, want 2\n%s", status, out)
	}
	if _, out, _ = command(t, "check", "-c", file); !strings.Contains(out, want) {
		t.Errorf("check\n%s", out)
	}
}

func TestExplainNamesTheServerThatIsAway(t *testing.T) {
	file := commandConfig(t, &testenv.Postgres{Host: "127.0.0.1", Port: 1, User: "u"}, "")
	status, out, errs := command(t, "explain", "-c", file)
	if status != 1 || out != "" || !strings.Contains(errs, "postgres_unreachable") {
		t.Errorf("exit %d, %q, %q", status, out, errs)
	}
}
