package connector

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-cdc/tidemark/connector/decode"
	"github.com/tidemark-cdc/tidemark/envelope"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/offsets"
)

// exactly is the exactly-once mode of a session: events and the record that says how far they go
// are in one Kafka transaction, so that a read_committed consumer sees both or neither.
//
//	empty --event, or end of a source transaction--> filling --commit--> empty
//
// A Kafka transaction is committed at the end of a source transaction when it is large or old
// enough, and when the stream goes quiet; inside of a source transaction only when that one's own
// part is large or old enough, and then between two row messages (offsets.Cut). Whatever goes wrong
// ends the session: the next one fences, which aborts what is open, and reads what is there.
//
// What a Kafka transaction holds, and what the record says of it, is offsets.Part's: it confirms
// source transactions to the Tracker by the commit, so that everything behind the Tracker is as in
// the other mode: K3, positions, the slot.
//
// All methods may be called on a nil receiver, which is at-least-once mode and does nothing. mu is
// held while an event is sent and while a transaction is committed: nothing may be produced then.
type exactly struct {
	s *session

	committing atomic.Bool // nothing is read meanwhile

	mu        sync.Mutex
	streaming bool // positions move; before that the record is changed by start and snapshot
	open      bool // a Kafka transaction was begun at the broker
	part      offsets.Part
	failed    error // the first failure: nothing is sent or committed after it
}

// adopt takes over what the stored record says of the transaction that was cut.
func (e *exactly) adopt(r *offsets.Record) {
	if e == nil {
		return
	}
	e.part.Adopt(r)
}

// skip reports whether an event was sent by an earlier session. The pump asks for every event.
func (e *exactly) skip(ev *decode.Event) (bool, error) {
	if e == nil {
		return false, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
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

// sent reports whether a row message was sent by an earlier session; it changes nothing.
func (e *exactly) sent(ev *decode.Event) bool {
	if e == nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.part.Cut.Done(ev.Tx.FinalLSN, ev.Index)
}

// waiting reports whether a source transaction that was cut has not come again yet: until then no
// idle position may be taken, since the server could go past it without sending it.
func (e *exactly) waiting() bool {
	if e == nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.part.Cut.Pending()
}

// begin takes a source transaction that was just opened, and holds its position back.
func (e *exactly) begin(tx *offsets.Tx) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.part.Begin(tx, time.Now())
}

// done takes note that a row message is done, also one that gave no records, and commits when it
// is time.
func (e *exactly) done(ctx context.Context, ev *decode.Event) error {
	if e == nil || !ev.RowMessage() {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.part.Row(ev.Index, ev.LSN)
	return e.commitDue(ctx, false)
}

// finish takes the end of the open source transaction, and what is to be sent with it.
func (e *exactly) finish(
	ctx context.Context, tx *offsets.Tx, end offsets.LSN, recs []envelope.Record,
) error {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.sendLocked(ctx, recs); err != nil {
		return err
	}
	e.part.Finish(tx, end, time.Now())
	return e.commitDue(ctx, false)
}

// single sends a message outside of transactions, which holds later positions back.
func (e *exactly) single(ctx context.Context, recs []envelope.Record, at offsets.LSN) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.sendLocked(ctx, recs); err != nil {
		return err
	}
	e.part.Single(e.s.tracker.BeginSingle(1), at)
	return nil
}

// send hands on all records of one row message, in the open Kafka transaction. That they are in
// and that the message counts as done is one step: a commit comes before both or after both.
func (e *exactly) send(ctx context.Context, recs []envelope.Record, ev *decode.Event) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.sendLocked(ctx, recs); err != nil {
		return err
	}
	e.part.Row(ev.Index, ev.LSN)
	return nil
}

func (e *exactly) sendLocked(ctx context.Context, recs []envelope.Record) error {
	if len(recs) == 0 || e.failed != nil {
		return e.failed
	}
	if !e.open {
		if err := e.s.offsets.Begin(ctx); err != nil {
			return e.fail(err)
		}
		e.open = true
	}
	bytes := int64(0)
	for i := range recs {
		bytes += int64(recs[i].Size())
	}
	e.part.Content(bytes, time.Now())
	return e.fail(e.s.producer.Send(ctx, recs, nil))
}

// fail keeps the first error, which every later call returns: the one that explains the others.
func (e *exactly) fail(err error) error {
	if e.failed == nil {
		e.failed = err
	}
	return err
}

// readRow sends a row of a snapshot. Rows are committed as they come, with the record as it is.
func (e *exactly) readRow(ctx context.Context, recs []envelope.Record) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.sendLocked(ctx, recs); err != nil {
		return err
	}
	return e.commitDue(ctx, false)
}

// commitDue commits when it is time. quiet says that the stream has nothing more just now.
func (e *exactly) commitDue(ctx context.Context, quiet bool) error {
	limits := offsets.PartLimits{Bytes: e.s.cfg.ExactlyOnceBytes, Age: e.s.cfg.ExactlyOnceEvery}
	if !e.part.Due(limits, quiet, time.Now()) {
		return nil
	}
	return e.commit(ctx, nil)
}

// tick commits what has waited long enough, or has nothing behind it; the keeper calls it on its
// clock. It never waits for an event that is being sent.
func (e *exactly) tick(ctx context.Context, quiet bool) error {
	if !e.mu.TryLock() {
		return nil
	}
	defer e.mu.Unlock()
	if e.idle() {
		return e.commit(ctx, nil)
	}
	return e.commitDue(ctx, quiet)
}

// idle: nothing is in the Kafka transaction, and an idle position waits to be stored.
func (e *exactly) idle() bool {
	return e.streaming && e.part.Empty() &&
		e.s.tracker.Confirmed() > e.s.positions.Snapshot().Stored
}

// tend commits what has waited long enough until stop ends; for snapshots, which no keeper attends.
func (e *exactly) tend(stop, ctx context.Context) error {
	for sleep(stop, quietAfter) {
		if err := e.tick(ctx, false); err != nil {
			return err
		}
	}
	return nil
}

// close commits what is there, in the midst of a source transaction too: a stop repeats nothing. What
// cannot be split is abandoned, and comes again.
func (e *exactly) close(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.part.Empty() && !e.idle() || e.part.Unsplittable() {
		return nil
	}
	return e.commit(ctx, nil)
}

// save commits what is there with a change of the record.
func (e *exactly) save(ctx context.Context, change func(*offsets.Record)) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.commit(ctx, change)
}

// stream says that positions move from now on.
func (e *exactly) stream() {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.streaming = true
}

// busy reports whether a commit is under way, for which reading waits: without a broker, for long.
func (e *exactly) busy() bool { return e != nil && e.committing.Load() }

// commit ends the Kafka transaction, and then tells the slot.
func (e *exactly) commit(ctx context.Context, change func(*offsets.Record)) error {
	e.committing.Store(true)
	defer e.committing.Store(false)
	if e.failed != nil {
		return e.failed
	}
	if e.part.Unsplittable() {
		return fault.New(fault.TransactionChanged, fmt.Sprintf("the source transaction that commits "+
			"at %s cannot be split", e.part.Open())).With("it comes before the one that was split last",
			"the transaction that commits at "+e.part.Cut.Final.String(), "tidemark check names changes "+
				"of the publication")
	}
	s := e.s
	s.recordMu.Lock()
	rec := s.record
	s.recordMu.Unlock()
	if change != nil {
		change(&rec)
	}
	rec.TsUsec = time.Now().UnixMicro()
	if e.streaming {
		rec.Timeline = s.storedTimeline.Load()
		e.part.Write(&rec, s.tracker.Confirmed())
	}
	crashPoint("exactly-commit")
	if err := s.offsets.Save(ctx, rec); err != nil {
		return e.fail(err)
	}
	crashPoint("exactly-committed")
	s.recordMu.Lock()
	s.record = rec
	s.recordMu.Unlock()
	e.part.Committed()
	e.open = false
	if !e.streaming {
		return nil
	}
	if confirmed := s.tracker.Confirmed(); confirmed < rec.LSN {
		return fault.New(fault.Internal, fmt.Sprintf(
			"position %s is committed, and only %s is confirmed", rec.LSN, confirmed))
	}
	return s.told(rec.LSN)
}
