package connector_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/testenv"
)

// newStandbyRig is a rig whose source is a standby; what the test executes goes to its primary.
func newStandbyRig(t *testing.T) (r *rig, standby *testenv.Postgres) {
	t.Helper()
	own := testenv.PostgresOptions{Version: "18"}
	primary, err := testenv.StartPostgres(t.Context(), own)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = primary.Close() })
	if standby, err = testenv.StartStandby(t.Context(), primary, own); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = standby.Close() })
	r = newRigOn(t, primary)
	for k, v := range map[string]string{
		"database.port": fmt.Sprint(standby.Port), "primary.hostname": primary.Host,
		"primary.port":          fmt.Sprint(primary.Port),
		"heartbeat.interval.ms": "500", "catalog.check.interval.ms": "500",
		"idle.advance.after.ms": "-1", // heartbeats are what is tested
	} {
		r.extra[k] = v
	}
	return r, standby
}

// A standby is a whole source: the publication is made on its primary, the slot is made though
// both are idle, heartbeats move the slot, and the session lives through the promotion, after which
// the standby itself is where heartbeats go.
func TestAStandbyIsTheSource(t *testing.T) {
	t.Parallel()
	r, standby := newStandbyRig(t)
	r.onePartition()
	r.exec("CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, 'before')")
	at := r.query("SELECT pg_current_wal_lsn()::text")
	conn, err := standby.Connect(t.Context(), "postgres")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	ask := func(sql string, args ...any) (out string) {
		if err := conn.QueryRow(t.Context(), sql, args...).Scan(&out); !errors.Is(err, pgx.ErrNoRows) && err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		return out
	}
	r.until("the standby has the table", func() bool {
		return ask("SELECT (pg_last_wal_replay_lsn() >= $1::pg_lsn)::text", at) == "true"
	})

	run := r.start()
	r.streaming(run)
	r.exec("INSERT INTO t VALUES (2, 'streamed')")
	confirmed := func() string {
		return ask("SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = $1",
			r.slot())
	}
	events := r.read("shop.public.t", 2)
	if ops := events[0].op() + events[1].op(); ops != "rc" {
		t.Errorf("operations %q, want the snapshot's row and the streamed one", ops)
	}
	moves := func(what string) {
		t.Helper()
		was := confirmed()
		r.until(what, func() bool {
			return ask("SELECT ($1::pg_lsn > $2::pg_lsn)::text", confirmed(), was) == "true"
		})
	}
	moves("heartbeats through the primary move the slot")

	if got := ask("SELECT pg_promote()::text"); got != "true" {
		t.Fatal("not promoted")
	}
	moves("heartbeats through the promoted server move the slot")
	own, err := standby.Connect(t.Context(), r.db)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = own.Close(context.Background()) }()
	if _, err := own.Exec(t.Context(), "INSERT INTO t VALUES (3, 'promoted')"); err != nil {
		t.Fatal(err)
	}
	r.read("shop.public.t", 3)
	if err := run.stop(); err != nil {
		t.Error(err)
	}
}

// Without the keys, and with those of another cluster, heartbeats are a warning that says what to
// set; the stream goes on.
func TestAStandbyWithoutItsPrimary(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(r *rig)
		says   string
	}{
		"not configured": {func(r *rig) {
			delete(r.extra, "primary.hostname")
			delete(r.extra, "primary.port")
		}, "no primary.hostname"},
		"another cluster": {func(r *rig) {
			other := testenv.SharedPostgres(r.t, "18")
			r.extra["primary.port"] = fmt.Sprint(other.Port)
			if err := other.Exec(r.t.Context(), "postgres", "CREATE DATABASE "+r.db); err != nil {
				r.t.Fatal(err)
			}
			r.t.Cleanup(func() {
				_ = other.Exec(context.Background(), "postgres", "DROP DATABASE "+r.db+" WITH (FORCE)")
			})
		}, "primary.hostname leads to another cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, standby := newStandbyRig(t)
			r.exec("CREATE TABLE t (id int PRIMARY KEY)",
				"CREATE PUBLICATION tidemark FOR TABLE t WITH (publish_via_partition_root)")
			c.change(r)
			r.until("the standby has the publication", func() bool {
				conn, err := standby.Connect(t.Context(), r.db)
				if err != nil {
					return false // the database has not come yet
				}
				defer func() { _ = conn.Close(context.Background()) }()
				var n int
				err = conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_publication").Scan(&n)
				return err == nil && n == 1
			})
			run := r.start()
			r.until("the warning", func() bool {
				// Nobody asks the primary for us.
				r.exec("SELECT pg_log_standby_snapshot()")
				return strings.Contains(r.log.String(), "a heartbeat could not be emitted") &&
					strings.Contains(r.log.String(), c.says)
			})
			r.exec("INSERT INTO t VALUES (1)")
			r.read("shop.public.t", 1)
			if err := run.stop(); err != nil {
				t.Error(err)
			}
		})
	}
}
