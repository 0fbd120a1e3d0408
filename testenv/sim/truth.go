package sim

import (
	"fmt"
	"slices"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/offsets"
)

// The checks, as a violation names them.
const (
	CheckLoss      = "loss"      // a committed change is not in its topic, and nobody stopped
	CheckCovered   = "covered"   // a stored position covers a change that is not in its topic
	CheckTold      = "told"      // the slot was told more than was stored
	CheckOrder     = "order"     // first appearances of a key are not in commit order
	CheckRepeat    = "repeat"    // a session does not send a key's changes one after the other
	CheckTwice     = "twice"     // exactly once: a change is visible twice
	CheckBackwards = "backwards" // the stored position went back
	CheckHole      = "hole"      // a captured table was out of the publication, and nobody stopped
	CheckUnjust    = "unjust"    // stopped with a code that nothing justifies
	CheckStuck     = "stuck"     // with all faults over, changes or an idle slot do not move on
	CheckPanic     = "panic"     // the code panicked
)

// Violation is a check that failed.
type Violation struct {
	Check, Text string
	Step        int
}

type keyID struct{ table, key int }

// change is what the truth knows of a change that is to be in the topic.
type change struct {
	at    offsets.LSN // start of the commit's record: a position above it covers the change
	key   keyID
	index int // of its first event among its key's
}

// truth holds what must be, by what was really committed, stored and made visible.
type truth struct {
	w       *World
	began   bool // the slot was made: changes from here on count
	known   bool // a position was stored with the publication beside it
	changes map[int]change
	owed    []event // in commit order
	owedAt  []offsets.LSN
	covered int             // owed[:covered] was looked at
	seen    map[event]bool  // visible to a read_committed consumer
	events  map[keyID]int   // events of a key so far
	holes   [numTables]bool // rows were committed that the publication left out
	newest  *offsets.Record
	highest offsets.LSN // ever stored

	outsideSlot, outsidePublication bool // somebody else changed it
	code                            fault.Code
}

func newTruth(w *World) *truth {
	return &truth{
		w: w, changes: map[int]change{}, seen: map[event]bool{}, events: map[keyID]int{},
	}
}

func (t *truth) begin() { t.began = true }

// committed takes a change of a captured table that was just committed.
func (t *truth) committed(r *row, at offsets.LSN) {
	if r.decoded != sent {
		if t.known {
			t.holes[r.table] = true
		}
		return
	}
	if !t.began {
		return
	}
	k := keyID{r.table, r.key}
	t.changes[r.id] = change{at: at, key: k, index: t.events[k]}
	for part := range eventsOf(r) {
		t.owed, t.owedAt = append(t.owed, eventOf(r.id, part)), append(t.owedAt, at)
		t.events[k]++
	}
}

func eventsOf(r *row) int {
	if r.op == 'D' {
		return 2
	}
	return 1
}

// visible takes a record that a read_committed consumer can read from now on.
func (t *truth) visible(ev event) {
	if t.seen[ev] && t.w.cfg.ExactlyOnce {
		t.w.fail(CheckTwice, fmt.Sprintf("change %d is visible twice", ev/2))
	}
	t.seen[ev] = true
}

// stored takes a record that was committed to the offsets topic.
func (t *truth) stored(r *offsets.Record) {
	old := t.newest
	t.newest = r
	t.known = t.known || r.Publication != nil
	if old.HasPosition() {
		switch {
		case r.LSN < old.LSN:
			t.w.fail(CheckBackwards, fmt.Sprintf("stored %s after %s", r.LSN, old.LSN))
		case r.LSN == old.LSN && r.LSNCommit == old.LSNCommit && r.EventIndex < old.EventIndex:
			t.w.fail(CheckBackwards, fmt.Sprintf("stored row message %d of %s after %d", r.EventIndex,
				r.LSNCommit, old.EventIndex))
		}
	}
	t.highest = max(t.highest, r.LSN)
	for t.covered < len(t.owed) && t.owedAt[t.covered] < r.LSN {
		if ev := t.owed[t.covered]; !t.seen[ev] {
			t.w.fail(CheckCovered, fmt.Sprintf("position %s is stored, and change %d, committed at %s, "+
				"is not in its topic", r.LSN, ev/2, t.owedAt[t.covered]))
			return
		}
		t.covered++
	}
}

// told takes a status update that the server receives.
func (t *truth) told(at, confirmed offsets.LSN) {
	if at > t.highest && at > confirmed {
		t.w.fail(CheckTold, fmt.Sprintf("the slot was told %s, and %s is stored", at, t.highest))
	}
}

// stoppedWith takes the code that a process stopped with for a person.
func (t *truth) stoppedWith(code fault.Code, err error) {
	justified := false
	t.w.count("stops with " + string(code))
	switch code {
	case fault.SlotInUse:
		return
	case fault.Fenced:
		if t.w.started > 1 || t.w.timedOut {
			return
		}
	case fault.SlotMissing, fault.SlotLost, fault.SlotAhead:
		justified = t.outsideSlot
	case fault.PublicationChanged:
		justified = t.outsidePublication
	}
	if !justified {
		t.w.fail(CheckUnjust, err.Error())
	}
	t.code = code
}

// order checks what is in the topics, at the end.
func (t *truth) order() {
	type run struct {
		session int
		key     keyID
	}
	first, last := map[keyID]int{}, map[run]int{}
	for _, partition := range t.w.kafka.data {
		for _, l := range partition {
			if l.txn != nil && l.txn.state != 'c' {
				continue
			}
			c, known := t.changes[int(l.ev/2)]
			if !known {
				t.w.fail(CheckOrder, fmt.Sprintf("change %d was not committed", l.ev/2))
				continue
			}
			i := c.index + int(l.ev%2)
			if i > first[c.key] {
				t.w.fail(CheckOrder, fmt.Sprintf("key %v: change %d comes before one that was committed "+
					"earlier", c.key, l.ev/2))
			}
			first[c.key] = max(first[c.key], i+1)
			r := run{l.session, c.key}
			if was, repeated := last[r]; repeated && i != was+1 {
				t.w.fail(CheckRepeat, fmt.Sprintf("key %v: session %d sends its event %d after event %d",
					c.key, l.session, i, was))
			}
			last[r] = i
		}
	}
}

// missing returns an owed event that nobody can see.
func (t *truth) missing() (event, bool) {
	i := slices.IndexFunc(t.owed, func(ev event) bool { return !t.seen[ev] })
	if i < 0 {
		return 0, false
	}
	return t.owed[i], true
}

// end judges a run that has drained: nothing of what is owed is missing, or it was stopped.
func (t *truth) end(target offsets.LSN) {
	t.order()
	if t.code != "" {
		return
	}
	pub := &t.w.pg.pub
	for table, hole := range t.holes {
		if hole && (!pub.exists || pub.tables[table].oid != 0) {
			t.w.fail(CheckHole, tableNames[table]+" was out of the publication while rows were "+
				"committed")
		}
	}
	if ev, is := t.missing(); is {
		t.w.fail(CheckLoss, fmt.Sprintf("change %d is not in its topic", ev/2))
	}
	if at := t.w.pg.slot.confirmed; at < target {
		t.w.fail(CheckStuck, fmt.Sprintf("the slot stays at %s, and the server is idle at %s", at,
			target))
	}
}
