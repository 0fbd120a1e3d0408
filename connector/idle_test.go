package connector_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/offsets"
)

// idleSettings are the ways in which the slot of a silent connector must move.
var idleSettings = map[string]map[string]string{
	"by keepalives": {
		"heartbeat.interval.ms": "0", "heartbeat.verify.interval.ms": "0",
		"idle.advance.after.ms": "1000",
	},
	"by heartbeats": {"heartbeat.interval.ms": "1000", "idle.advance.after.ms": "-1"},
	"by both":       {"heartbeat.interval.ms": "1000", "idle.advance.after.ms": "1000"},
}

func TestF60TheSlotOfASilentConnectorMoves(t *testing.T) {
	t.Parallel()
	for name, settings := range idleSettings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onVersions(t, func(t *testing.T, r *rig) {
				r.exec(numbers)
				for k, v := range settings {
					r.extra[k] = v
				}
				run := r.start()
				r.streaming(run)
				for range 3 {
					if err := r.pg.Exec(t.Context(), "postgres",
						"SELECT pg_logical_emit_message(false, 'x', repeat('x', 100000))"); err != nil {
						t.Fatal(err)
					}
					target := r.lsn("SELECT pg_current_wal_insert_lsn()::text")
					r.within(20*time.Second, "the slot follows", func() bool {
						return r.confirmedFlush() >= target
					})
					c := r.confirmedFlush() // first: it is stored before the slot is told
					if rec := r.record().LSN; rec < c {
						t.Errorf("the slot was told %s, and %s is stored", c, rec)
					}
				}
				r.clean(run)
			})
		})
	}
}

// A role that may not emit heartbeats is a warning; the slot moves all the same.
func TestF60WithoutTheGrantOnTheMessageFunctionTheSlotMovesByKeepalives(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.exec(numbers)
	r.replicationRole("mute_" + r.db)
	r.exec("REVOKE EXECUTE ON FUNCTION pg_logical_emit_message(boolean, text, text, boolean) " +
		"FROM PUBLIC")
	r.extra["heartbeat.interval.ms"], r.extra["idle.advance.after.ms"] = "500", "3000"
	run := r.start()
	r.streaming(run)
	r.until("a person is told once", func() bool {
		return strings.Contains(r.log.String(), "a heartbeat could not be emitted")
	})
	for range 2 {
		if err := r.pg.Exec(t.Context(), "postgres", "CREATE TABLE IF NOT EXISTS mute_noise (i int); "+
			"INSERT INTO mute_noise SELECT generate_series(1, 1000)"); err != nil {
			t.Fatal(err)
		}
		target := r.lsn("SELECT pg_current_wal_insert_lsn()::text")
		r.within(20*time.Second, "the slot follows", func() bool { return r.confirmedFlush() >= target })
	}
	if n := strings.Count(r.log.String(), "a heartbeat could not be emitted"); n != 1 {
		t.Errorf("%d warnings", n)
	}
	if s := run.c.Status(); !s.Ready {
		t.Errorf("not ready: %v", s.Reasons)
	}
	r.clean(run)
}

// A transaction that stays open elsewhere is protected by restart_lsn: the position moves past its
// start, and it comes whole when it commits, also after a restart.
func TestF60IdleAdvancePastTheStartOfAnOpenTransactionLosesNothing(t *testing.T) {
	t.Parallel()
	r := newRigOn(t, ownServer(t, "18", nil))
	r.exec(numbers)
	for k, v := range idleSettings["by keepalives"] {
		r.extra[k] = v
	}
	run := r.start()
	r.streaming(run)
	r.exec("BEGIN", insertNumbers(1, 1))
	began := r.lsn("SELECT pg_current_wal_insert_lsn()::text")
	noise := func() offsets.LSN {
		if err := r.pg.Exec(t.Context(), "postgres", "SELECT pg_logical_emit_message(false, 'x', "+
			"repeat('x', 100000)); CHECKPOINT"); err != nil {
			t.Fatal(err)
		}
		return r.lsn("SELECT pg_current_wal_insert_lsn()::text")
	}
	target := noise()
	r.until("the slot moves past it", func() bool { return r.confirmedFlush() >= target })
	if target <= began {
		t.Fatal("no WAL was written")
	}
	r.clean(run)
	r.exec(insertNumbers(2, 2), "COMMIT")
	run = r.start()
	r.streaming(run)
	r.caughtUp(run)
	r.clean(run)
	sameInts(t, "ids", ids(r.all("shop.public.t"), "id"), sequence(1, 2))
}

// The seed problem: captured tables are silent while another database writes 500 MB. That takes two
// minutes, of waiting mostly: it begins before the parallel tests do, and they run meanwhile.
func TestF60AnotherDatabasesWritesDoNotFillTheDisk(t *testing.T) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		anotherDatabaseWrites(t)
	}()
	t.Parallel()
	<-done
}

func anotherDatabaseWrites(t *testing.T) {
	t.Helper()
	pg := ownServer(t, "18", map[string]string{
		"autovacuum": "off", "max_wal_size": "256MB", "full_page_writes": "off",
	})
	var rigs []*rig
	var runs []*running
	start := func(settings map[string]string, prepare func(*rig)) {
		r := newRigOn(t, pg)
		r.exec(numbers)
		for k, v := range settings {
			r.extra[k] = v
		}
		prepare(r)
		run := r.start()
		r.streaming(run)
		rigs, runs = append(rigs, r), append(runs, run)
	}
	for _, settings := range idleSettings {
		start(settings, func(*rig) {})
	}
	start(map[string]string{"idle.advance.after.ms": "1000"}, func(r *rig) { // without the grant
		r.replicationRole("mute")
		r.exec("REVOKE EXECUTE ON FUNCTION pg_logical_emit_message(boolean, text, text, boolean) " +
			"FROM PUBLIC")
	})
	start(idleSettings["by keepalives"], func(r *rig) { // started on an idle database
		run := r.start()
		r.streaming(run)
		r.clean(run)
	})
	const segment = 16 << 20
	fill(t, rigs, segment)
	deadline := time.Now().Add(60 * time.Second)
	for i, r := range rigs {
		retained := func() string {
			return r.query("SELECT (pg_current_wal_lsn() - restart_lsn)::bigint::text "+
				"FROM pg_replication_slots WHERE slot_name = $1", r.slot())
		}
		r.within(time.Until(deadline), "the slot lets the WAL go", func() bool {
			r.exec("CHECKPOINT")
			var n int64
			_, err := fmt.Sscan(retained(), &n)
			return err == nil && n <= 2*segment
		})
		r.clean(runs[i])
		if n := len(r.all("shop.public.t")); n != 0 {
			t.Errorf("%d events", n)
		}
	}
}

// The writes of fill: 500 MB in 20 portions of 25 MB, one every five seconds, so that what was
// written in 45 seconds is less than half of it.
const (
	portions      = 20
	portionEvery  = 5 * time.Second
	mayBeRetained = 45 * time.Second // the server moves restart_lsn every 15 s at best
)

// fill writes 500 MB of WAL in another database, and looks after each portion at what every slot
// retains: at most two segments and what was written in the last 45 seconds.
func fill(t *testing.T, rigs []*rig, segment int64) {
	t.Helper()
	r := rigs[0]
	other := newRigOn(t, r.pg)
	other.exec("CREATE TABLE junk (i int, v text)", "ALTER TABLE junk ALTER v SET STORAGE PLAIN")
	type mark struct {
		at  time.Time
		lsn int64
	}
	now := func() mark {
		return mark{time.Now(), int64(r.lsn("SELECT pg_current_wal_lsn()::text"))}
	}
	marks := []mark{now()}
	every := time.NewTicker(portionEvery)
	defer every.Stop()
	for range portions {
		other.exec("INSERT INTO junk SELECT g, repeat('x', 7500) FROM generate_series(1, 3600) g")
		marks = append(marks, now())
		last := marks[len(marks)-1]
		recent := marks[0].lsn
		for _, m := range marks {
			if last.at.Sub(m.at) > mayBeRetained {
				recent = m.lsn
			}
		}
		for _, each := range rigs {
			n := last.lsn - int64(each.lsn("SELECT restart_lsn::text FROM pg_replication_slots "+
				"WHERE slot_name = $1", each.slot()))
			if bound := 2*segment + last.lsn - recent; n > bound {
				t.Errorf("slot %s retains %d MB while 500 are written, bound %d",
					each.slot(), n>>20, bound>>20)
			}
		}
		<-every.C
	}
	if wrote := marks[len(marks)-1].lsn - marks[0].lsn; wrote>>20 < 500 {
		t.Fatalf("%d MB were written", wrote>>20)
	}
}
