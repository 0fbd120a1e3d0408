package offsets

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// Data is the producer of events in exactly-once mode. Its client has the transactional id of the
// connector (TransactionalID), a partitioner that leaves records of the offsets topic where they
// say, and is new at each FenceWith: one that has been initialised before would not fence.
type Data interface {
	Client() *kgo.Client
	// Flush waits until every event that was handed over is confirmed, and returns why one of them
	// never will be.
	Flush(ctx context.Context) error
}

// producerID is what the broker knows a producer by.
type producerID struct {
	id    int64
	epoch int16
}

// FenceWith is Fence with the events' own producer. From here on Begin opens a transaction, in
// which the owner produces, and Save commits it with the record in it. Nothing may be produced
// while Save runs. The owner closes the producer.
func (s *Store) FenceWith(ctx context.Context, d Data) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropProducer()
	err := s.initialise(ctx, d.Client())
	if errors.Is(err, errNoTransactions) {
		return fault.Wrap(fault.ConfigInvalid, "exactly.once.support cannot be required", err).With(
			"a broker without transactions", "one that has them", "set exactly.once.support: disabled")
	}
	if err == nil {
		s.data = d
	}
	return err
}

// Begin opens the transaction that the next Save commits; it does nothing when one is open.
func (s *Store) Begin(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.producer == nil || s.data == nil {
		return fault.Wrap(fault.Internal, "no transaction can begin", ErrNotFenced)
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.CallTimeout)
	defer cancel()
	err := s.begin(ctx)
	if err != nil {
		s.dropProducer()
	}
	return err
}

// Abandon aborts the transaction that is open and that nobody will commit, so that readers of the
// events' topics do not wait for the broker to give it up. It does nothing when none is open, and
// where the outcome of one is not known. Nothing can be stored after it without a new fence.
func (s *Store) Abandon(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.producer == nil || s.data == nil || !s.open {
		return nil
	}
	defer s.dropProducer()
	err := s.producer.AbortBufferedRecords(ctx)
	if err == nil {
		err = s.producer.EndTransaction(ctx, kgo.TryAbort)
	}
	if err != nil {
		return s.writeFault("aborting a transaction", err)
	}
	return nil
}

func (s *Store) begin(ctx context.Context) error {
	if s.open {
		return nil
	}
	// The client may want to load its producer id anew (after an upgrade of the brokers, for
	// instance). It does so with the epoch that it has, which the broker refuses to a fenced one.
	// Asked for here, it obeys the deadline.
	id, epoch, err := s.producer.ProducerID(ctx)
	if err != nil {
		return s.writeFault("storing a position", err)
	}
	if err := s.producer.BeginTransaction(); err != nil {
		return s.writeFault("beginning a transaction", err)
	}
	s.begun = producerID{id, epoch}
	s.open = s.data != nil
	return nil
}

// flushData waits for the events of the open transaction, as long as it takes: brokers that are
// away are a full queue and nothing else, until they come back and have given the transaction up.
func (s *Store) flushData(ctx context.Context) error {
	if s.data == nil {
		return nil
	}
	return s.data.Flush(ctx)
}

// sameProducer holds against a client that heals itself in the midst of a transaction: under a new
// epoch the broker has thrown away what came before it, and a commit would keep only the rest.
func (s *Store) sameProducer(ctx context.Context) error {
	id, epoch, err := s.producer.ProducerID(ctx)
	if err != nil {
		return s.writeFault("committing a position", err)
	}
	if now := (producerID{id, epoch}); now != s.begun {
		return s.brokerFault("committing a position", fmt.Errorf(
			"the transaction began as producer %d, epoch %d, and the client is now %d, epoch %d",
			s.begun.id, s.begun.epoch, id, epoch))
	}
	return nil
}

// ownIsOpen reports whether a transaction under our transactional id is open, neither committed nor
// being committed.
func (s *Store) ownIsOpen(ctx context.Context) bool {
	t, ok := s.ownTransaction(ctx)
	return ok && t.State == "Ongoing" && t.Topics.Lookup(s.opts.Topic, s.partition)
}

// ownWasLeft reports whether the partition holds a transaction of ours for open that its coordinator
// holds for ended. A broker that is killed can leave one behind (seen with Kafka 4.3); the next marker
// of the same producer, ours, ends it.
func (s *Store) ownWasLeft(ctx context.Context) bool {
	t, ok := s.ownTransaction(ctx)
	if !ok || t.State == "PrepareCommit" {
		return false
	}
	set := kadm.TopicsSet{}
	set.Add(s.opts.Topic, s.partition)
	producers, err := s.admin.DescribeProducers(ctx, set)
	if err != nil {
		return false // asked again
	}
	for _, p := range producers.SortedProducers() {
		if p.ProducerID == t.ProducerID && p.CurrentTxnStartOffset >= 0 {
			return true
		}
	}
	return false
}

// ownTransaction is what the coordinator says of our transactional id; not ok: nothing, ask again.
func (s *Store) ownTransaction(ctx context.Context) (t kadm.DescribedTransaction, ok bool) {
	id := TransactionalID(s.opts.Connector)
	described, err := s.admin.DescribeTransactions(ctx, id)
	if err != nil {
		return t, false
	}
	t = described[id]
	return t, t.Err == nil
}
