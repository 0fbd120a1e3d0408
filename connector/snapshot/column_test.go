package snapshot_test

import (
	"errors"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/connector/snapshot"
	"github.com/tidemark-cdc/tidemark/schema"
	"github.com/tidemark-cdc/tidemark/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// A column that is dropped or renamed between the look at the catalog and the lock leaves the
// storage as it is. The table begins again with its present columns, the others are still read.
func TestATableWhoseColumnWentAwayBeginsAgain(t *testing.T) {
	pg := testenv.SharedPostgres(t, "18")
	name := testenv.NewDatabase(t, pg)
	run := func(sql string) {
		t.Helper()
		if err := pg.Exec(t.Context(), name, sql); err != nil {
			t.Fatal(err)
		}
	}
	run(`CREATE TABLE a (id int, gone int); INSERT INTO a VALUES (1, 1);
		CREATE TABLE b (id int, gone int); INSERT INTO b VALUES (2, 2);
		CREATE TABLE c (id int, gone int); INSERT INTO c VALUES (3, 3)`)
	r, err := snapshot.Open(t.Context(), snapshot.Options{
		Database: config.Database{
			Host: pg.Host, Port: uint16(pg.Port), User: pg.User, Name: name,
			Password: config.NewSecret(pg.Password), SSLMode: "disable",
			ConnectTimeout: 10 * time.Second,
		},
		LockTimeout: 10 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	read := func(table string) (int64, error) {
		relation := &schema.Relation{
			OID: oidOf(t, pg, name, table), Namespace: "public", Name: table,
			Columns: []schema.Column{{Name: "id"}, {Name: "gone"}},
		}
		return r.Read(t.Context(), snapshot.Table{Relation: relation},
			func(schema.Tuple) error { return nil })
	}
	run("ALTER TABLE a DROP COLUMN gone")
	run("ALTER TABLE b RENAME COLUMN gone TO other")
	for _, table := range []string{"a", "b"} {
		if n, err := read(table); n != 0 || !errors.Is(err, snapshot.ErrRewritten) {
			t.Errorf("%s: %d rows, %v, want ErrRewritten", table, n, err)
		}
	}
	if n, err := read("c"); n != 1 || err != nil {
		t.Errorf("the other table: %d rows, %v", n, err)
	}
}

func oidOf(t *testing.T, pg *testenv.Postgres, database, table string) (oid uint32) {
	t.Helper()
	conn, err := pg.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), "SELECT $1::regclass::oid", table).Scan(&oid); err != nil {
		t.Fatal(err)
	}
	return oid
}
