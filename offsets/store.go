package offsets

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// Bounds of the store's calls, where the options leave them open.
const (
	// defaultTransactionTimeout is how long the broker keeps a transaction of ours open that we do
	// not end: long enough for one record, short enough not to hold up a successor's read.
	defaultTransactionTimeout = 30 * time.Second
	// defaultCallTimeout bounds each call to the broker.
	defaultCallTimeout = 30 * time.Second
	// defaultReadTimeout bounds the wait for a foreign open transaction (see Load).
	defaultReadTimeout = 60 * time.Second
)

// ErrFenced is in the chain of a Save that the broker refused because the transactional id was
// initialised again. That was another process, or the broker itself after our own transaction had
// timed out: the caller tells them apart by the slot (is its active_pid still our session's?).
var ErrFenced = errors.New("the offsets writer was fenced")

// ErrNotFenced is in the chain of a Save or Reset that was called without a fence, or after one of
// them failed: the next one needs Fence, and then Load, since what is stored is not known.
var ErrNotFenced = errors.New("the offsets writer has not initialised its transactional id")

// ErrUnknownOutcome is in the chain of a Save of which it is not known whether it was committed.
// It is never tried again: the caller fences, loads, and goes on from what is there.
var ErrUnknownOutcome = errors.New("the outcome of the offsets transaction is not known")

// StoreOptions say where the store is and whose record it keeps.
type StoreOptions struct {
	// ClientOpts are brokers, TLS, authentication, client id. They must not contain a transactional
	// id, a partitioner or consumer options.
	ClientOpts []kgo.Opt
	Topic      string
	Connector  string
	Prefix     string // topic.prefix, the other half of the key
	// Partitions and Replication are for a topic that has to be made; 0 is 1 and the broker's
	// default.
	Partitions  int
	Replication int
	// TransactionTimeout, CallTimeout and ReadTimeout: 0 is the default above.
	TransactionTimeout time.Duration
	CallTimeout        time.Duration
	ReadTimeout        time.Duration
	Logger             *slog.Logger
	// MustExist: a missing topic is a fault instead of being made, for commands that only look.
	MustExist bool
}

// Store keeps the connector's record in the compacted offsets topic, and is the fence between two
// processes that believe to be the connector: each write is one Kafka transaction under the
// transactional id of the connector, and Fence makes the broker refuse every earlier writer.
//
//	OpenStore ------> open --Fence--> fenced --Save ok--> fenced
//	                   ^                 |
//	                   +--- Save failed -+   (the producer is thrown away, with what it held)
//
// In exactly-once mode the events' own producer is the fenced one (FenceWith, storedata.go), and
// Save commits the transaction that they are in.
//
// The producer is thrown away on any failure, because a client that heals itself initialises the
// transactional id again, and that would fence the process that has fenced us.
//
// Calls may come from any goroutine; they run one at a time.
type Store struct {
	opts      StoreOptions
	key       []byte
	partition int32
	log       *slog.Logger
	client    *kgo.Client // reading and administration
	admin     *kadm.Client

	mu       sync.Mutex
	producer *kgo.Client // nil: not fenced
	data     Data        // whose producer it is; nil: the store's own
	open     bool        // a transaction is open (data only)
	plain    bool        // the broker has no transactions
	written  int64       // plain: the offset after our own last record's; 0: none yet
	begun    producerID  // as what it began
	proven   bool        // a record of this producer was read back
}

// RecordKey returns the key of a connector's record, byte for byte as Kafka Connect writes it.
func RecordKey(connector, prefix string) ([]byte, error) {
	name, err := marshalPlain(connector)
	if err != nil {
		return nil, fault.Wrap(fault.ConfigInvalid, "the connector's name is not a JSON string", err)
	}
	server, err := marshalPlain(prefix)
	if err != nil {
		return nil, fault.Wrap(fault.ConfigInvalid, "topic.prefix is not a JSON string", err)
	}
	return fmt.Appendf(nil, `[%s,{"server":%s}]`, name, server), nil
}

// TransactionalID is the transactional id of a connector's offsets writer.
func TransactionalID(connector string) string { return "tidemark-offsets-" + connector }

// OpenStore connects, makes the topic when it is missing (compacted), and refuses one whose
// cleanup.policy is anything but compact: with another one the broker deletes positions.
func OpenStore(ctx context.Context, opts StoreOptions) (*Store, error) {
	setDefaults(&opts)
	key, err := RecordKey(opts.Connector, opts.Prefix)
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(append(opts.clientOpts(), kgo.DisableIdempotentWrite())...)
	if err != nil {
		return nil, fault.Wrap(fault.ConfigInvalid, "the Kafka client refuses its options", err)
	}
	s := &Store{
		opts: opts, key: key, client: client, admin: kadm.NewClient(client),
		log: opts.Logger.With("offsets_topic", opts.Topic),
	}
	if err := s.ensureTopic(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func setDefaults(o *StoreOptions) {
	if o.Partitions <= 0 {
		o.Partitions = 1
	}
	if o.Replication <= 0 {
		o.Replication = -1
	}
	if o.TransactionTimeout <= 0 {
		o.TransactionTimeout = defaultTransactionTimeout
	}
	if o.CallTimeout <= 0 {
		o.CallTimeout = defaultCallTimeout
	}
	if o.ReadTimeout <= 0 {
		o.ReadTimeout = defaultReadTimeout
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// clientOpts are the options of every client of the store: retries are bounded, and no client of
// ours creates a topic by asking for it.
func (o *StoreOptions) clientOpts() []kgo.Opt {
	opts := make([]kgo.Opt, 0, len(o.ClientOpts)+2)
	opts = append(opts, o.ClientOpts...)
	return append(opts, kgo.RetryTimeout(o.CallTimeout), kgo.ProducerLinger(0))
}

// Topic and Partition are where the connector's record is.
func (s *Store) Topic() string    { return s.opts.Topic }
func (s *Store) Partition() int32 { return s.partition }

// Close ends the clients. A transaction that is open is left to the broker's timeout, or to the
// next process's fence, whichever comes first.
func (s *Store) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropProducer()
	s.client.Close()
}

// Fence initialises the transactional id: from here on the broker refuses every earlier writer,
// and what one of them had in an open transaction is aborted. Load comes after it, never before.
func (s *Store) Fence(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropProducer()
	producer, err := kgo.NewClient(append(s.opts.clientOpts(),
		kgo.TransactionalID(TransactionalID(s.opts.Connector)),
		kgo.TransactionTimeout(s.opts.TransactionTimeout),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)...)
	if err != nil {
		return fault.Wrap(fault.ConfigInvalid, "the Kafka client refuses its options", err)
	}
	err = s.initialise(ctx, producer)
	if err == nil {
		return nil
	}
	producer.Close()
	if !errors.Is(err, errNoTransactions) {
		return err
	}
	return s.fenceless()
}

// fenceless makes a producer for a broker without transactions. Nobody is fenced by it: the slot
// alone keeps two processes apart, and a frozen one that wakes up may write a position that is too
// low. Overwritten shows that, and the owner writes its own again; the next start refuses it else.
func (s *Store) fenceless() error {
	producer, err := kgo.NewClient(append(s.opts.clientOpts(), kgo.DisableIdempotentWrite(),
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		return fault.Wrap(fault.ConfigInvalid, "the Kafka client refuses its options", err)
	}
	s.log.Warn("the broker has no transactions: positions are written without a fence")
	s.producer, s.plain = producer, true
	return nil
}

// initialise makes producer the one that is fenced, if the broker takes it.
func (s *Store) initialise(ctx context.Context, producer *kgo.Client) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.CallTimeout)
	defer cancel()
	id, epoch, err := producer.ProducerID(ctx)
	if err == nil && id < 0 {
		err = errNoTransactions
	}
	if err != nil {
		return s.brokerFault("initialising transactional id "+
			TransactionalID(s.opts.Connector), err)
	}
	s.producer = producer
	s.log.Info("offsets writer initialised", "producer_id", id, "producer_epoch", epoch)
	return nil
}

var errNoTransactions = errors.New("the broker does not know transactions")

// Save writes the record in one transaction and waits until the broker has committed it; the first
// one after Fence is read back before anybody relies on it. When it fails the store is not fenced any
// more, and what is stored is not known (see ErrFenced, ErrUnknownOutcome and ErrNotFenced); it never
// tries again by itself.
func (s *Store) Save(ctx context.Context, r Record) error {
	value, err := r.Marshal()
	if err != nil {
		return err
	}
	return s.write(ctx, value)
}

// Reset forgets the connector's record, so that the next start is a fresh one.
func (s *Store) Reset(ctx context.Context) error { return s.write(ctx, nil) }

func (s *Store) write(ctx context.Context, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.producer == nil {
		return fault.Wrap(fault.Internal, "a position cannot be stored", ErrNotFenced)
	}
	record := &kgo.Record{
		Topic: s.opts.Topic, Partition: s.partition, Key: s.key, Value: value,
	}
	err := s.flushData(ctx)
	if err == nil {
		err = s.transact(ctx, record)
	}
	if err == nil && !s.proven {
		err = s.readBack(ctx, record)
		s.proven = err == nil
	}
	if err != nil {
		s.dropProducer()
	}
	return err
}

func (s *Store) transact(ctx context.Context, record *kgo.Record) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.CallTimeout)
	defer cancel()
	if s.plain {
		err := s.produce(ctx, record)
		if err == nil {
			s.written = record.Offset + 1
		}
		return s.writeFault("storing a position", err)
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	err := s.produce(ctx, record)
	if err == nil {
		// Nothing is left to abort. It takes the lock under which the client sends a topic's first
		// records before it remembers that the topic is its own (storePartitionsUpdate, kgo 1.22);
		// until then EndTransaction finds nothing to commit, aborts and returns nil.
		err = s.producer.AbortBufferedRecords(ctx)
	}
	if err != nil {
		return s.writeFault("storing a position", err)
	}
	if err := s.sameProducer(ctx); err != nil {
		return err
	}
	err = s.producer.EndTransaction(ctx, kgo.TryCommit)
	switch {
	case err == nil:
		s.open = false
		return nil
	case isFenced(err), errors.Is(err, kerr.OperationNotAttempted):
		return s.writeFault("committing a position", err)
	}
	return s.brokerFault("committing a position", errors.Join(ErrUnknownOutcome, err))
}

// produce waits for the broker, but no longer than ctx: the client itself does not give up on an
// idempotent record that it has sent, since it cannot know. Whoever calls closes the client then.
func (s *Store) produce(ctx context.Context, record *kgo.Record) error {
	done := make(chan error, 1)
	s.producer.Produce(ctx, record, func(_ *kgo.Record, err error) { done <- err })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("no answer from the broker: %w", ctx.Err())
	}
}

// dropProducer throws the producer away without a word to the broker. The events' own is closed by
// its owner.
func (s *Store) dropProducer() {
	if s.producer != nil && s.data == nil {
		s.producer.Close()
	}
	s.producer, s.data, s.open, s.plain, s.written, s.proven = nil, nil, false, false, 0, false
}

// isFenced reports whether the broker knows a newer writer under our transactional id, or ended
// our transaction itself. InvalidTxnState and InvalidProducerIDMapping are what some versions say
// to a producer whose transaction was aborted from outside.
func isFenced(err error) bool {
	for _, e := range []error{
		kerr.ProducerFenced, kerr.InvalidProducerEpoch, kerr.InvalidTxnState,
		kerr.InvalidProducerIDMapping,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (s *Store) writeFault(doing string, err error) error {
	if err == nil {
		return nil
	}
	if isFenced(err) {
		return fault.Wrap(fault.Fenced, doing+": another process initialised transactional id "+
			TransactionalID(s.opts.Connector)+", or the transaction timed out",
			errors.Join(ErrFenced, err)).With("", "",
			"see that only one process runs connector "+s.opts.Connector)
	}
	return s.brokerFault(doing, err)
}

// brokerFault gives an error of the broker its code.
func (s *Store) brokerFault(doing string, err error) error {
	doing = fmt.Sprintf("offsets topic %s: %s", s.opts.Topic, doing)
	for _, e := range []error{
		kerr.TopicAuthorizationFailed, kerr.TransactionalIDAuthorizationFailed,
		kerr.ClusterAuthorizationFailed,
	} {
		if errors.Is(err, e) {
			return fault.Wrap(fault.BrokerForbids, doing, err).With("", "", fmt.Sprintf(
				"allow the user Read, Write, Describe, DescribeConfigs and Create on topic %s, and "+
					"Write and Describe on transactional id %s", s.opts.Topic,
				TransactionalID(s.opts.Connector)))
		}
	}
	switch {
	case errors.Is(err, kerr.SaslAuthenticationFailed),
		errors.Is(err, kerr.UnsupportedSaslMechanism), errors.Is(err, kerr.IllegalSaslState),
		fault.RefusedTLS(err), hungUp(err):
		return fault.Wrap(fault.AuthenticationFailed, doing, err).With("", "", "check "+
			"security.protocol, sasl.mechanism, sasl.jaas.config and the ssl.truststore keys")
	case errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.UnknownTopicID):
		return fault.Wrap(fault.TopicMissing, doing, err)
	case errors.Is(err, kerr.InvalidTransactionTimeout):
		return fault.Wrap(fault.ConfigInvalid, doing, err).With(
			s.opts.TransactionTimeout.String(), "at most the broker's transaction.max.timeout.ms", "")
	}
	return fault.Wrap(fault.BrokerUnreachable, doing, err)
}

// hungUp reports whether brokers that were never spoken to close each connection at once, which is
// their answer to a client that leaves TLS or the login out.
func hungUp(err error) bool {
	var first *kgo.ErrFirstReadEOF
	return errors.As(err, &first) && !kgo.IsRetryableBrokerErr(err)
}
