package connector_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// Prepared transactions live through restarts of connector and server; each comes once, with its
// commit, or never.
func TestF59PreparedOverARestart(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, set func(*rig) *rig) {
		r := set(newRigOn(t, ownServer(t, "18", map[string]string{"max_prepared_transactions": "5"})))
		r.exec(numbers)
		run := r.start()
		r.streaming(run)
		for i, name := range []string{"kept", "dropped"} {
			r.exec("BEGIN", insertNumbers(2+1000*i, 2+1000*i), "PREPARE TRANSACTION '"+name+"'")
		}
		r.exec(insertNumbers(1, 1))
		r.caughtUp(run)
		r.clean(run)
		r.whileDown(func() error { return nil })
		run = r.start()
		r.streaming(run)
		r.exec("COMMIT PREPARED 'kept'", "ROLLBACK PREPARED 'dropped'", insertNumbers(3, 3))
		r.caughtUp(run)
		r.clean(run)
		run = r.start()
		r.streaming(run)
		r.caughtUp(run)
		r.clean(run)
		sameInts(t, "ids", ids(r.committed("shop.public.t"), "id"), sequence(1, 3))
	})
}

// Slots, walsenders and connections that are used up are waited for, by name.
func TestF61UsedUp(t *testing.T) {
	t.Parallel()
	pg := ownServer(t, "18", map[string]string{
		"max_replication_slots": "1", "max_wal_senders": "1", "max_connections": "12",
		"superuser_reserved_connections": "0", "reserved_connections": "0",
	})
	r := newRigOn(t, pg)
	r.extra["errors.retry.delay.max.ms"] = "500"
	r.exec(numbers, insertNumbers(1, 1))
	waits := func(run *running, what string) {
		t.Helper()
		r.until("it waits for "+what, func() bool {
			select {
			case <-run.done:
				t.Fatalf("%s: the connector ended: %v", what, run.err)
			default:
			}
			e := run.c.Status().Error
			return e != nil && e.Code == fault.SlotsExhausted
		})
	}
	r.exec("SELECT pg_create_physical_replication_slot('other')")
	run := r.start()
	waits(run, "a slot")
	r.exec("SELECT pg_drop_replication_slot('other')")
	r.streaming(run)
	r.clean(run)

	sender, err := pgconn.Connect(t.Context(), pg.URL(r.db)+"&replication=database")
	if err != nil {
		t.Fatal(err)
	}
	run = r.start()
	waits(run, "a walsender")
	sender.Close(t.Context())
	r.streaming(run)
	r.clean(run)

	var others []*pgx.Conn
	r.until("all connections are used", func() bool {
		conn, err := pg.Connect(t.Context(), r.db)
		if err == nil {
			others = append(others, conn)
		}
		return err != nil
	})
	run = r.start()
	waits(run, "a connection")
	for _, conn := range others {
		conn.Close(t.Context())
	}
	r.streaming(run)
	r.exec(insertNumbers(2, 2))
	r.caughtUp(run)
	r.clean(run)
	sameInts(t, "ids", ids(r.all("shop.public.t"), "id"), sequence(1, 2))
}

// whileDown stops the server, does something and starts it again.
func (r *rig) whileDown(do func() error) {
	r.t.Helper()
	r.sql.Close(r.t.Context())
	err := r.pg.Stop(r.t.Context(), "fast")
	if err == nil {
		err = do()
	}
	if err == nil {
		err = r.pg.Start(r.t.Context())
	}
	if err == nil {
		r.sql, err = r.pg.Connect(r.t.Context(), r.db)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	conn := r.sql
	r.t.Cleanup(func() { conn.Close(r.t.Context()) })
}
