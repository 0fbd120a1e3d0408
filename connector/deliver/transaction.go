package deliver

import (
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// Transactions make a Producer transactional: exactly-once mode. The Producer only produces; the
// offsets.Store that it is given to (FenceWith) initialises the id, and begins and ends each
// transaction, since the record that says how far events went is what ends one. A record that is
// sent outside of a transaction fails, and with it the Producer. A confirmed record is then one
// that the brokers hold for a transaction, and counts for nothing until that is committed.
type Transactions struct {
	ID      string
	Timeout time.Duration // after which the broker aborts one that is not ended
	Offsets string        // the topic whose records the Store places itself
}

func (t *Transactions) options() []kgo.Opt {
	return []kgo.Opt{kgo.TransactionalID(t.ID), kgo.TransactionTimeout(t.Timeout)}
}

// Client is what the Store ends transactions with.
func (p *Producer) Client() *kgo.Client { return p.client }

// placed leaves a record on the partition that it names.
func placed(rec *kgo.Record, _ int) int { return int(rec.Partition) }

// explainTransaction tells what only transactions fail with: the broker knows a newer epoch or has
// ended the transaction itself (fenced: the session asks the slot which of the two), or it asks for
// the transaction to be aborted and begun again.
func explainTransaction(err error) error {
	if errors.Is(err, kerr.InvalidTxnState) {
		return fault.Wrap(fault.Fenced, "the broker has ended the transaction", err)
	}
	for _, e := range []error{
		kerr.TransactionAbortable, kerr.UnknownProducerID, kerr.ConcurrentTransactions,
		kerr.OutOfOrderSequenceNumber, kgo.ErrAborting,
	} {
		if errors.Is(err, e) {
			return fault.Wrap(fault.BrokerUnreachable, "the transaction must begin again", err)
		}
	}
	return err
}
