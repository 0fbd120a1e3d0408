//go:build unix

package connector_test

import (
	"syscall"
	"testing"
	"time"
)

// A process that stood still while another one took the connector over wakes up, with events in an
// open transaction: the broker refuses it, the other one goes on, and nothing is seen twice.
func TestF12ExactlyOnceAFrozenProcessWakesUp(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.exactlyOnce(2 << 10)
	r.extra["slot.takeover.timeout.ms"] = "3000"
	r.extra["errors.max.retries"] = "1"
	r.exec(numbers)
	run := r.start()
	r.streaming(run)
	r.clean(run)
	r.exec(insertNumbers(1, 5000))
	frozen := r.child()
	r.until("it is in the midst of the transaction", func() bool { return r.record().LSNCommit != 0 })
	if err := frozen.process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	r.exec("SELECT pg_terminate_backend(" + r.walsender() + ")")
	r.until("its session at the server is gone", func() bool { return r.walsender() == "0" })
	r.exactlyOnce(1 << 20)
	run = r.start()
	r.streaming(run)
	r.exec(insertNumbers(5001, 5010))
	r.caughtUp(run)
	if err := frozen.process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	select {
	case <-frozen.done:
	case <-time.After(patience):
		t.Fatalf("the process that woke up does not end\nlog:\n%s", r.log.String())
	}
	r.exec(insertNumbers(5011, 5020))
	r.caughtUp(run)
	r.clean(run)
	sameInts(t, "ids", ids(r.once("shop.public.t"), "id"), sequence(1, 5020))
}
