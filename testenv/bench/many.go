package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-cdc/tidemark/testenv"
)

// The tables of the figure, and the few that they are compared with.
const (
	manyTables = 5000
	fewTables  = 5
)

// tables measures what captured tables cost at the start and in memory: a row of each waits in the
// slot, so that each has its topic, its schemas and its compiled encoder in the end.
//
// The registry is a process of its own: the one in this process holds each schema against every
// other.
func (b *bench) tables(ctx context.Context, on servers, n int) (err error) {
	registry, err := testenv.StartRegistry(ctx, testenv.RegistryOptions{HeapMB: 1024})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, registry.Close()) }()
	on.registry = registry.URL
	if n == 0 {
		n = manyTables
	}
	few, err := b.tablesOf(ctx, on, fewTables)
	if err != nil {
		return err
	}
	many, err := b.tablesOf(ctx, on, n)
	if err != nil {
		return err
	}
	b.add(Figure{
		Name: "tables, start", Unit: "s", Target: 10, AtMost: true,
		What: fmt.Sprintf("from the start of the process to the first event, %d captured tables "+
			"with a waiting row each", n),
		Least: many.Started, Middle: many.Started, Most: many.Started, Runs: series{many},
		Others: series{few},
		Note: fmt.Sprintf("with %d tables %.2f s; all events were confirmed after %.1f s",
			fewTables, few.Started, many.Seconds),
	})
	each := float64(many.RSS-few.RSS) / float64(n-fewTables) / 1024
	b.add(Figure{
		Name: "tables, memory", Unit: "KiB a table", Target: 100, AtMost: true,
		What: fmt.Sprintf("peak resident memory with %d tables less that with %d, over the "+
			"difference of tables", n, fewTables),
		Least: each, Middle: each, Most: each, Runs: series{many}, Others: series{few},
		Note: fmt.Sprintf("%d MiB, %d MiB", many.RSS>>20, few.RSS>>20),
	})
	return nil
}

// tablesOf starts a connector on a slot in which a row of each of n tables waits.
func (b *bench) tablesOf(ctx context.Context, on servers, n int) (r run, err error) {
	p := prepared{
		shape: shape{name: fmt.Sprintf("many%d_1", n)}, slot: fmt.Sprintf("bench_many%d", n),
		publication: fmt.Sprintf("pub_many%d", n),
	}
	each := func(sql string) string {
		return fmt.Sprintf("DO $$ BEGIN FOR i IN 1..%d LOOP EXECUTE format($f$%s$f$, "+
			"'many%d_' || i); IF i %% 500 = 0 THEN COMMIT; END IF; END LOOP; END $$", n, sql, n)
	}
	for _, sql := range []string{
		each("CREATE TABLE %I (" + ordinary + ")"),
		"CREATE PUBLICATION " + p.publication,
		each("ALTER PUBLICATION " + p.publication + " ADD TABLE %I"),
		fmt.Sprintf("SELECT pg_create_logical_replication_slot('%s', 'pgoutput')", p.slot),
		each("INSERT INTO %I (id, customer) VALUES (1, 1)"),
	} {
		if err := b.pg.Exec(ctx, database, sql); err != nil {
			return r, err
		}
	}
	p.end, err = scalar(ctx, b.pg, "SELECT pg_logical_emit_message(true, 'bench', 'end')::text")
	if err != nil {
		return r, err
	}
	all := func(ctx context.Context, j job, _ string) (*testenv.Program, error) {
		j.Partitions = 1
		j.Settings["table.include.list"] = fmt.Sprintf(`public\.many%d_.*`, n)
		return b.startTidemark(ctx, j)
	}
	err = b.carry(ctx, on, all, p, p.slot, func(running *testenv.Program, topic string) error {
		if r.Started, err = firstEvent(ctx, on.admin, running, topic); err != nil {
			return err
		}
		if err := b.confirmed(ctx, p, running); err != nil {
			return err
		}
		r.Seconds = time.Since(running.Started).Seconds()
		r.RSS, err = peakOf(running.PID())
		return err
	})
	if err != nil {
		return r, err
	}
	if err := dropSlot(ctx, b.pg, p.slot); err != nil {
		return r, err
	}
	return r, b.pg.Exec(ctx, database, each("DROP TABLE %I"))
}

// confirmed waits until the server knows that everything that waited was taken.
func (b *bench) confirmed(ctx context.Context, p prepared, running *testenv.Program) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	sql := fmt.Sprintf("SELECT (confirmed_flush_lsn > '%s')::text FROM pg_replication_slots "+
		"WHERE slot_name = '%s'", p.end, p.slot)
	for {
		done, err := scalar(ctx, b.pg, sql)
		if err != nil || done == "true" {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the slot was not confirmed: %w", ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
		if err := running.Ended(); err != nil {
			return err
		}
	}
}
