package connector_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/testenv"
)

const tableTopic = "shop.public.t"

// useBroker puts another broker in the place of the rig's.
func (r *rig) useBroker(o testenv.FakeBrokerOptions) {
	r.t.Helper()
	broker, err := testenv.StartFakeBroker(o)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { broker.Close() })
	r.broker = broker
}

// inOrder fails unless the table's topic has an event of each id up to last: once in exactly-once
// mode, at least once otherwise, the first ones of a partition in the order of the ids, which is
// that of their commits.
func (r *rig) inOrder(last int) {
	r.t.Helper()
	var events []event
	if r.exactly() {
		events = r.once(tableTopic)
	} else {
		events = r.all(tableTopic)
	}
	seen, newest := map[int]int32{}, map[int32]int{}
	for _, id := range events {
		n := ids([]event{id}, "id")[0]
		if at, again := seen[n]; again {
			if at != id.partition {
				r.t.Errorf("id %d is on partitions %d and %d", n, at, id.partition)
			}
			continue
		}
		if n < newest[id.partition] {
			r.t.Errorf("partition %d: id %d came behind %d", id.partition, n, newest[id.partition])
		}
		seen[n], newest[id.partition] = id.partition, n
	}
	if len(seen) != last {
		r.t.Errorf("%d of %d ids came", len(seen), last)
	}
}

// fault makes the broker answer requests with an error until the test removes it.
func (r *rig) fault(err *kerr.Error, topic string, keys ...kmsg.Key) *kfake.FaultHandle {
	return r.broker.Cluster().Fault(kfake.Fault{Keys: keys, Topic: topic, Err: err, Count: -1})
}

// stored is how many records the table's topic has, of transactions that are open too.
func (r *rig) stored() (n int64) {
	for _, p := range r.broker.Cluster().PartitionInfos(tableTopic) {
		n += p.HighWatermark
	}
	return n
}

// Partitions get other leaders again and again while rows flow.
func TestF20LeadersMoveUnderLoad(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, r *rig) {
		r.useBroker(testenv.FakeBrokerOptions{Brokers: 3})
		r.exec(numbers)
		run := r.start()
		r.streaming(run)
		sender := r.walsender()
		for i := range 10 {
			wait := r.concurrently(insertNumbers(i*200+1, (i+1)*200))
			r.broker.Cluster().ShufflePartitionLeaders()
			wait()
		}
		r.caughtUp(run)
		if r.walsender() != sender {
			t.Error("the session is another")
		}
		r.clean(run)
		r.inOrder(2000)
	})
}

// Too few replicas are in sync, and the broker takes nothing: it is asked again until it does, and
// nothing is written twice.
func TestF21TooFewReplicas(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, r *rig) {
		r.exec(numbers)
		run := r.start()
		r.streaming(run)
		sender := r.walsender()
		refusing := r.fault(kerr.NotEnoughReplicas, "", kmsg.Produce)
		confirmed := position(t, run, "confirmed")
		r.exec(insertNumbers(1, 50))
		if err := refusing.Wait(t.Context(), 5); err != nil {
			t.Fatal(err)
		}
		if now := position(t, run, "confirmed"); now > confirmed+1<<16 || len(r.committed(tableTopic)) > 0 {
			t.Errorf("confirmed went from %s to %s", confirmed, now)
		}
		refusing.Remove()
		r.caughtUp(run)
		if r.walsender() != sender {
			t.Error("the session is another")
		}
		r.clean(run)
		r.inOrder(50)
		if n := len(r.committed(tableTopic)); n != 50 {
			t.Errorf("%d events of 50 rows", n)
		}
	})
}

// The broker has written a batch and its answer is lost with the connection. The client sends the
// batch again, and the broker knows it by its sequence number: the log has no row twice.
func TestF22TheAnswerToAProduceRequestIsLost(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, r *rig) {
		proxy, err := testenv.NewProxy("")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(proxy.Close)
		r.useBroker(testenv.FakeBrokerOptions{Advertise: []string{proxy.Addr}})
		proxy.SetTarget(r.broker.Addrs()[0])
		r.exec(numbers)
		run := r.start()
		r.streaming(run)
		sender := r.walsender()
		r.exec(insertNumbers(1, 10)) // the connection for such requests is there
		r.caughtUp(run)
		for i := range 3 {
			proxy.Stall(testenv.ToClient)
			before := r.stored()
			r.exec(insertNumbers(i*10+11, i*10+20))
			r.until("the broker has them", func() bool { return r.stored() > before })
			proxy.ResetAll()
			proxy.Resume()
			r.caughtUp(run)
		}
		if r.walsender() != sender {
			t.Error("the session is another")
		}
		r.clean(run)
		r.inOrder(40)
		if n := len(r.committed(tableTopic)); n != 40 {
			t.Errorf("%d events of 40 rows", n)
		}
	})
}

// A broker that takes its time for a request is waited for, and a person is told meanwhile.
func TestF23ASlowBroker(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, r *rig) {
		r.exec(numbers)
		run := r.start()
		r.streaming(run)
		sender := r.walsender()
		answer := make(chan struct{})
		goOn := sync.OnceFunc(func() { close(answer) })
		defer goOn()
		cluster := r.broker.Cluster()
		cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
			cluster.SleepControl(func() { <-answer })
			return nil, nil, false
		})
		r.exec(insertNumbers(1, 50))
		r.until("a person is told", func() bool { return !run.c.Status().Ready })
		contains(t, strings.Join(run.c.Status().Reasons, " "), "confirmed nothing for")
		goOn()
		r.until("it recovers", func() bool { return run.c.Status().Ready })
		r.caughtUp(run)
		if r.walsender() != sender {
			t.Error("the session is another")
		}
		r.clean(run)
		r.inOrder(50)
	})
}

// A sequence that the broker does not expect means that it lost what it had confirmed. At least once
// the connector stops: nothing is written behind the hole, and the next start goes on at the stored
// position. Exactly once the transaction is aborted with what is left of it, and sent again. A
// producer that the broker has forgotten is replaced in both modes.
func TestF24TheBrokerLostData(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, r *rig) {
		r.exec(numbers)
		run := r.start()
		r.streaming(run)
		done := 0
		for _, lost := range []*kerr.Error{kerr.UnknownProducerID, kerr.OutOfOrderSequenceNumber} {
			r.exec(insertNumbers(done+1, done+10))
			r.caughtUp(run)
			at := r.record().LSN
			losing := r.fault(lost, tableTopic, kmsg.Produce)
			r.exec(insertNumbers(done+11, done+15), insertNumbers(done+16, done+20))
			if r.exactly() || lost == kerr.UnknownProducerID {
				if err := losing.Wait(t.Context(), 1); err != nil {
					t.Fatal(err)
				}
				losing.Remove()
			} else {
				contains(t, code(t, run.ended(t), fault.BrokerDataLost), tableTopic, lost.Message)
				losing.Remove()
				if now := r.record().LSN; now != at {
					t.Errorf("the position went from %s to %s", at, now)
				}
				run = r.start()
				r.streaming(run)
			}
			done += 20
			r.caughtUp(run)
		}
		r.clean(run)
		r.inOrder(done)
	})
}
