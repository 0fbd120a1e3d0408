package connector_test

import (
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

func TestWithoutASnapshotTheHistoryBeginsWithTheSlot(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.extra["snapshot.mode"] = "no_data"
	r.exec(numbers, insertNumbers(1, 3))
	run := r.start()
	r.streaming(run)
	r.exec(insertNumbers(4, 4))
	r.caughtUp(run)
	r.clean(run)
	run = r.start()
	r.streaming(run)
	r.exec(insertNumbers(5, 5))
	r.caughtUp(run)
	r.clean(run)
	sameInts(t, "ids", ids(r.all("shop.public.t"), "id"), []int{4, 5})
}

func TestASnapshotOnlyConnectorEndsAndLeavesNoSlot(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.extra["snapshot.mode"] = "initial_only"
	r.exec(numbers, insertNumbers(1, 3))
	for range 2 {
		if err := r.start().ended(t); err != nil {
			t.Fatal(err)
		}
		if n := r.query("SELECT count(*)::text FROM pg_replication_slots WHERE slot_name = $1",
			r.slot()); n != "0" {
			t.Error("the slot is still there")
		}
	}
	sameInts(t, "ids", ids(r.all("shop.public.t"), "id"), []int{1, 2, 3})
}

// A message outside of a transaction is none, and holds the position back until it is confirmed.
func TestACapturedMessageHoldsThePositionBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.extra["message.prefix.include.list"] = "app"
	r.extra["idle.advance.after.ms"] = "500"
	r.exec(numbers)
	run := r.start()
	r.streaming(run)
	r.exec("SELECT pg_logical_emit_message(true, 'app', 'first')")
	r.caughtUp(run)
	release := r.hold()
	at := r.lsn("SELECT pg_logical_emit_message(false, 'app', 'now')::text")
	r.exec("BEGIN; SELECT pg_logical_emit_message(true, 'app', 'gone'); ROLLBACK", insertNumbers(1, 1))
	r.holds(3*time.Second, "the slot stays behind the message", func() bool {
		return r.confirmedFlush() <= at
	})
	release()
	r.caughtUp(run)
	r.clean(run)
	if n := len(r.all("shop.message")); n != 2 {
		t.Errorf("%d messages, want 2", n)
	}
	sameInts(t, "ids", ids(r.all("shop.public.t"), "id"), []int{1})
}

func TestATruncateOfACompactedTopicStops(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.extra["topic.creation.default.cleanup.policy"] = "compact"
	r.exec(numbers, insertNumbers(1, 3))
	run := r.start()
	r.streaming(run)
	r.exec(insertNumbers(4, 4), "TRUNCATE t")
	contains(t, code(t, run.ended(t), fault.TruncateOnCompact), "shop.public.t", "skipped.operations")
	sameInts(t, "ids", ids(r.all("shop.public.t"), "id"), sequence(1, 4))
	r.extra["skipped.operations"] = "t"
	run = r.start()
	r.streaming(run)
	r.exec(insertNumbers(5, 5))
	r.caughtUp(run)
	r.clean(run)
	sameInts(t, "ids", ids(r.all("shop.public.t"), "id"), sequence(1, 5))
}

func TestATableWithoutAKeyOnACompactedTopicIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.extra["topic.creation.default.cleanup.policy"] = "compact"
	r.exec("CREATE TABLE t (a int)", "ALTER TABLE t REPLICA IDENTITY FULL", "INSERT INTO t VALUES (1)")
	contains(t, r.refused(fault.TopicCompactedNoKey), "shop.public.t")
}
