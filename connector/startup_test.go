package connector_test

import (
	"fmt"
	"testing"

	"github.com/tidemark-cdc/tidemark/offsets"
)

const numbers = "CREATE TABLE t (id int PRIMARY KEY, v text)"

func insertNumbers(from, to int) string {
	return fmt.Sprintf("INSERT INTO t SELECT g, 'v' || g FROM generate_series(%d, %d) g", from, to)
}

func TestAFreshStartStoresItsIntentAndThenItsPosition(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.exec(numbers, insertNumbers(1, 10))
	run := r.start()
	r.streaming(run)
	rec := r.record()
	if rec.Intent != nil || rec.LSN == 0 || !rec.Snapshot.Done || rec.Slot != r.slot() {
		t.Errorf("after the snapshot: %+v", rec)
	}
	if s := rec.Snapshot.Tables["public.t"]; s.Status != offsets.TableDone || s.Rows != 10 {
		t.Errorf("table state %+v", s)
	}
	if rec.SystemID != r.query("SELECT system_identifier::text FROM pg_control_system()") {
		t.Errorf("system id %q", rec.SystemID)
	}
	if rec.Publication == nil || len(rec.Publication.Tables) != 1 {
		t.Errorf("fingerprint %+v", rec.Publication)
	}
	r.exec(insertNumbers(11, 12))
	r.caughtUp(run)
	r.clean(run)
	sameInts(t, "ids", ids(r.all("shop.public.t"), "id"), sequence(1, 12))
}

func TestASlotThatCannotBeMadeLeavesTheIntentAndNoSlot(t *testing.T) {
	t.Parallel()
	r := newRigOn(t, ownServer(t, "18", nil))
	r.exec(numbers, insertNumbers(1, 3))
	r.exec("BEGIN", insertNumbers(4, 4)) // creation of a slot waits for it
	run := r.start()
	r.until("the slot is being made", func() bool {
		return r.query("SELECT count(*)::text FROM pg_publication") == "1"
	})
	rec := r.record()
	if rec == nil || rec.Intent == nil || rec.Intent.Kind != offsets.IntentCreate ||
		rec.Intent.Slot != r.slot() || rec.HasPosition() {
		t.Errorf("record while the slot is being made: %+v", rec)
	}
	r.clean(run)
	r.exec("COMMIT")
	r.until("no slot is left", func() bool {
		return r.query("SELECT count(*)::text FROM pg_replication_slots") == "0"
	})
	run = r.start()
	r.streaming(run)
	r.clean(run)
	sameInts(t, "ids", ids(r.all("shop.public.t"), "id"), sequence(1, 4))
}

// A start that made its slot and got no further goes on from the slot's point with a snapshot that
// is taken now: the rows come as r, and what happened since the slot's point comes again.
func TestF01AHalfMadeStartGoesOnFromTheSlotsPoint(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.onePartition()
	r.exec(numbers, insertNumbers(1, 2), "CREATE PUBLICATION tidemark FOR TABLE t")
	system := r.query("SELECT system_identifier::text FROM pg_control_system()")
	r.change(func(rec *offsets.Record) {
		rec.SystemID, rec.Slot = system, r.slot()
		rec.Intent = &offsets.Intent{Kind: offsets.IntentCreate, Slot: r.slot(), SystemID: system}
	})
	r.exec("SELECT pg_create_logical_replication_slot('" + r.slot() + "', 'pgoutput')")
	r.exec(insertNumbers(3, 3), "DELETE FROM t WHERE id = 1")
	run := r.start()
	r.streaming(run)
	r.caughtUp(run)
	r.clean(run)
	events := r.all("shop.public.t")
	same(t, lines(events), []string{
		"r NOT_APPLICABLE {id:2} {id:2 v:v2}", "r NOT_APPLICABLE {id:3} {id:3 v:v3}",
		"c NOT_APPLICABLE {id:3} {id:3 v:v3}", "d KEY {id:1} old{id:1}", "x {id:1}",
	})
	// The r row of 3 is later than its c: a reader that drops what is not greater ends with the row.
	read, created := row(events[1].value["source"]), row(events[2].value["source"])
	if inner(read["commit_lsn"]).(int64) <= inner(created["commit_lsn"]).(int64) {
		t.Errorf("r has %v, the c before it %v", read["commit_lsn"], created["commit_lsn"])
	}
}

func TestF02ASnapshotThatWasInterruptedBeginsAgain(t *testing.T) {
	t.Parallel()
	r := newRigOn(t, ownServer(t, "18", nil))
	r.exec(numbers, insertNumbers(1, 100), "CREATE TABLE z (id int PRIMARY KEY)",
		"INSERT INTO z VALUES (1)")
	release := r.hold()
	run := r.start()
	r.snapshotBegun(run)
	r.exec("BEGIN", "LOCK TABLE z")
	release()
	r.until("t is read", func() bool {
		return r.record().Snapshot.Tables["public.t"].Status == offsets.TableDone
	})
	r.clean(run)
	if rec := r.record(); rec.HasPosition() {
		t.Errorf("a position is stored amid the snapshot: %+v", rec)
	}
	r.exec("COMMIT", "DELETE FROM t WHERE id = 1", insertNumbers(101, 101))
	run = r.start()
	r.streaming(run)
	r.caughtUp(run)
	r.clean(run)
	alive := map[string]bool{}
	for _, e := range r.all("shop.public.t") {
		alive[fmt.Sprint(e.key)] = e.value != nil && e.op() != "d"
	}
	if alive["map[id:1]"] || !alive["map[id:2]"] || !alive["map[id:101]"] || len(alive) != 101 {
		t.Errorf("%d keys; 1 %v, 2 %v, 101 %v", len(alive), alive["map[id:1]"], alive["map[id:2]"],
			alive["map[id:101]"])
	}
	sameInts(t, "z", ids(r.all("shop.public.z"), "id"), []int{1})
}

func TestF10ACleanStopRepeatsNothing(t *testing.T) {
	t.Parallel()
	onVersions(t, func(t *testing.T, r *rig) {
		r.exec(numbers, insertNumbers(1, 5))
		for i := range 5 {
			run := r.start()
			r.streaming(run)
			r.exec(insertNumbers(6+10*i, 15+10*i))
			if i%2 == 0 { // stopped idle, and right behind a commit
				r.caughtUp(run)
			}
			r.clean(run)
		}
		run := r.start()
		r.streaming(run)
		r.caughtUp(run)
		r.clean(run)
		sameInts(t, "ids", ids(r.all("shop.public.t"), "id"), sequence(1, 55))
	})
}

// SIGTERM under load: transactions of 5 000 rows one after the other, stopped in the midst.
func TestF10AStopUnderLoadRepeatsNothing(t *testing.T) {
	t.Parallel()
	inBothModes(t, stoppedUnderLoad)
}

func stoppedUnderLoad(t *testing.T, r *rig) {
	r.extra["exactly.once.batch.bytes"] = "262144" // a load of it is not a load of small transactions
	r.exec(numbers)
	const transactions, rows = 12, 5000
	run := r.start()
	r.streaming(run)
	var wait func()
	load := "SET synchronous_commit = off;"
	for i := range transactions {
		load += fmt.Sprintf("BEGIN; %s; COMMIT;", insertNumbers(i*rows+1, (i+1)*rows))
	}
	wait = r.concurrently(load)
	for round := range 3 {
		r.until("a transaction is under way", func() bool {
			return position(t, run, "received") > position(t, run, "confirmed")
		})
		r.clean(run)
		if round == 2 {
			wait()
		}
		run = r.start()
		r.streaming(run)
	}
	r.caughtUp(run)
	r.clean(run)
	sameInts(t, "ids", ids(r.committed("shop.public.t"), "id"), sequence(1, transactions*rows))
}
