package connector_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/offsets"
)

// repairing makes the rig's connector repair gaps, and looks at the catalog often.
func (r *rig) repairing() {
	r.extra["on.slot.gap"] = "resnapshot"
	r.extra["catalog.check.interval.ms"] = "200"
}

// seen returns the events of a topic as consumers see them in the mode that is set.
func (r *rig) seen(topic string) []event {
	r.t.Helper()
	if r.extra["exactly.once.support"] == "required" {
		return r.committed(topic)
	}
	return r.all(topic)
}

// folded is what a reader of the topic ends up with who applies the rule of the pair, and folded
// naively (byPair false) what one has who takes each partition's records as they come.
func (r *rig) folded(topic, column string, byPair bool) map[string]string {
	r.t.Helper()
	type pair struct{ lsn, index int64 }
	rows, last := map[string]string{}, map[string]pair{}
	for _, e := range r.seen(topic) {
		if e.op() == "t" {
			clear(rows)
			continue
		}
		if e.value == nil {
			if !byPair {
				delete(rows, fmt.Sprint(e.key))
			}
			continue
		}
		source := row(e.value["source"])
		at := pair{inner(source["commit_lsn"]).(int64), source["event_index"].(int64)}
		key := fmt.Sprint(e.key)
		if was, known := last[key]; byPair && known &&
			(at.lsn < was.lsn || at.lsn == was.lsn && at.index <= was.index) {
			continue
		}
		last[key] = at
		if delete(rows, key); e.op() != "d" {
			rows[key] = fmt.Sprint(inner(row(e.value["after"])[column]))
		}
	}
	return rows
}

// converged fails unless the folded topic equals table t, for both kinds of readers.
func (r *rig) converged() {
	r.t.Helper()
	want := map[string]string{}
	rows, err := r.sql.Query(r.t.Context(), "SELECT id::text, coalesce(v, '<nil>') FROM t")
	if err != nil {
		r.t.Fatal(err)
	}
	for rows.Next() {
		var id, v string
		if err := rows.Scan(&id, &v); err != nil {
			r.t.Fatal(err)
		}
		want["map[id:"+id+"]"] = v
	}
	if err := rows.Err(); err != nil {
		r.t.Fatal(err)
	}
	for _, byPair := range []bool{true, false} {
		got := r.folded("shop.public.t", "v", byPair)
		if !maps.Equal(got, want) {
			r.t.Errorf("folded (by pair %t): %d rows, the table has %d: %s", byPair, len(got), len(want),
				difference(got, want))
		}
	}
}

func difference(got, want map[string]string) string {
	var out []string
	for k, v := range got {
		if w, in := want[k]; !in || w != v {
			out = append(out, fmt.Sprintf("got %s=%s want %q", k, v, w))
		}
	}
	for k, v := range want {
		if _, in := got[k]; !in {
			out = append(out, "missing "+k+"="+v)
		}
	}
	slices.Sort(out)
	return fmt.Sprintf("%.600s", strings.Join(out, "; "))
}

// gapEvents renders the topic of the connector's own events.
func (r *rig) gapEvents() (out []string) {
	r.t.Helper()
	for _, e := range r.seen("shop.tidemark-events") {
		out = append(out, fmt.Sprintf("%s %s %s %v", e.value["kind"], e.value["code"],
			e.value["action"], e.value["tables"]))
	}
	return out
}

// while is what happens to a table of numbers that nobody sees: an update, an insert, deletes, a
// key that comes back and one that changes.
var while = []string{
	"UPDATE t SET v = 'changed' WHERE id = 1", "DELETE FROM t WHERE id IN (2, 3, 10)",
	insertNumbers(11, 12), "INSERT INTO t VALUES (3, 'back')", "UPDATE t SET id = 50 WHERE id = 4",
}

// lives streams ten numbers, one of which is deleted again, and stops.
func (r *rig) lives() {
	r.t.Helper()
	r.exec(numbers, insertNumbers(1, 5))
	run := r.start()
	r.streaming(run)
	r.exec(insertNumbers(6, 10), "DELETE FROM t WHERE id = 9")
	r.caughtUp(run)
	r.clean(run)
}

// repairs starts the connector, which must repair and stream on, and stops it.
func (r *rig) repairs() {
	r.t.Helper()
	run := r.start()
	r.streaming(run)
	r.exec("INSERT INTO t VALUES (1000, 'after')", "DELETE FROM t WHERE id = 5")
	r.caughtUp(run)
	r.clean(run)
	r.converged()
	rec := r.record()
	if rec.Intent != nil || !rec.Snapshot.Done || rec.LSN == 0 {
		r.t.Errorf("after the repair: %+v", rec)
	}
}

func TestRepairOfASlotThatIsGone(t *testing.T) {
	t.Parallel()
	onVersions(t, func(t *testing.T, r *rig) {
		r.repairing()
		r.onePartition()
		r.lives()
		before := len(r.all("shop.public.t"))
		r.dropSlot()
		r.exec(while...)
		rec := r.record()
		r.repairs()
		deleted := map[string]bool{}
		for _, e := range r.all("shop.public.t")[before:] {
			line := e.String()
			if e.op() == "d" {
				deleted[line] = true
			}
		}
		for _, id := range []int{2, 4, 10} {
			line := fmt.Sprintf("d KEY {id:%d} old{id:%d}", id, id)
			if !deleted[line] {
				t.Errorf("no %q among %v", line, deleted)
			}
		}
		if len(deleted) != 4 { // and 5, which is deleted by the stream
			t.Errorf("deletes: %v", deleted)
		}
		same(t, r.gapEvents(), []string{
			"gap slot_missing resnapshot_begun [public.t]", "gap slot_missing resnapshot_done [public.t]",
		})
		if from := r.all("shop.tidemark-events")[0].value["from"]; from != int64(rec.LSN) {
			t.Errorf("the gap begins at %v, the position was %s", from, rec.LSN)
		}
		r.repairsNothing()
	})
}

// repairsNothing starts once more: a start after a repair is an ordinary one.
func (r *rig) repairsNothing() {
	r.t.Helper()
	before := len(r.seen("shop.public.t"))
	run := r.start()
	r.streaming(run)
	r.clean(run)
	if n := len(r.seen("shop.public.t")); n != before {
		r.t.Errorf("a start after the repair sent %d records", n-before)
	}
}

func TestRepairOfASlotThatWasAdvanced(t *testing.T) {
	t.Parallel()
	onVersions(t, func(t *testing.T, r *rig) {
		r.repairing()
		r.lives()
		r.exec(while...)
		r.exec("SELECT pg_replication_slot_advance('" + r.slot() + "', pg_current_wal_lsn())")
		r.exec("DELETE FROM t WHERE id = 6", "INSERT INTO t VALUES (2, 'again')")
		at := r.confirmedFlush()
		r.repairs()
		if !strings.Contains(r.log.String(), "slot_ahead_of_offset") || at == 0 {
			t.Error("the log does not say what gap it was")
		}
		same(t, r.gapEvents(), []string{
			"gap slot_ahead_of_offset resnapshot_begun [public.t]",
			"gap slot_ahead_of_offset resnapshot_done [public.t]",
		})
		r.repairsNothing()
	})
}

// The slot is lost under a running connector: by max_slot_wal_keep_size, while the broker confirms
// nothing.
func TestRepairOfASlotThatIsLostInMidRun(t *testing.T) {
	t.Parallel()
	for _, v := range []string{"15", "18"} {
		t.Run(v, func(t *testing.T) {
			t.Parallel()
			r := newRigOn(t, ownServer(t, v, map[string]string{
				"max_slot_wal_keep_size": "32MB", "min_wal_size": "32MB", "max_wal_size": "32MB",
				"wal_keep_size": "0",
			}))
			r.repairing()
			r.exec(numbers, insertNumbers(1, 10))
			run := r.start()
			r.streaming(run)
			r.caughtUp(run)
			release := r.hold()
			r.exec(while...)
			for range 4 {
				r.exec("SELECT pg_logical_emit_message(false, 'fill', repeat('x', 1000000)) "+
					"FROM generate_series(1, 40)", "SELECT pg_switch_wal()", "CHECKPOINT")
			}
			r.until("the slot is lost", func() bool {
				r.exec("CHECKPOINT")
				return strings.Contains(r.log.String(), "code=slot_lost")
			})
			release()
			r.until("the repair is done", func() bool {
				select {
				case <-run.done:
					t.Fatalf("the connector ended: %v\nlog:\n%s", run.err, r.log.String())
				default:
				}
				return strings.Contains(r.log.String(), "the gap is repaired")
			})
			r.streaming(run)
			r.exec("DELETE FROM t WHERE id = 7")
			r.caughtUp(run)
			r.clean(run)
			r.converged()
		})
	}
}

// A table without a key gets a truncate and then all rows; an empty table's keys are all deleted,
// and a table that never had a row gets none.
func TestRepairOfTablesWithoutAKeyAndWithoutRows(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.repairing()
	r.exec("CREATE TABLE bare (v int)", "ALTER TABLE bare REPLICA IDENTITY FULL",
		"INSERT INTO bare VALUES (1), (1), (2)", "CREATE TABLE never (id int PRIMARY KEY)")
	r.lives()
	r.dropSlot()
	r.exec("DELETE FROM bare WHERE v = 2", "INSERT INTO bare VALUES (3)", "TRUNCATE t")
	run := r.start()
	r.streaming(run)
	r.exec("INSERT INTO bare VALUES (4)")
	r.caughtUp(run)
	r.clean(run)
	r.converged()
	if n := len(r.folded("shop.public.t", "v", true)); n != 0 {
		t.Errorf("%d rows of the empty table", n)
	}
	var ops []string
	var last []int
	byPartition := map[int32][]event{} // the order of a partition is one, of a topic it is not
	for _, e := range r.all("shop.public.bare") {
		ops = append(ops, e.op())
		byPartition[e.partition] = append(byPartition[e.partition], e)
	}
	for _, events := range byPartition {
		var behind []int
		for _, e := range events {
			if e.op() == "t" {
				behind = nil
				continue
			}
			behind = append(behind, ids([]event{e}, "v")...)
		}
		last = append(last, behind...)
	}
	slices.Sort(last)
	sameInts(t, "bare behind the truncate", last, []int{1, 1, 3, 4})
	if n := len(r.all("shop.public.never")); n != 0 {
		t.Errorf("%d records of a table without rows", n)
	}
	// One truncate for each of the three partitions.
	if n := strings.Count(strings.Join(ops, ""), "t"); n != 3 {
		t.Errorf("ops of bare: %v", ops)
	}
}

// What was truncated in the topic is not deleted once more, and keys of another schema are deleted
// as they are.
func TestRepairKnowsTruncatesAndOtherKeys(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.repairing()
	r.onePartition()
	r.exec(numbers, insertNumbers(1, 3))
	run := r.start()
	r.streaming(run)
	r.exec("TRUNCATE t", insertNumbers(4, 6))
	r.caughtUp(run)
	r.clean(run)
	r.dropSlot()
	r.exec("DELETE FROM t WHERE id = 4")
	before := len(r.all("shop.public.t"))
	r.repairs()
	var deletes []string
	for _, e := range r.all("shop.public.t")[before:] {
		if e.op() == "d" {
			deletes = append(deletes, e.String())
		}
	}
	same(t, deletes, []string{"d KEY {id:4} old{id:4}", "d KEY {id:5} old{id:5}"})
}

// Everything as in the other tests, but without headers and tombstones: the topic says less.
func TestRepairWithoutHeadersAndTombstones(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.repairing()
	r.extra["headers.enable"], r.extra["tombstones.on.delete"] = "false", "false"
	r.lives()
	r.dropSlot()
	r.exec(while...)
	r.repairs()
}

// A slot that another session keeps from being made again is waited for, and the intent stays.
func TestARepairThatStopsInBetweenIsTakenUp(t *testing.T) {
	t.Parallel()
	r := newRigOn(t, ownServer(t, "18", nil))
	r.repairing()
	r.lives()
	r.dropSlot()
	r.exec(while...)
	r.exec("BEGIN", "UPDATE t SET v = 'open' WHERE id = 1") // creation of a slot waits for it
	rec := r.record()
	run := r.start()
	r.until("the intent is stored", func() bool { return r.record().Repairing() })
	r.clean(run)
	r.exec("COMMIT", "DELETE FROM t WHERE id = 11")
	if now := r.record(); now.LSN != rec.LSN || !now.Repairing() ||
		now.Intent.Code != fault.SlotMissing || now.Intent.From != rec.LSN {
		t.Errorf("the record was %+v and is %+v", rec, now)
	}
	// What config said of gaps before does not finish what was begun.
	r.extra["on.slot.gap"] = "fail"
	r.refused(fault.SlotMissing)
	r.extra["on.slot.gap"] = "resnapshot"
	r.repairs()
}

func TestARewoundHistoryIsNotRepaired(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.repairing()
	r.lives()
	r.change(func(rec *offsets.Record) { rec.LSN += 1 << 40 })
	r.dropSlot()
	r.refused(fault.HistoryRewound)
}
