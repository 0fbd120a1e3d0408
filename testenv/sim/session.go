package sim

import (
	"time"

	"github.com/tidemark-cdc/tidemark/connector/decode"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/offsets"
)

const (
	systemID   = "7000000000000000001"
	takeover   = 60 * time.Millisecond
	idleAfter  = 4 * time.Millisecond
	queueLimit = 8
	maxLooks   = 10
)

// session mirrors connector.session: the glue around the pure code that decides.
type session struct {
	p  *process
	w  *World
	id int

	ws       *walsender
	producer *producer // of events
	writer   *producer // of the record: the same in exactly-once mode
	fenced   bool      // it is initialised
	exact    *exactly

	tracker   *offsets.Tracker
	positions *offsets.Positions
	decoder   *decode.Session
	tx        *offsets.Tx

	record     offsets.Record
	recordLock bool
	begin      offsets.LSN
	lastCommit offsets.LSN
	lastChange int

	early    *offsets.Record // ReadBeforeFence's reading
	forced   offsets.LSN     // K2Removed, K3Removed: what the Tracker would refuse
	rows     int             // of this session
	held     *heldRow        // SwapTwo's
	tasks    []*task
	err      error
	over     bool
	keepStop bool
}

func newSession(p *process) *session {
	p.w.sessions++
	s := &session{p: p, w: p.w, id: p.w.sessions}
	if p.w.cfg.ExactlyOnce {
		s.exact = &exactly{s: s}
	}
	return s
}

// abandon is what the rest of the world sees of a session that is gone.
func (s *session) abandon() {
	if s.ws != nil {
		s.ws.gone = true
	}
	if s.producer != nil {
		s.producer.close(&s.w.tape)
	}
	s.p.end(s.tasks...)
}

// through mirrors connector.through: start, snapshot, run.
func (s *session) through() error {
	if s.exact == nil {
		s.producer = s.w.kafka.newProducer(s.id, false)
	}
	s.p.until(nil)
	if err := s.start(); err != nil {
		return err
	}
	if !s.record.Snapshot.Done {
		// The snapshot itself is not simulated: the tables were empty when the slot was made.
		err := s.saveRecord(func(r *offsets.Record) {
			r.Snapshot = &offsets.SnapshotState{Done: true, Point: s.begin}
			r.Intent, r.LSN = nil, s.begin
		})
		if err != nil {
			return err
		}
	}
	return s.run()
}

// run mirrors session.run.
func (s *session) run() error {
	if s.exact != nil {
		s.exact.streaming = true
	}
	s.decoder = decode.NewSession()
	fails := func(f func() error) func() {
		return func() {
			if err := f(); err != nil && s.err == nil {
				s.err = err
			}
		}
	}
	keeper := s.p.spawn("keeper", fails(s.keep))
	s.tasks = append(s.tasks, keeper, s.p.spawn("watcher", fails(s.watch)))
	s.tasks = append(s.tasks, s.p.spawn("pump", func() {
		err := s.pump()
		if s.err == nil && (err == nil || !restarts(err)) {
			s.keepStop = true
			s.p.until(func() bool { return keeper.done })
			drained := s.drain()
			if err == nil {
				err = drained
			}
		}
		if s.err == nil {
			s.err = err
		}
		s.over = true
	}))
	s.p.until(func() bool { return s.over || s.err != nil })
	s.p.end(s.tasks...)
	return s.err
}

func restarts(err error) bool {
	code := fault.CodeOf(err)
	return code == fault.PostgresUnreachable || code == fault.BrokerUnreachable
}

// drain mirrors session.drain.
func (s *session) drain() error {
	if s.exact != nil {
		return s.exact.close()
	}
	s.p.until(func() bool { return s.producer.waiting == 0 || s.producer.err != nil })
	if s.confirmed() > s.positions.Snapshot().Stored {
		return s.store()
	}
	return nil
}

// keep mirrors session.keep. How long it waits is the scheduler's.
func (s *session) keep() error {
	for {
		s.p.until(func() bool {
			return s.keepStop || s.producer.err != nil || s.tracker.Err() != nil || s.due()
		})
		switch {
		case s.keepStop:
			return nil
		case s.producer.err != nil:
			return s.producer.err
		case s.tracker.Err() != nil:
			return s.tracker.Err()
		}
		var err error
		if s.exact != nil {
			err = s.exact.tick()
		} else {
			err = s.store()
		}
		if err != nil {
			return err
		}
	}
}

func (s *session) due() bool {
	if s.exact != nil {
		return !s.exact.locked && (s.exact.idle() || !s.exact.part.Empty())
	}
	return s.mark().LSN != s.positions.Snapshot().Stored
}

// confirmed is the Tracker's position, but for the mutations that go past it.
func (s *session) confirmed() offsets.LSN { return max(s.tracker.Confirmed(), s.forced) }

func (s *session) mark() offsets.Mark {
	m := s.tracker.ConfirmedMark()
	m.LSN = max(m.LSN, s.forced)
	if s.w.is(StoreBeforeConfirm) {
		m.LSN = s.tracker.Received()
	}
	return m
}

// store mirrors session.store: the offsets topic first, then the slot.
func (s *session) store() error {
	mark := s.mark()
	if err := s.positions.Confirm(mark.LSN); err != nil {
		return err
	}
	if s.w.is(AcknowledgeEarly) {
		s.tell(mark.LSN)
	}
	s.lock(&s.recordLock)
	defer s.unlock(&s.recordLock)
	rec := s.record
	rec.LSN = mark.LSN
	if mark.XID != 0 {
		rec.TxID = mark.XID
	}
	if err := s.save(rec); err != nil {
		return err
	}
	s.record = rec
	return s.told(mark.LSN)
}

func (s *session) told(lsn offsets.LSN) error {
	if err := s.positions.Told(lsn); err != nil {
		return err
	}
	s.tell(lsn)
	return nil
}

// tell is capture's SetFlushed: a status update is on its way.
func (s *session) tell(lsn offsets.LSN) {
	if s.ws.alive {
		s.ws.status = append(s.ws.status, lsn)
	}
}

// saveRecord mirrors session.saveRecord.
func (s *session) saveRecord(change func(*offsets.Record)) error {
	if s.exact != nil {
		return s.exact.save(change)
	}
	s.lock(&s.recordLock)
	defer s.unlock(&s.recordLock)
	rec := s.record
	change(&rec)
	if err := s.save(rec); err != nil {
		return err
	}
	s.record = rec
	return nil
}

func (s *session) lock(l *bool) {
	if *l {
		s.p.until(func() bool { return !*l })
	}
	*l = true
}

func (s *session) unlock(l *bool) { *l = false }

// save mirrors offsets.Store.Save: one transaction, never tried again.
func (s *session) save(rec offsets.Record) error {
	value, err := rec.Marshal()
	if err != nil {
		return err
	}
	if !s.fenced {
		return fault.Wrap(fault.Internal, "a position cannot be stored", offsets.ErrNotFenced)
	}
	p := s.producer
	if s.exact != nil {
		s.p.until(func() bool { return p.waiting == 0 || p.err != nil })
		err = p.err
	} else {
		p = s.writer
	}
	if err == nil {
		err = s.call(p, func() error { return p.put(value) })
	}
	if err == nil {
		err = s.call(p, p.commit)
	}
	s.fenced = err == nil
	return err
}

// call sends a request to the broker and waits for its answer.
func (s *session) call(p *producer, do func() error) error {
	r := &request{p: p, do: do, chance: true}
	s.w.kafka.requests = append(s.w.kafka.requests, r)
	s.p.until(func() bool { return r.done })
	return r.err
}

// fence mirrors session.fence: the producer of events is the one that is fenced in exactly-once
// mode, a new one each time.
func (s *session) fence() error {
	p := s.w.kafka.newProducer(s.id, s.exact != nil)
	if s.exact != nil {
		if s.producer != nil {
			s.producer.close(&s.w.tape)
		}
		s.exact = &exactly{s: s}
		s.producer = p
	}
	s.writer = p
	s.fenced = false
	if s.w.is(ReadBeforeFence) {
		s.early = s.w.kafka.stored
		s.p.until(nil)
	}
	err := s.call(p, func() error {
		if s.w.is(FenceRemoved) {
			p.epoch = s.w.kafka.epoch
			return nil
		}
		p.epoch = s.w.kafka.fence()
		return nil
	})
	s.fenced = err == nil
	return err
}

// explainFence mirrors session.explainFence: is the slot still ours?
func (s *session) explainFence(err error) error {
	s.p.until(nil)
	if active := s.w.pg.slot.active; active != nil && active == s.ws {
		return fault.Wrap(fault.BrokerUnreachable, "the broker had given up our own transaction", err)
	}
	return err
}
