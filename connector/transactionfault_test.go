package connector_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/testenv"
)

// The coordinator of the connector's transactions moves while rows flow, is still loading, or is
// still busy with the transaction before.
func TestF35TheTransactionCoordinatorMoves(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, r *rig) {
		r.useBroker(testenv.FakeBrokerOptions{Brokers: 3})
		r.exec(numbers)
		run := r.start()
		r.streaming(run)
		sender := r.walsender()
		for i, answer := range []*kerr.Error{
			kerr.NotCoordinator, kerr.CoordinatorNotAvailable, kerr.CoordinatorLoadInProgress,
			kerr.ConcurrentTransactions,
		} {
			wait := r.concurrently(insertNumbers(i*300+1, (i+1)*300))
			r.broker.Cluster().RehashCoordinators()
			refusing := r.broker.Cluster().Fault(kfake.Fault{
				Keys: []kmsg.Key{kmsg.EndTxn, kmsg.AddPartitionsToTxn, kmsg.InitProducerID},
				Err:  answer, Count: 3,
			})
			wait()
			r.caughtUp(run)
			if refusing.Hits() == 0 {
				t.Errorf("%v was not answered", answer)
			}
			refusing.Remove()
		}
		if r.walsender() != sender {
			t.Error("the session is another")
		}
		r.clean(run)
		r.broker.Cluster().Fault(kfake.Fault{ // at a start too
			Keys: []kmsg.Key{kmsg.InitProducerID}, Err: kerr.ConcurrentTransactions, Count: 3,
		})
		run = r.start()
		r.streaming(run)
		r.exec(insertNumbers(1201, 1210))
		r.caughtUp(run)
		r.clean(run)
		r.inOrder(1210)
	})
}

// A broker that forgets a transactional id which was not used for long enough: the connector
// initialises it again by itself.
func TestF37TheTransactionalIDExpired(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, r *rig) {
		r.exec(numbers)
		run := r.start()
		r.streaming(run)
		for i, keys := range [][]kmsg.Key{{kmsg.EndTxn}, {kmsg.Produce}} {
			r.exec(insertNumbers(i*10+1, i*10+5))
			r.caughtUp(run)
			expired := r.broker.Cluster().Fault(kfake.Fault{
				Keys: keys, Err: kerr.InvalidProducerIDMapping, Count: 1,
			})
			r.exec(insertNumbers(i*10+6, i*10+10))
			if err := expired.Wait(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			r.caughtUp(run)
		}
		r.clean(run)
		r.inOrder(20)
	})
}
