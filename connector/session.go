package connector

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/connector/capture"
	"github.com/tidemark-cdc/tidemark/connector/converge"
	"github.com/tidemark-cdc/tidemark/connector/decode"
	"github.com/tidemark-cdc/tidemark/connector/deliver"
	"github.com/tidemark-cdc/tidemark/connector/metrics"
	"github.com/tidemark-cdc/tidemark/connector/snapshot"
	"github.com/tidemark-cdc/tidemark/connector/source"
	"github.com/tidemark-cdc/tidemark/envelope"
	"github.com/tidemark-cdc/tidemark/internal/kafkadial"
	"github.com/tidemark-cdc/tidemark/internal/pgdial"
	"github.com/tidemark-cdc/tidemark/offsets"
	"github.com/tidemark-cdc/tidemark/schema"
	"github.com/tidemark-cdc/tidemark/schema/catalog"
	"github.com/tidemark-cdc/tidemark/schema/registry"
)

// session is everything between a connect and the loss of a connection. It is used once: open,
// start, snapshot, run, close.
type session struct {
	c       *Connector
	cfg     *config.Connector
	log     *slog.Logger
	metrics *metrics.Connector

	src      *source.Source
	catalog  *catalog.Catalog // on a connection of its own: start and pump
	offsets  *offsets.Store
	queue    *deliver.Queue
	producer *deliver.Producer
	exact    *exactly      // nil: at least once
	rep      *capture.Conn // until START_REPLICATION
	stream   *capture.Stream
	pid      uint32 // of our walsender
	system   capture.System
	// timelines is the history of the server's timeline, read where the stored one is another.
	timelines []offsets.TimelineSwitch
	exported  *snapshot.Reader // the slot's own snapshot, right after its creation
	begin     offsets.LSN      // where the stream begins
	// exportedAt is the slot's consistent point, which the exported snapshot is of.
	exportedAt offsets.LSN
	repair     *repair        // the repair that this session makes, or nil
	join       *converge.Join // of the table that a repair reads

	// Of the pump.
	decoder    *decode.Session
	enc        *envelope.Encoder
	tables     *tables
	reread     *reread // nil: nothing is read again
	records    []envelope.Record
	tx         *offsets.Tx // the transaction that is open in the stream
	beginSent  bool        // its begin was sent to the topic of transactions
	recounting bool        // the event was sent by an earlier session, and is only counted
	clock      clock
	lastCommit offsets.LSN
	lastChange time.Time
	commits    context.Context // of Kafka transactions: it outlives the grace of a stop

	tracker   *offsets.Tracker
	positions *offsets.Positions
	serverEnd atomic.Uint64 // what the last keepalive said
	began     time.Time     // times are kept as distances from it: the wall clock may leap
	lastData  atomic.Int64  // nanoseconds since began: the last data frame

	recordMu       sync.Mutex
	record         offsets.Record // the newest that is stored
	storedSystem   string
	storedTimeline atomic.Uint32
	timeline       atomic.Uint32 // the server's, as this session last saw it

	heartMu         sync.Mutex
	heart           *offsets.Heartbeat
	heartbeatAt     atomic.Int64 // nanoseconds since began: the last echo; 0: none
	heartbeatFailed atomic.Bool

	// Of the keeper.
	lastAcked int64 // commit time of the last mark that was observed
	values    map[string]envelope.TableStats

	findings findings
	progress progress

	dropAtEnd bool // the slot, once the stream is closed

	// Of the watcher.
	watchCatalog *catalog.Catalog
	roots        map[uint32]uint32 // of each table, as the last look found it
	closeWatch   func()
	lastOutcome  offsets.HeartbeatOutcome
	health       atomic.Pointer[source.Health]

	sabotage saboteur // nothing, but in builds with the tag broken

	closers []func() // in order of opening; run in reverse
}

func newSession(c *Connector) *session {
	return &session{
		c: c, cfg: c.cfg, log: c.log, metrics: c.metrics, values: map[string]envelope.TableStats{},
		began: time.Now(),
	}
}

func (s *session) onClose(f func()) { s.closers = append(s.closers, f) }

// close takes the session down, whatever state it is in. Everything that it opened is gone when
// it returns.
func (s *session) close() {
	for i := len(s.closers) - 1; i >= 0; i-- {
		s.closers[i]()
	}
}

// open connects to PostgreSQL, the brokers and the registry; nothing is written yet, but for a
// missing offsets topic, which is made.
func (s *session) open(ctx context.Context) error {
	var err error
	if s.src, err = source.Connect(ctx, s.cfg.Database, s.c.appName()); err != nil {
		return err
	}
	s.onClose(s.src.Close)
	if s.cfg.Primary != nil {
		s.src.SetPrimary(*s.cfg.Primary)
	}
	s.onClose(s.dropSlot)
	if err := s.src.Requirements(ctx); err != nil {
		return err
	}
	conn, err := pgdial.Connect(ctx, s.cfg.Database, s.c.appName())
	if err != nil {
		return err
	}
	s.onClose(func() {
		closing, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_ = conn.Close(closing) // only catalog reads; nothing to lose
	})
	s.catalog = catalog.New(conn).Limit(s.cfg.Database.QueryTimeout)
	w := s.c.worker
	clientOpts, err := kafkadial.Options(w.Kafka)
	if err != nil {
		return err
	}
	s.offsets, err = offsets.OpenStore(ctx, offsets.StoreOptions{
		ClientOpts: clientOpts, Topic: w.OffsetTopic, Connector: s.cfg.Name,
		Prefix: s.cfg.TopicPrefix, Partitions: w.OffsetPartitions,
		Replication: w.OffsetReplication, Logger: s.log,
	})
	if err != nil {
		return err
	}
	s.onClose(s.offsets.Close)
	s.queue = deliver.NewQueue(s.cfg.MaxQueueBytes, s.metrics.Backpressure)
	s.metrics.QueueLimit(s.cfg.MaxQueueBytes)
	if s.cfg.ExactlyOnce {
		s.exact = &exactly{s: s} // its producer is made by fence
		return nil
	}
	return s.newProducer(ctx, nil)
}

// newProducer makes the producer of events.
func (s *session) newProducer(ctx context.Context, t *deliver.Transactions) (err error) {
	// Delivery must outlive the request to stop, for what is in flight to be confirmed.
	s.producer, err = deliver.New(context.WithoutCancel(ctx), deliver.Options{
		Kafka: s.c.worker.Kafka, Producer: s.cfg.Producer, Creation: s.cfg.TopicCreation,
		Queue: s.queue, Logger: s.log, Transactions: t,
		Metrics: deliver.Metrics{Partitions: s.repartitioned},
	})
	if err != nil {
		return err
	}
	s.onClose(s.producer.Close)
	return nil
}

// repartitioned tells of a topic that has another number of partitions. The producer has logged it.
func (s *session) repartitioned(topic string, before, now int) {
	s.metrics.PartitionChange()
	s.findings.set("partitions/"+topic, fmt.Sprintf("topic %s went from %d to %d partitions: keys go "+
		"to others from here on, and a key's events from before and after are in order by "+
		"(history, commit_lsn, event_index) only", topic, before, now))
}

// fence makes the broker refuse every earlier writer of the connector's record; in exactly-once
// mode that is the producer of events too, a new one at each fence.
func (s *session) fence(ctx context.Context) error {
	if s.exact == nil {
		return s.offsets.Fence(ctx)
	}
	if s.producer != nil {
		s.producer.Close()
	}
	s.exact = &exactly{s: s} // an earlier try's failure is over, and what it held is aborted
	err := s.newProducer(ctx, &deliver.Transactions{
		ID: offsets.TransactionalID(s.cfg.Name), Timeout: s.cfg.Producer.TransactionTimeout,
		Offsets: s.c.worker.OffsetTopic,
	})
	if err != nil {
		return err
	}
	s.onClose(s.abandon)
	return s.offsets.FenceWith(ctx, s.producer)
}

// abandonTimeout bounds the abort of a Kafka transaction at the end of a session. Brokers that do
// not answer by then abort it themselves, at its timeout or at the next fence.
const abandonTimeout = 2 * time.Second

// abandon aborts the Kafka transaction that a session leaves open, whatever ended it: a stop in the
// midst of a snapshot, for instance.
func (s *session) abandon() {
	ctx, cancel := context.WithTimeout(context.Background(), abandonTimeout)
	defer cancel()
	if err := s.offsets.Abandon(ctx); err != nil {
		s.log.Warn("a transaction stays open until the next start or producer.transaction.timeout.ms; "+
			"read_committed consumers wait for it", "error", err)
	}
}

// prepare builds the encoder and the tables of the pump; history is the record's.
func (s *session) prepare(ctx context.Context, history int64, viaRoot bool) error {
	r := s.c.worker.Registry
	reg, err := registry.New(registry.Options{
		URLs: r.URLs, User: r.User, Password: r.Password.Reveal(), Bearer: r.Bearer.Reveal(),
		CAFile: r.TLSCAFile, Timeout: r.Timeout, UserAgent: "tidemark/" + s.c.version,
		Normalize: r.Normalize,
	})
	if err != nil {
		return err
	}
	s.onClose(reg.Close)
	types := schema.Options{DecimalMode: s.cfg.DecimalMode, MoneyDigits: s.cfg.MoneyDigits}
	if types.MoneyDigits < 0 {
		if types.MoneyDigits, err = s.catalog.MoneyDigits(ctx); err != nil {
			return pgdial.Wrap(err)
		}
	}
	o := EncoderOptions(s.cfg, s.system.Database, s.c.version, history, types)
	o.Now = func() int64 { return s.clock.now().UnixMicro() }
	s.enc = envelope.New(o)
	s.onClose(s.enc.Close)
	s.decoder = decode.NewSession()
	s.tables = &tables{
		cfg: s.cfg, log: s.log, metrics: s.metrics, enc: s.enc, catalog: s.catalog, registry: reg,
		schemas:  &s.c.worker.Registry,
		producer: s.producer, viaRoot: viaRoot, byOID: map[uint32]*table{},
		leafNotFull: map[uint32]bool{}, unmatched: map[string]int64{},
		written: map[string]string{}, announce: s.announceSchemaChange,
		sent: s.snapshotOf, finding: s.finding, ids: s.c.schemaIDs,
	}
	if s.cfg.ReselectUnavailable {
		s.reread = newReread(s)
		s.onClose(s.reread.close)
	}
	return nil
}

// snapshotOf reports whether rows of a table were sent by a snapshot that is done with it.
func (s *session) snapshotOf(rel *schema.Relation) bool {
	s.recordMu.Lock()
	defer s.recordMu.Unlock()
	state := s.record.Snapshot
	return state != nil && state.Tables[stateName(rel)].Status == offsets.TableDone &&
		state.Tables[stateName(rel)].Rows > 0
}

// run streams until ctx ends, which is an ordered stop, or a fault.
func (s *session) run(ctx context.Context) error {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	g, gctx := errgroup.WithContext(work)
	grace, endGrace := context.WithCancel(gctx)
	defer endGrace()
	stopTimer := context.AfterFunc(ctx, func() { time.AfterFunc(stopGrace, endGrace) })
	defer stopTimer()
	// The pump's waits end with a request to stop, and with the failure of one of the others.
	stop, endWaits := context.WithCancel(ctx)
	defer endWaits()
	defer context.AfterFunc(gctx, endWaits)()
	commits, endCommits := context.WithCancel(gctx)
	defer endCommits()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(stopGrace+drainTimeout, endCommits) })()
	s.commits = commits
	s.exact.stream()
	g.Go(func() error { return s.watch(gctx) })
	keeping, endKeep := context.WithCancel(gctx)
	saving, endSaving := context.WithCancel(gctx)
	defer endSaving()
	keeper := make(chan struct{})
	g.Go(func() error {
		defer close(keeper)
		return s.keep(keeping, saving)
	})
	g.Go(func() error {
		err := s.pump(gctx, stop, grace)
		if err == nil || gctx.Err() == nil && stopsFor(s.c.reconsider(err)) {
			// Everything that was read is confirmed and stored before the session ends, also what came
			// before a change that nobody can send. A write that is under way is waited for: one that
			// is cut leaves no fence to write the last one with.
			endKeep()
			patience := time.AfterFunc(drainTimeout, endSaving)
			<-keeper
			patience.Stop()
			drained := s.drain()
			if err == nil {
				err = drained
				cancel()
			}
		}
		return err
	})
	err := g.Wait()
	endKeep()
	s.dropAtEnd = err == nil && s.cfg.SlotDropOnStop
	return err
}

// dropSlot drops the slot after an ordered stop with slot.drop.on.stop, or after the snapshot of
// snapshot.mode initial_only. The stream is closed by then.
func (s *session) dropSlot() {
	if !s.dropAtEnd {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	if err := s.src.DropSlot(ctx, s.cfg.SlotName); err != nil {
		s.log.Error("the slot could not be dropped: it is still there and keeps WAL",
			"slot", s.cfg.SlotName, "error", err)
	}
}

// drainTimeout bounds what a stop waits for the brokers; what is not confirmed by then comes again
// after the next start.
const drainTimeout = 10 * time.Second

// drain flushes the producer, stores the last position and tells the slot.
func (s *session) drain() error {
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	if s.exact != nil {
		err := s.exact.close(ctx)
		if err != nil {
			s.log.Warn("stopping with a transaction that is not committed; its events come again, "+
				"once for a read_committed consumer", "error", err)
		}
		return err
	}
	if err := s.producer.Flush(ctx); err != nil {
		s.log.Warn("stopping with records unconfirmed; they come again", "error", err)
	}
	if s.tracker.Confirmed() > s.positions.Snapshot().Stored {
		return s.store(ctx)
	}
	return nil
}
