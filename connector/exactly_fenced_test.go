package connector_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// A process whose session at the server is gone, but which does not know it since it waits for the
// broker, was taken over meanwhile: the broker refuses what it sends, the slot is not its own any
// more, and it stops as fenced.
func TestExactlyOnceFencedWhenTheSlotIsAnothers(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.exactlyOnce(256 << 10)
	r.exec(numbers)
	first := r.start()
	r.streaming(first)
	r.caughtUp(first)
	cluster := r.broker.Cluster()
	var hold atomic.Bool
	var held atomic.Int64
	hold.Store(true)
	release := make(chan struct{})
	cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if hold.Load() {
			held.Add(1)
			cluster.SleepControl(func() { <-release })
		}
		return nil, nil, false
	})
	let := sync.OnceFunc(func() { close(release) })
	t.Cleanup(let)
	r.exec("INSERT INTO t SELECT n, repeat('x', 500) FROM generate_series(1, 10000) n")
	r.until("the reader waits for a commit", func() bool {
		return held.Load() > 0 && metric(t, first, "tidemark_queue_bytes") > 256<<10
	})
	hold.Store(false)
	r.exec("SELECT pg_terminate_backend(" + r.walsender() + ")")
	r.until("its session at the server is gone", func() bool { return r.walsender() == "0" })
	second := r.start()
	r.streaming(second)
	r.caughtUp(second)
	let()
	if err := first.ended(t); fault.CodeOf(err) != fault.Fenced {
		t.Errorf("the first process ended with %v\nlog:\n%s", err, r.log.String())
	}
	r.clean(second)
	sameInts(t, "ids", ids(r.once("shop.public.t"), "id"), sequence(1, 10000))
}
