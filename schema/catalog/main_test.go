package catalog_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/schema"
	"github.com/tidemark-cdc/tidemark/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// versions are those where the catalogs differ: before column lists and filters, with them, and
// with generated columns that can be published.
var versions = []string{"14", "15", "18"}

// onVersions runs a test against each of them, in a database of its own.
func onVersions(t *testing.T, test func(t *testing.T, version string, db *database)) {
	t.Helper()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) { test(t, version, newDatabase(t, version)) })
	}
}

// database is a connection with the pinned settings, and what tests do with it.
type database struct {
	*pgx.Conn
	t   *testing.T
	ctx context.Context
}

// newDatabase makes a database. setup is run on it before the connection is made, with DATABASE
// standing for its name.
func newDatabase(t *testing.T, version string, setup ...string) *database {
	t.Helper()
	server := testenv.SharedPostgres(t, version)
	name := testenv.NewDatabase(t, server)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	for _, sql := range setup {
		sql = "ALTER DATABASE " + pgx.Identifier{name}.Sanitize() + " " + sql
		if err := server.Exec(ctx, "postgres", sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	config, err := pgx.ParseConfig(server.URL(name))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range schema.PinnedSettings() {
		config.RuntimeParams[s.Name] = s.Value
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(ctx) })
	return &database{Conn: conn, t: t, ctx: ctx}
}

// run runs statements, each in a transaction of its own.
func (d *database) run(statements ...string) {
	d.t.Helper()
	for _, sql := range statements {
		if _, err := d.PgConn().Exec(d.ctx, sql).ReadAll(); err != nil {
			d.t.Fatalf("%s: %v", sql, err)
		}
	}
}

// row runs a query and returns all of its values, as the server prints them, unchanged by any
// codec.
func (d *database) row(sql string) []string {
	d.t.Helper()
	results, err := d.PgConn().Exec(d.ctx, sql).ReadAll()
	if err != nil || len(results) != 1 {
		d.t.Fatalf("%s: %d results, %v", sql, len(results), err)
	}
	var texts []string
	for _, row := range results[0].Rows {
		for _, v := range row {
			texts = append(texts, string(v))
		}
	}
	return texts
}

// oid is a relation's OID, as catalogs give it.
func (d *database) oid(relation string) uint32 {
	d.t.Helper()
	var oid uint32
	err := d.QueryRow(d.ctx, "SELECT $1::text::regclass::oid", relation).Scan(&oid)
	if err != nil {
		d.t.Fatalf("%s: %v", relation, err)
	}
	return oid
}
