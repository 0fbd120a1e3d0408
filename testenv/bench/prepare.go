package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/tidemark-cdc/tidemark/testenv"
)

const database = "bench"

// serverSettings give the server what a machine of its own would have, so that the figures are
// not those of checkpoints and spilling.
var serverSettings = map[string]string{
	"shared_buffers": "256MB", "max_wal_size": "16GB", "synchronous_commit": "off",
	"checkpoint_timeout": "1h", "autovacuum": "off", "max_replication_slots": "64",
	"max_wal_senders": "32", "wal_sender_timeout": "60s",
}

// prepared is a shape whose rows wait in a slot.
type prepared struct {
	shape
	rows        int
	slot        string
	publication string
	end         string // an LSN below which all of the rows are, and the commit after them
}

func startServer(ctx context.Context) (*testenv.Postgres, error) {
	pg, err := testenv.StartPostgres(ctx, testenv.PostgresOptions{Settings: serverSettings})
	if err != nil {
		return nil, err
	}
	return pg, pg.Exec(ctx, "postgres", "CREATE DATABASE "+database)
}

// prepare makes a shape's table and slot, and the rows that wait in it.
func prepare(ctx context.Context, pg *testenv.Postgres, s shape, rows int) (prepared, error) {
	p := prepared{shape: s, rows: rows, slot: "bench_" + s.name, publication: "pub_" + s.name}
	steps := []string{
		fmt.Sprintf("CREATE TABLE %s (%s)", s.name, s.table),
		fmt.Sprintf("CREATE PUBLICATION %s FOR TABLE %s", p.publication, s.name),
	}
	if s.after != "" {
		steps = append(steps, fmt.Sprintf(s.after, s.name))
	}
	for _, sql := range steps {
		if err := pg.Exec(ctx, database, sql); err != nil {
			return p, err
		}
	}
	waiting := s.insert
	if s.update != "" {
		waiting = s.update
		if err := fill(ctx, pg, s.name, s.insert, rows, s.perTx); err != nil {
			return p, err
		}
	}
	if err := pg.Exec(ctx, database, fmt.Sprintf(
		"SELECT pg_create_logical_replication_slot('%s', 'pgoutput')", p.slot)); err != nil {
		return p, err
	}
	if err := fill(ctx, pg, s.name, waiting, rows, s.perTx); err != nil {
		return p, err
	}
	var err error
	p.end, err = scalar(ctx, pg, "SELECT pg_logical_emit_message(true, 'bench', 'end')::text")
	return p, err
}

// scalar returns the text of a query's only value.
func scalar(ctx context.Context, pg *testenv.Postgres, sql string) (string, error) {
	conn, err := pg.Connect(ctx, database)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(ctx) }() // read only
	var text string
	return text, conn.QueryRow(ctx, sql).Scan(&text)
}

// withCopy runs f with the name of a fresh copy of a slot, which is dropped afterwards.
func withCopy(
	ctx context.Context, pg *testenv.Postgres, slot string, f func(name string) error,
) error {
	name := slot + "_run"
	if err := pg.Exec(ctx, database, fmt.Sprintf(
		"SELECT pg_copy_logical_replication_slot('%s', '%s')", slot, name)); err != nil {
		return err
	}
	err := f(name)
	if drop := dropSlot(ctx, pg, name); err == nil {
		err = drop
	}
	return err
}

// freshSlot runs f with the name of a slot of its own, in which one row of a shape waits, with that
// key; it is dropped afterwards.
func freshSlot(
	ctx context.Context, pg *testenv.Postgres, s prepared, key int64, f func(slot string) error,
) error {
	slot, id := s.slot+"_fresh", strconv.FormatInt(key, 10)
	if err := pg.Exec(ctx, database, fmt.Sprintf(
		"SELECT pg_create_logical_replication_slot('%s', 'pgoutput')", slot)); err != nil {
		return err
	}
	err := pg.Exec(ctx, database, fmt.Sprintf(s.insert, s.name, id, id))
	if err == nil {
		err = f(slot)
	}
	return errors.Join(err, dropSlot(ctx, pg, slot))
}

// dropSlot ends whoever still holds the slot, and drops it.
func dropSlot(ctx context.Context, pg *testenv.Postgres, name string) error {
	if err := pg.Exec(ctx, database, fmt.Sprintf(
		"SELECT pg_terminate_backend(active_pid, 10000) FROM pg_replication_slots "+
			"WHERE slot_name = '%s' AND active_pid IS NOT NULL", name)); err != nil {
		return err
	}
	return pg.Exec(ctx, database, fmt.Sprintf("SELECT pg_drop_replication_slot('%s')", name))
}
