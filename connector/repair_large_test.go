package connector_test

import (
	"testing"
)

// More keys than a join takes at a time are converge's own test; here they come by the stream.
func TestRepairOfALargeTable(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.repairing()
	const rows = 10_000
	r.exec(numbers, insertNumbers(1, rows))
	run := r.start()
	r.streaming(run)
	r.clean(run)
	r.dropSlot()
	r.exec("DELETE FROM t WHERE id % 10 = 0")
	run = r.start()
	r.streaming(run)
	r.clean(run)
	live := 0
	for _, v := range r.folded("shop.public.t", "v", true) {
		if v != "" {
			live++
		}
	}
	if live != rows*9/10 {
		t.Errorf("%d rows are live", live)
	}
}

// In exactly-once mode a table's rows, deletes and state are in one transaction at its end.
func TestRepairInExactlyOnceMode(t *testing.T) {
	t.Parallel()
	for name, gap := range map[string]func(r *rig){
		"slot gone": func(r *rig) {
			r.dropSlot()
			r.exec(while...)
		},
		"slot ahead": func(r *rig) {
			r.exec(while...)
			r.exec("SELECT pg_replication_slot_advance('" + r.slot() + "', pg_current_wal_lsn())")
		},
		"table out": func(r *rig) {
			r.exec("ALTER PUBLICATION tidemark DROP TABLE t")
			r.exec(while...)
			r.exec("ALTER PUBLICATION tidemark ADD TABLE t", "DELETE FROM t WHERE id = 8")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "18")
			r.exactlyOnce(4096)
			r.repairing()
			r.lives()
			gap(r)
			r.repairs()
			if n := len(r.gapEvents()); n != 2 {
				t.Errorf("%d events of the gap", n)
			}
			r.repairsNothing()
		})
	}
}
