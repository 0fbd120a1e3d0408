package connector_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/testenv"
)

// standbyOf starts a standby of a server.
func standbyOf(
	t *testing.T, primary *testenv.Postgres, settings map[string]string,
) *testenv.Postgres {
	t.Helper()
	standby, err := testenv.StartStandby(t.Context(), primary, testenv.PostgresOptions{
		Settings: settings,
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

// at runs a query of one text on another server.
func (r *rig) at(pg *testenv.Postgres, sql string, args ...any) (out string) {
	r.t.Helper()
	conn, err := pg.Connect(r.t.Context(), r.db)
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Close(r.t.Context())
	if err := conn.QueryRow(r.t.Context(), sql, args...).Scan(&out); err != nil {
		r.t.Fatalf("%s: %v", sql, err)
	}
	return out
}

// failOver kills the primary, promotes the standby and moves the address to it.
func (r *rig) failOver(proxy *testenv.Proxy, standby *testenv.Postgres) {
	r.t.Helper()
	proxy.Cut()
	err := r.pg.Kill()
	if err == nil {
		r.at(standby, "SELECT pg_promote()::text")
		proxy.SetTarget(fmt.Sprintf("%s:%d", standby.Host, standby.Port))
		err = proxy.Heal()
	}
	if err == nil {
		r.pg = standby
		r.sql, err = standby.Connect(r.t.Context(), r.db)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	conn := r.sql
	r.t.Cleanup(func() { conn.Close(r.t.Context()) })
}

// The standby has the slot and all rows, some of which no broker has taken. At least once is in
// TestF49F50K26Failover.
func TestF49FailOverExactlyOnce(t *testing.T) {
	t.Parallel()
	primary := ownServer(t, "18", nil)
	standby := standbyOf(t, primary, map[string]string{"sync_replication_slots": "on"})
	r := newRigOn(t, primary)
	r.exactlyOnce(2 << 10)
	proxy := r.behindProxy()
	r.extra["slot.failover"] = "true"
	r.exec(numbers)
	run := r.start()
	r.streaming(run)
	r.exec(insertNumbers(1, 50))
	r.caughtUp(run)
	r.until("the standby has the slot", func() bool {
		r.exec("SELECT pg_log_standby_snapshot()")
		r.caughtUp(run)
		return r.at(standby, "SELECT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = $1 "+
			"AND synced AND NOT temporary)::text", r.slot()) == "true"
	})
	timeline := r.record().Timeline
	release := r.holdEvents()
	r.exec(insertNumbers(51, 1000))
	end := r.query("SELECT pg_current_wal_insert_lsn()::text")
	r.until("the standby has all", func() bool {
		return r.at(standby, "SELECT (pg_last_wal_replay_lsn() >= $1::pg_lsn)::text", end) == "true"
	})
	r.failOver(proxy, standby)
	release()
	r.until("it streams from the new primary", func() bool {
		return strings.Count(r.log.String(), "msg=streaming") > 1
	})
	r.exec(insertNumbers(1001, 1010))
	r.caughtUp(run)
	r.clean(run)
	r.complete(1010)
	if now := r.record().Timeline; now <= timeline {
		t.Errorf("the record is of timeline %d, and was of %d", now, timeline)
	}
}

// A standby that lags behind what is stored becomes the primary: with a slot or without one, then
// and once it has gone past the stored position on its own, nothing is sent and nothing made.
func TestF50FailOverToAStandbyThatLags(t *testing.T) {
	t.Parallel()
	primary := ownServer(t, "18", nil)
	standby := standbyOf(t, primary, nil)
	r := newRigOn(t, primary)
	proxy := r.behindProxy()
	r.exec(numbers)
	run := r.start()
	r.streaming(run)
	r.exec(insertNumbers(1, 4))
	r.caughtUp(run)
	if err := standby.SetConf(t.Context(), map[string]string{"primary_conninfo": " "}); err != nil {
		t.Fatal(err) // it leads to nobody
	}
	r.until("the standby takes nothing more", func() bool {
		return r.at(standby, "SELECT count(*)::text FROM pg_stat_wal_receiver") == "0"
	})
	r.exec("INSERT INTO t SELECT g, repeat('lost', 1000) FROM generate_series(5, 1000) g")
	r.caughtUp(run)
	r.clean(run)
	rec := r.record()
	r.failOver(proxy, standby)
	refused := func(without string) {
		err := r.start().ended(t)
		switch fault.CodeOf(err) {
		case fault.HistoryRewound, fault.TimelineDiverged, fault.SlotMissing:
			contains(t, err.Error(), rec.LSN.String())
		default:
			t.Errorf("%s: %v", without, err)
		}
		if now := r.record(); now.LSN != rec.LSN || now.Timeline != rec.Timeline {
			t.Errorf("%s: the record was %+v and is %+v", without, rec, now)
		}
	}
	slots := func() string { return r.query("SELECT count(*)::text FROM pg_replication_slots") }
	refused("without a slot")
	if slots() != "0" {
		t.Error("a slot was made")
	}
	r.exec("SELECT pg_create_logical_replication_slot('" + r.slot() + "', 'pgoutput')")
	refused("with a slot, behind the position")
	r.until("the server went past the position", func() bool {
		r.exec("SELECT pg_logical_emit_message(false, 'x', repeat('x', 1000000))")
		return r.lsn("SELECT pg_current_wal_insert_lsn()::text") > rec.LSN
	})
	refused("with a slot, past the position")
	sameInts(t, "ids", ids(r.committed("shop.public.t"), "id"), sequence(1, 1000))
}

// The data directory of yesterday under the same address.
func TestF54RestoredToAnEarlierPoint(t *testing.T) {
	t.Parallel()
	pg := ownServer(t, "18", nil)
	r := newRigOn(t, pg)
	r.exec(numbers)
	run := r.start()
	r.streaming(run)
	r.exec(insertNumbers(1, 2))
	r.caughtUp(run)
	r.clean(run)
	r.whileDown(pg.SaveData)
	run = r.start()
	r.streaming(run)
	r.exec(insertNumbers(3, 4))
	r.caughtUp(run)
	r.clean(run)
	rec := r.record()
	r.whileDown(pg.RestoreData)
	contains(t, r.refused(fault.HistoryRewound), rec.LSN.String())
	r.nothingNew(rec)
}

// A standby as source (16 and later). Rows that its primary removed, and a primary without logical
// WAL, cost it the slot: the connector stops and says what to set.
func TestF51F61AStandbyAsSource(t *testing.T) {
	t.Parallel()
	primary := ownServer(t, "18", map[string]string{"autovacuum": "off"})
	p := newRigOn(t, primary)
	p.exec(numbers, insertNumbers(1, 3), "CREATE PUBLICATION tidemark FOR TABLE t")
	standby := standbyOf(t, primary, map[string]string{"hot_standby_feedback": "off"})
	last := 3
	for _, lost := range []struct {
		reason, fix string
		how         func()
	}{
		{"rows_removed", "hot_standby_feedback", func() {
			p.exec("CREATE TABLE gone (a int)", "DROP TABLE gone", "VACUUM FULL pg_class")
		}},
		{"wal_level_insufficient", "wal_level", func() {
			p.sql.Close(t.Context())
			err := primary.SetConf(t.Context(), map[string]string{"wal_level": "replica"})
			if err == nil {
				err = primary.Restart(t.Context(), "fast")
			}
			if err != nil {
				t.Fatal(err)
			}
		}},
	} {
		r := *p
		r.pg, r.log = standby, &lockedBuffer{}
		r.extra = map[string]string{"slot.name": lost.reason, "topic.prefix": lost.reason}
		run := r.start()
		r.until("it streams from the standby", func() bool {
			select {
			case <-run.done:
				t.Fatalf("the connector ended: %v\nlog:\n%s", run.err, r.log.String())
			default:
			}
			p.exec("SELECT pg_log_standby_snapshot()") // creation of a slot waits for one
			return run.c.Status().State == "streaming"
		})
		last++
		p.exec(insertNumbers(last, last))
		r.until("the row", func() bool { return len(r.committed(lost.reason+".public.t")) == last })
		lost.how()
		contains(t, code(t, run.ended(t), fault.SlotLost), lost.reason, lost.fix)
	}
}
