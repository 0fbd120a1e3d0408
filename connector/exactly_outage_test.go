package connector_test

import (
	"testing"
	"time"
)

// A broker that keeps a transaction from being committed is back-pressure: reading waits, and that
// no heartbeat comes back meanwhile says nothing of the server.
func TestExactlyOnceACommitThatTakesLongIsNoLostHeartbeat(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.exactlyOnce(1 << 20)
	r.extra["exactly.once.batch.ms"] = "250"
	r.extra["heartbeat.interval.ms"] = "100"
	r.extra["heartbeat.timeout.ms"] = "4000"
	r.exec(numbers)
	run := r.start()
	r.streaming(run)
	r.exec(insertNumbers(1, 5))
	r.caughtUp(run)
	pid := r.walsender()
	release := r.refuseCommits()
	r.exec(insertNumbers(6, 10))
	r.until("events are in a transaction", func() bool { return r.transaction() == "Ongoing" })
	r.holds(8*time.Second, "the session goes on", func() bool {
		return r.walsender() == pid && !r.logged("a heartbeat did not come back")
	})
	release()
	r.caughtUp(run)
	r.clean(run)
	sameInts(t, "ids", ids(r.once("shop.public.t"), "id"), sequence(1, 10))
}
