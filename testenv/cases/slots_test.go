package cases_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/testenv"
)

// own starts a server that the test configures.
func own(t *testing.T, version string, settings map[string]string) *testenv.Postgres {
	t.Helper()
	pg, err := testenv.StartPostgres(t.Context(),
		testenv.PostgresOptions{Version: version, Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pg.Close(); err != nil {
			t.Error(err)
		}
	})
	return pg
}

// WAL that is gone: TestF51ALostSlotIsRefused and
// TestF51ASlotThatIsLostWhileStreamingStopsTheConnector. Here: what 18 adds.
func TestF51K25SlotThatWasIdleTooLong(t *testing.T) {
	t.Parallel()
	r := newRig(t, own(t, "18", nil))
	r.exec(`CREATE TABLE t(id int PRIMARY KEY)`, `INSERT INTO t VALUES (1)`)
	run := r.streaming()
	r.caughtUp(run)
	r.clean(run)
	err := r.pg.SetConf(t.Context(), map[string]string{"idle_replication_slot_timeout": "1s"})
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		r.exec(`CHECKPOINT`)
		if r.query(`SELECT coalesce(invalidation_reason, '') FROM pg_replication_slots
			WHERE slot_name = $1`, r.slot()) == "idle_timeout" {
			break
		}
		if time.Now().After(deadline) {
			t.Skip("the server does not invalidate idle slots")
		}
	}
	r.exec(`INSERT INTO t VALUES (2)`, `DELETE FROM t WHERE id = 1`)
	for range 2 {
		r.ends(r.start(), fault.SlotLost, r.slot(), "idle_timeout", "idle_replication_slot_timeout")
	}
	if got := ops(r.read(r.topic("t"))); got != "r" {
		t.Errorf("topic holds %q", got)
	}
	if r.confirmed() == "" {
		t.Error("the slot was dropped")
	}
	// Repaired: TestRepairOfASlotThatIsLostInMidRun.
}

// ownStandby starts a standby that copies the primary's failover slots.
func ownStandby(t *testing.T, primary *testenv.Postgres) *testenv.Postgres {
	t.Helper()
	standby, err := testenv.StartStandby(t.Context(), primary, testenv.PostgresOptions{
		Settings: map[string]string{"sync_replication_slots": "on"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := standby.Close(); err != nil {
			t.Error(err)
		}
	})
	return standby
}

// viaProxy puts a proxy between connector and server.
func (r *rig) viaProxy() *testenv.Proxy {
	r.t.Helper()
	proxy, err := testenv.NewProxy(fmt.Sprintf("%s:%d", r.pg.Host, r.pg.Port))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(proxy.Close)
	r.keys["database.hostname"], r.keys["database.port"] = "127.0.0.1", fmt.Sprint(proxy.Port())
	return proxy
}

func ask(t *testing.T, pg *testenv.Postgres, sql string, args ...any) (out string) {
	t.Helper()
	conn, err := pg.Connect(t.Context(), "postgres")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&out); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return out
}

// Answers of the start to each state of a slot: connector's TestASlot... and offsets' matrix. Here:
// a promotion, with a slot that the standby synchronised (c), with none (a), with a new one (b).
func TestF49F50K26Failover(t *testing.T) {
	t.Parallel()
	primary := own(t, "18", nil)
	standby := ownStandby(t, primary)
	r := newRig(t, primary)
	proxy := r.viaProxy()
	r.keys["slot.failover"] = "true"
	r.exec(`CREATE TABLE t(id int PRIMARY KEY)`)
	run := r.streaming()
	r.exec(`INSERT INTO t SELECT generate_series(1,50)`)
	r.caughtUp(run)
	r.until(run, "the standby has the slot", func() bool {
		// A copy becomes usable once the slot itself has moved beyond where the copy began.
		r.exec(`SELECT pg_log_standby_snapshot()`)
		r.caughtUp(run)
		return ask(t, standby, `SELECT EXISTS (SELECT FROM pg_replication_slots
			WHERE slot_name = $1 AND synced AND NOT temporary)::text`, r.slot()) == "true"
	})
	release := r.refuseAfter(0) // 50 behind
	for i := 51; i <= 100; i++ {
		r.exec(fmt.Sprintf(`INSERT INTO t VALUES (%d)`, i))
	}
	end := r.query(`SELECT pg_current_wal_insert_lsn()::text`)
	r.until(run, "the standby has all", func() bool {
		return ask(t, standby, `SELECT (pg_last_wal_replay_lsn() >= $1::pg_lsn)::text`, end) == "true"
	})
	proxy.Cut()
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}
	proxy.SetTarget(fmt.Sprintf("%s:%d", standby.Host, standby.Port))
	if err := proxy.Heal(); err != nil {
		t.Fatal(err)
	}
	r.until(run, "it waits for the promotion", func() bool { // the address may move first
		return strings.Contains(strings.Join(run.c.Status().Reasons, " "), "after promotion only")
	})
	ask(t, standby, `SELECT pg_promote()::text`)
	release()
	r.pg = standby
	r.connect()
	r.until(run, "streaming from the new primary", func() bool {
		return run.c.Status().State == "streaming" && run.c.Status().Ready
	})
	r.exec(`INSERT INTO t VALUES (101)`)
	if n := len(ids(r.drain(run, "t"))); n != 101 {
		t.Errorf("%d of 101 rows", n)
	}
	r.clean(run)
	r.exec(testenv.DropSlot(r.slot()))
	r.ends(r.start(), fault.SlotMissing, r.slot())
	r.exec(`INSERT INTO t VALUES (102)`,
		`SELECT pg_create_logical_replication_slot('`+r.slot()+`','pgoutput')`)
	r.ends(r.start(), fault.SlotAhead, r.slot())
}
