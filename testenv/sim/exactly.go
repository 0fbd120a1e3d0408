package sim

import (
	"time"

	"github.com/tidemark-cdc/tidemark/connector/decode"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/offsets"
)

// exactly mirrors connector.exactly: its lock, and the order of what it does; what a Kafka
// transaction holds and what its record says is offsets.Part's. nil is at-least-once mode.
type exactly struct {
	s         *session
	locked    bool
	streaming bool
	part      offsets.Part
	failed    error
}

// partAge is exactly.once.batch.ms.
const partAge = 9 * time.Millisecond

func (e *exactly) lock() func() {
	e.s.lock(&e.locked)
	return func() { e.locked = false }
}

func (e *exactly) skip(ev *decode.Event) (bool, error) {
	if e == nil {
		return false, nil
	}
	defer e.lock()()
	switch {
	case ev.Kind == decode.KindBegin:
		return false, e.part.Cut.Begin(ev.Tx.FinalLSN)
	case ev.Kind == decode.KindCommit:
		return false, e.part.Cut.Commit()
	case ev.Kind == decode.KindMessage && !ev.Transactional:
		return e.part.SkipSingle(ev.LSN), nil
	case !ev.RowMessage():
		return false, nil
	}
	return e.part.Skip(ev.Index, ev.LSN)
}

func (e *exactly) waiting() bool { return e != nil && e.part.Cut.Pending() }

func (e *exactly) begin(tx *offsets.Tx) {
	if e == nil {
		return
	}
	defer e.lock()()
	e.part.Begin(tx, e.s.w.time())
}

func (e *exactly) done(ev *decode.Event) error {
	if e == nil || !ev.RowMessage() {
		return nil
	}
	defer e.lock()()
	e.part.Row(ev.Index, ev.LSN)
	return e.commitDue(false)
}

func (e *exactly) finish(tx *offsets.Tx, end offsets.LSN) error {
	if e == nil {
		return nil
	}
	defer e.lock()()
	e.part.Finish(tx, end, e.s.w.time())
	return e.commitDue(false)
}

func (e *exactly) single(evs []event, at offsets.LSN) error {
	defer e.lock()()
	if err := e.sendLocked(0, evs); err != nil {
		return err
	}
	e.part.Single(e.s.tracker.BeginSingle(1), at)
	return nil
}

func (e *exactly) send(partition int, evs []event, ev *decode.Event) error {
	defer e.lock()()
	if err := e.sendLocked(partition, evs); err != nil {
		return err
	}
	e.part.Row(ev.Index, ev.LSN)
	return nil
}

func (e *exactly) sendOnly(partition int, evs []event) error {
	defer e.lock()()
	return e.sendLocked(partition, evs)
}

func (e *exactly) sendLocked(partition int, evs []event) error {
	if e.failed != nil {
		return e.failed
	}
	e.part.Content(int64(len(evs)), e.s.w.time())
	return e.fail(e.s.produce(partition, evs, func(error) {}))
}

func (e *exactly) fail(err error) error {
	if e.failed == nil {
		e.failed = err
	}
	return err
}

func (e *exactly) commitDue(quiet bool) error {
	limits := offsets.PartLimits{Bytes: e.s.w.cfg.PartBytes, Age: partAge}
	if !e.part.Due(limits, quiet, e.s.w.time()) {
		return nil
	}
	return e.commit(nil)
}

// tick mirrors exactly.tick. Whether the stream is quiet is a choice.
func (e *exactly) tick() error {
	if e.locked {
		return nil
	}
	defer e.lock()()
	if e.idle() {
		return e.commit(nil)
	}
	if quiet := e.s.w.n(2) == 0; quiet || e.s.w.n(2) == 0 {
		return e.commitDue(quiet)
	}
	return nil
}

func (e *exactly) idle() bool {
	return e.streaming && e.part.Empty() && e.s.confirmed() > e.s.positions.Snapshot().Stored
}

func (e *exactly) close() error {
	defer e.lock()()
	if e.part.Empty() && !e.idle() {
		return nil
	}
	return e.commit(nil)
}

func (e *exactly) save(change func(*offsets.Record)) error {
	defer e.lock()()
	return e.commit(change)
}

func (e *exactly) commit(change func(*offsets.Record)) error {
	s := e.s
	if e.failed != nil {
		return e.failed
	}
	if e.part.Unsplittable() {
		return fault.New(fault.TransactionChanged, "the source transaction cannot be split")
	}
	rec := s.record
	if change != nil {
		change(&rec)
	}
	if e.streaming {
		e.part.Write(&rec, s.confirmed())
	}
	if s.w.is(AcknowledgeEarly) && e.streaming {
		s.tell(rec.LSN)
	}
	if err := s.save(rec); err != nil {
		return e.fail(err)
	}
	s.record = rec
	if rec.LSNCommit != 0 {
		s.w.count("source transactions split")
	}
	e.part.Committed()
	if !e.streaming {
		return nil
	}
	if s.confirmed() < rec.LSN {
		return fault.New(fault.Internal, "committed and not confirmed")
	}
	return s.told(rec.LSN)
}
