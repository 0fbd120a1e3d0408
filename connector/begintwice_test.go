package connector_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/offsets"
)

// Two processes begin at once, and the slower one has looked before the faster one made anything: it
// writes no intent over the position that is stored by then, which would begin everything anew.
func TestASlowerFreshStartLeavesThePositionOfAFasterOneAlone(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, r *rig) {
		r.exec(numbers, insertNumbers(1, 3))
		r.extra["slot.takeover.timeout.ms"] = "60000"
		r.extra["errors.retry.delay.max.ms"] = "500"
		var first atomic.Bool
		looked, made := make(chan struct{}), make(chan struct{})
		r.beforeInit(func() {
			if first.CompareAndSwap(false, true) {
				close(looked)
				<-made
			}
		})
		t.Cleanup(func() {
			if t.Failed() {
				t.Log(r.log.String())
			}
		})
		r.start()
		<-looked
		faster := r.start()
		r.streaming(faster)
		r.exec(insertNumbers(4, 5))
		r.caughtUp(faster)
		stored := r.record().LSN
		close(made)
		r.until("the slower one looks again", func() bool {
			if now := r.record(); now == nil || now.LSN < stored {
				t.Fatalf("the position %s was overwritten: %+v", stored, now)
			}
			return strings.Contains(r.log.String(), "another process begins too")
		})
		r.exec(insertNumbers(6, 6))
		end := r.lsn("SELECT pg_current_wal_lsn()")
		r.until("either of them goes on", func() bool { return r.record().LSN >= end })
		read := map[string]int{}
		for _, e := range r.committed("shop.public.t") {
			if e.op() == "r" {
				read[fmt.Sprint(e.key)]++
			}
		}
		for key, n := range read {
			if n != 1 || len(read) != 3 {
				t.Errorf("row %s was read %d times, of %d rows", key, n, len(read))
			}
		}
	})
}

// A refusal while a fresh start stores its intent is over with the next fence.
func TestExactlyOnceAFreshStartThatIsFencedBeginsAnew(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.exactlyOnce(1 << 20)
	r.exec(numbers, insertNumbers(1, 3))
	var fenced atomic.Bool
	cluster := r.broker.Cluster()
	cluster.ControlKey(0, func(k kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if k.(*kmsg.ProduceRequest).TransactionID != nil && fenced.CompareAndSwap(false, true) {
			cluster.SleepControl(func() {
				s, err := offsets.OpenStore(t.Context(), r.storeOptions())
				if err != nil {
					t.Error(err)
					return
				}
				defer s.Close()
				if err := s.Fence(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		return nil, nil, false
	})
	run := r.start()
	r.streaming(run)
	r.caughtUp(run)
	r.clean(run)
	if !fenced.Load() || !r.logged("another process begins too") {
		t.Error("nobody was fenced")
	}
	sameInts(t, "ids", ids(r.once("shop.public.t"), "id"), sequence(1, 3))
}

// A broker that says an intent is committed, and does not have it: nothing is made, and the next
// attempt begins anew. A slot without a record would need a person.
func TestAnIntentThatIsNotThereMakesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.exec(numbers, insertNumbers(1, 3))
	var lied atomic.Bool
	cluster := r.broker.Cluster()
	cluster.ControlKey(int16(kmsg.EndTxn), func(k kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if lied.CompareAndSwap(false, true) {
			return k.ResponseKind(), nil, true
		}
		return nil, nil, false
	})
	run := r.start()
	r.streaming(run)
	r.caughtUp(run)
	r.clean(run)
	log := r.log.String()
	missed := strings.Index(log, "does not hold at offset")
	if made := strings.Index(log, "slot created"); missed < 0 || made < missed {
		t.Errorf("the intent was missed at %d, the slot made at %d of\n%s", missed, made, log)
	}
	sameInts(t, "ids", ids(r.once("shop.public.t"), "id"), sequence(1, 3))
}
