package capture

import (
	"context"
	"fmt"
	"testing"

	"github.com/tidemark-cdc/tidemark/connector/decode"
	"github.com/tidemark-cdc/tidemark/testenv"
)

// BenchmarkBacklog reads and decodes a slot with waiting rows of 8 columns and 140 bytes, with and
// without pacing. It reports rows a second; each iteration takes a copy of one prepared slot.
func BenchmarkBacklog(b *testing.B) {
	for _, perTx := range []int{1000, 1} {
		rows := 200_000
		if perTx == 1 {
			rows = 50_000
		}
		pg, slot, db := backlog(b, rows, perTx)
		for _, eager := range []bool{true, false} {
			b.Run(fmt.Sprintf("rows=%d/eager=%t", perTx, eager), func(b *testing.B) {
				for i := range b.N {
					drainOnce(b, pg, fmt.Sprintf("%s_%t_%d", slot, eager, i), slot, db, rows, eager)
				}
				b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
			})
		}
	}
}

func backlog(b *testing.B, rows, perTx int) (pg *testenv.Postgres, slot, db string) {
	b.Helper()
	pg = testenv.SharedPostgres(b, "18")
	db = testenv.NewDatabase(b, pg)
	ctx := context.Background()
	for _, sql := range []string{
		`CREATE TABLE t (id int PRIMARY KEY, a int, b int, c bigint, d timestamptz, e numeric(10,2),
			f text, g text)`,
		"CREATE PUBLICATION pub FOR TABLE t",
		fmt.Sprintf("SELECT pg_create_logical_replication_slot('%s', 'pgoutput')", db),
		fmt.Sprintf(`DO $$ BEGIN FOR i IN 0..%d LOOP
			INSERT INTO t SELECT i*%d+j, j, i, j*1000000, now(), j/7.0, repeat('f', 30), repeat('g', 30)
			FROM generate_series(1, %d) j; COMMIT; END LOOP; END $$`, rows/perTx-1, perTx, perTx),
	} {
		if err := pg.Exec(ctx, db, sql); err != nil {
			b.Fatal(err)
		}
	}
	return pg, db, db
}

func drainOnce(b *testing.B, pg *testenv.Postgres, name, slot, db string, rows int, eager bool) {
	b.Helper()
	b.StopTimer()
	ctx := context.Background()
	if err := pg.Exec(ctx, db, fmt.Sprintf(
		"SELECT pg_copy_logical_replication_slot('%s', '%s')", slot, name)); err != nil {
		b.Fatal(err)
	}
	c, err := Dial(ctx, databaseOf(pg, db), "bench")
	if err != nil {
		b.Fatal(err)
	}
	st, err := c.Start(ctx, StartOptions{Slot: name, Publication: "pub"})
	if err != nil {
		b.Fatal(err)
	}
	if eager {
		st.sock.on = false
	}
	session := decode.NewSession()
	b.StartTimer()
	for seen := 0; seen < rows; {
		f, err := st.Next(ctx)
		if err != nil {
			b.Fatal(err)
		}
		if f.Kind != Data {
			continue
		}
		e, err := session.Decode(f.Start, f.Payload)
		if err != nil {
			b.Fatal(err)
		}
		if e.Kind == decode.KindInsert {
			seen++
		}
	}
	b.StopTimer()
	if err := st.Close(ctx); err != nil {
		b.Fatal(err)
	}
	if err := pg.Exec(ctx, db, testenv.DropSlot(name)); err != nil {
		b.Fatal(err)
	}
	b.StartTimer()
}
