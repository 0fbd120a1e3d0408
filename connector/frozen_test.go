//go:build unix

package connector_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A process that stood still while another one took the connector over wakes up, with a transaction
// half sent: it ends, the other one goes on, and the stored position never falls. Exactly once the
// broker refuses it, and nothing is seen twice.
func TestF12AFrozenProcessWakesUp(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, r *rig) {
		if r.exactly() {
			r.exactlyOnce(2 << 10)
		}
		r.extra["slot.takeover.timeout.ms"] = "3000"
		r.extra["errors.max.retries"] = "1"
		r.extra["producer.override.max.request.size"] = "10000"
		r.exec(numbers)
		run := r.start()
		r.streaming(run)
		r.clean(run)
		r.exec(insertNumbers(1, 5000))
		frozen := r.frozen()
		r.exec("SELECT pg_terminate_backend(" + r.walsender() + ")")
		r.until("its session at the server is gone", func() bool { return r.walsender() == "0" })
		if r.exactly() {
			r.exactlyOnce(1 << 20)
		}
		run = r.start()
		r.streaming(run)
		r.exec(insertNumbers(5001, 5010))
		r.caughtUp(run)
		rec := r.record()
		if err := frozen.process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		select {
		case <-frozen.done:
		case <-time.After(patience):
			t.Fatalf("the process that woke up does not end\nlog:\n%s", r.log.String())
		}
		if now := r.record(); now.LSN < rec.LSN || now.Epoch != rec.Epoch {
			t.Errorf("the record was %+v and is %+v", rec, now)
		}
		r.exec(insertNumbers(5011, 5020))
		r.caughtUp(run)
		r.clean(run)
		r.complete(5020)
	})
}

// frozen is a connector's process that was stopped within a transaction that it sends.
func (r *rig) frozen() *child {
	r.t.Helper()
	sent, stores := 0, r.sends("tidemark-offsets")
	release := func() {}
	if !r.exactly() { // its transaction stays half sent
		release = r.refuseAny(func(req *kmsg.ProduceRequest) bool {
			if stores(req) {
				return false
			}
			sent += records(req)
			return sent > 1000
		})
	}
	c := r.child()
	r.until("it is in the midst of the transaction", func() bool {
		if r.exactly() {
			return r.record().LSNCommit != 0
		}
		return len(r.all("shop.public.t")) > 0
	})
	if err := c.process.Signal(syscall.SIGSTOP); err != nil {
		r.t.Fatal(err)
	}
	release()
	return c
}
