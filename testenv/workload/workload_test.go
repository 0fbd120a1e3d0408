package workload_test

import (
	"testing"

	"github.com/tidemark-cdc/tidemark/testenv"
	"github.com/tidemark-cdc/tidemark/testenv/workload"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// Every kind is written; afterwards the rows' counters and the record of changes say the same.
func TestTheRecordOfChangesIsTheTables(t *testing.T) {
	pg := testenv.SharedPostgres(t, "18")
	name := testenv.NewDatabase(t, pg)
	w := workload.New(workload.Options{URL: pg.URL(name), Seed: 5, Keys: 60})
	if err := w.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.Run(t.Context(), 8000); err != nil {
		t.Fatal(err)
	}
	if err := w.Markers(t.Context(), "end", 3); err != nil {
		t.Fatal(err)
	}
	stats := w.Stats()
	if stats.Changes < 8000 || stats.Aborts == 0 {
		t.Errorf("%d changes, %d aborts", stats.Changes, stats.Aborts)
	}
	for _, kind := range []string{
		"insert", "update", "twice", "delete", "key change", "insert again", "many rows",
		"several tables", "copy", "savepoint", "abort", "prepared", "body", "truncate", "column",
		"noise",
	} {
		if stats.Kinds[kind] == 0 {
			t.Errorf("nothing of kind %q was written", kind)
		}
	}
	conn, err := pg.Connect(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var prepared int
	err = conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_prepared_xacts WHERE database = $1",
		name).Scan(&prepared)
	if err != nil || prepared != 0 {
		t.Errorf("%d transactions are still prepared (%v)", prepared, err)
	}
	for _, table := range w.Tables() {
		key := table.Key[0] + "::text"
		for _, c := range table.Key[1:] {
			key += " || '|' || " + c + "::text"
		}
		var rows, markers, differ int
		err := conn.QueryRow(t.Context(), `WITH last AS (SELECT DISTINCT ON (key) key, op, v
				FROM tm.audit WHERE rel = '`+table.ID()+`' AND op <> 't' ORDER BY key, seq DESC)
			SELECT count(*), count(*) FILTER (WHERE note = 'end'),
				count(*) FILTER (WHERE last.v IS DISTINCT FROM t.v OR last.op = 'd')
			FROM `+table.ID()+` t LEFT JOIN last ON last.key = `+key).Scan(&rows, &markers, &differ)
		if err != nil {
			t.Fatal(err)
		}
		if rows == 0 || markers != 3 || differ != 0 {
			t.Errorf("%s: %d rows, %d markers, %d rows that the record of changes does not know so",
				table.ID(), rows, markers, differ)
		}
	}
}
