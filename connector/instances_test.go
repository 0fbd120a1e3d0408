package connector_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/offsets"
	"github.com/tidemark-cdc/tidemark/testenv"
)

func TestF11ASecondInstanceWaitsAndStopsNamingTheFirst(t *testing.T) {
	t.Parallel()
	inBothModes(t, secondStops)
}

func secondStops(t *testing.T, r *rig) {
	r.exec(numbers, insertNumbers(1, 3))
	first := r.start()
	r.streaming(first)
	pid, sender := first.c, r.walsender()
	r.extra["slot.takeover.timeout.ms"] = "1500"
	contains(t, r.refused(fault.SlotInUse), "PID "+sender, "tidemark/c1/", "127.0.0.1",
		"pg_terminate_backend("+sender+")")
	// The one that only waited has not fenced the healthy one.
	r.exec(insertNumbers(4, 4))
	r.caughtUp(first)
	if first.c != pid || r.walsender() != sender {
		t.Error("the first one's session is another")
	}
	r.clean(first)
	sameInts(t, "ids", ids(r.committed("shop.public.t"), "id"), sequence(1, 4))
}

// A wait ends with a fresh reading: what the first one stored meanwhile is not sent again.
func TestF11ASecondInstanceGoesOnWhereTheFirstStopped(t *testing.T) {
	t.Parallel()
	inBothModes(t, secondGoesOn)
}

func secondGoesOn(t *testing.T, r *rig) {
	r.exec(numbers, insertNumbers(1, 3))
	r.extra["slot.takeover.timeout.ms"] = "60000"
	first := r.start()
	r.streaming(first)
	second := r.start()
	r.until("the second one waits", func() bool {
		return strings.Contains(r.log.String(), "the slot is in use")
	})
	r.exec(insertNumbers(4, 20))
	r.caughtUp(first)
	r.clean(first)
	r.exec(insertNumbers(21, 25))
	r.streaming(second)
	r.caughtUp(second)
	r.clean(second)
	sameInts(t, "ids", ids(r.committed("shop.public.t"), "id"), sequence(1, 25))
}

// Somebody initialised the transactional id though the slot is still ours, as the broker does when
// our own transaction timed out: the session begins again and nothing is lost.
func TestF36ARefusedWriterWhoseSlotIsStillItsOwnGoesOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.exec(numbers)
	run := r.start()
	r.streaming(run)
	r.exec(insertNumbers(1, 3))
	r.caughtUp(run)
	r.change(func(*offsets.Record) {})
	r.exec(insertNumbers(4, 6))
	r.until("another session", func() bool {
		return strings.Contains(r.log.String(), "another one begins")
	})
	r.streaming(run)
	r.exec(insertNumbers(7, 9))
	r.caughtUp(run)
	r.clean(run)
	seen := map[int]bool{}
	for _, id := range ids(r.all("shop.public.t"), "id") {
		seen[id] = true
	}
	if len(seen) != 9 {
		t.Errorf("%d of 9 rows: %v", len(seen), seen)
	}
}

// A first process that was frozen (its way to the server is stalled) wakes up after a second one
// took the slot: the broker refuses its position, and it stops.
func TestF12AFrozenFirstProcessIsFenced(t *testing.T) {
	t.Parallel()
	r := newRigOn(t, ownServer(t, "18", map[string]string{"wal_sender_timeout": "1s"}))
	proxy, err := testenv.NewProxy(fmt.Sprintf("%s:%d", r.pg.Host, r.pg.Port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	r.exec(numbers)
	r.extra["database.port"] = fmt.Sprint(proxy.Port())
	r.extra["slot.takeover.timeout.ms"] = "60000"
	first := r.start()
	r.streaming(first)
	release := r.hold()
	r.exec(insertNumbers(1, 3))
	r.until("rows are read", func() bool {
		return position(t, first, "received") > position(t, first, "confirmed")
	})
	proxy.Stall(testenv.BothWays)
	delete(r.extra, "database.port")
	second := r.start()
	r.streaming(second)
	epoch := r.record().Epoch
	release()
	code(t, first.ended(t), fault.Fenced)
	r.caughtUp(second)
	r.clean(second)
	if rec := r.record(); rec.Epoch != epoch {
		t.Errorf("epoch %d, want the second one's %d", rec.Epoch, epoch)
	}
	seen := map[int]bool{}
	for _, id := range ids(r.all("shop.public.t"), "id") {
		seen[id] = true
	}
	if len(seen) != 3 {
		t.Errorf("rows %v", seen)
	}
}

// The record is changed between the first look and the second: the start begins anew with it.
func TestARecordThatChangesBetweenTheTwoLooksIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.streamedOnce()
	stored := r.record().LSN
	r.exec(insertNumbers(5, 5))
	moved := false
	r.beforeInit(func() {
		// What another process stores after our first look and before our fence.
		if !moved {
			moved = true
			r.change(func(rec *offsets.Record) { rec.LSN = r.confirmedFlush() - 8 })
		}
	})
	code(t, r.start().ended(t), fault.SlotAhead)
	if got := r.record().LSN; got >= stored {
		t.Errorf("the record was overwritten: %s", got)
	}
}
