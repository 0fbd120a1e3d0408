package connector

import (
	"bytes"
	"context"
	"strings"
	"time"

	"github.com/tidemark-cdc/tidemark/connector/capture"
	"github.com/tidemark-cdc/tidemark/connector/decode"
	"github.com/tidemark-cdc/tidemark/envelope"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/offsets"
	"github.com/tidemark-cdc/tidemark/schema"
)

// stopGrace is how long the pump goes on after it was asked to stop, to reach the end of the
// transaction that is open in the stream: a clean stop repeats nothing. A transaction that is
// larger than that is cut, and comes again whole.
const stopGrace = 5 * time.Second

// pump reads frames and handles each before it asks for the next. It returns nil when stop has
// ended and no transaction is open in the stream, or when grace has ended as well, and an error when
// ctx has ended: keeper or watcher failed.
func (s *session) pump(ctx, stop, grace context.Context) error {
	reading := stop
	s.stream.OnWait(s.beforeWait)
	for {
		stopped := stop.Err() != nil
		if ctx.Err() != nil { // asked after stop, which it ends
			return context.Cause(ctx)
		}
		if stopped && (s.tx == nil || grace.Err() != nil) {
			return nil
		}
		f, err := s.stream.Next(reading)
		if err != nil {
			if reading.Err() != nil {
				reading = grace
				continue
			}
			return err
		}
		switch f.Kind {
		case capture.Data:
			err = s.data(grace, f)
		case capture.Keepalive:
			if err = s.reread.release(grace); err == nil {
				s.keepalive(f)
			}
		case capture.Notice:
			if err = s.reread.release(grace); err == nil {
				err = s.notice(f)
			}
		}
		if err != nil {
			if ctx.Err() == nil && stop.Err() != nil && grace.Err() != nil {
				return nil
			}
			return err
		}
	}
}

// beforeWait is called whenever the pump may be about to wait.
func (s *session) beforeWait() {
	s.producer.Hurry()
	s.clock.waited()
}

// data decodes one XLogData message and handles it, or has it held behind rows that are read again.
func (s *session) data(ctx context.Context, f capture.Frame) error {
	ev, err := s.decoder.Decode(f.Start, f.Payload)
	if err != nil {
		return err
	}
	s.lastData.Store(int64(s.clock.now().Sub(s.began)))
	if ev.Kind == decode.KindBegin {
		s.stream.Age(time.Duration(f.ServerMicros-ev.Tx.CommitMicros) * time.Microsecond)
	}
	s.sabotage.decoded(ev)
	if s.reread != nil && (ev.Unchanged || !s.reread.hold.Empty()) {
		return s.reread.take(ctx, ev)
	}
	return s.event(ctx, ev, nil)
}

// event handles one event, in the order of the stream. reread are columns of its new row that were
// read again.
func (s *session) event(ctx context.Context, ev *decode.Event, reread []int) (err error) {
	if skip, err := s.exact.skip(ev); skip || err != nil {
		if err == nil {
			err = s.recount(ctx, ev)
		}
		return err
	}
	switch ev.Kind {
	case decode.KindBegin:
		s.tx = s.tracker.Begin(ev.Tx.FinalLSN)
		s.exact.begin(s.tx)
		s.transactionOpens(ev)
		s.tx.XID, s.tx.CommitMicros = ev.Tx.XID, ev.Tx.CommitMicros
	case decode.KindCommit:
		err = s.commit(ctx, ev)
	case decode.KindRelation:
		s.beforeWait() // the catalog may be asked
		err = s.tables.announced(ctx, ev.Relation)
	case decode.KindInsert, decode.KindUpdate, decode.KindDelete, decode.KindTruncate,
		decode.KindMessage:
		err = s.change(ctx, ev, reread)
	case decode.KindNone:
	}
	if err != nil {
		return err
	}
	return s.exact.done(s.commits, ev)
}

// change encodes an event and hands its records on.
func (s *session) change(ctx context.Context, ev *decode.Event, reread []int) error {
	switch ev.Kind {
	case decode.KindTruncate:
		return s.truncate(ctx, ev)
	case decode.KindMessage:
		return s.message(ctx, ev)
	default:
		return s.row(ctx, ev, reread)
	}
}

func (s *session) commit(ctx context.Context, ev *decode.Event) error {
	s.sabotage.commit(s)
	s.lastCommit = ev.EndLSN
	s.positions.Receive(ev.EndLSN)
	tx := s.tx
	end, err := s.transactionEnds(ctx, ev)
	if err != nil {
		return err
	}
	s.tx = nil
	s.tracker.Finish(tx, ev.EndLSN)
	s.metrics.Transaction()
	now := s.clock.now()
	s.lastChange = now
	s.heartbeat(func(h *offsets.Heartbeat) { h.Transaction(now) })
	return s.exact.finish(s.commits, tx, ev.EndLSN, end)
}

// row encodes an insert, update or delete and hands its records to the producer.
func (s *session) row(ctx context.Context, ev *decode.Event, reread []int) error {
	t, err := s.tables.lookup(ctx, ev.Relation)
	if err != nil {
		return err
	}
	if t.compiled == nil {
		s.tables.skipUnmatched(ev.Relation)
		return nil
	}
	if s.sabotage.row(s, ev) {
		return nil
	}
	crashPoint("row")
	s.records, err = s.enc.RowReread(s.records[:0], t.compiled, ev, reread)
	if err != nil {
		return err
	}
	if !s.recounting {
		t.count(s.records)
	}
	return s.hand(ctx, ev)
}

// truncate sends the events of all tables that one message names at once: in exactly-once mode no
// transaction may end between them.
func (s *session) truncate(ctx context.Context, ev *decode.Event) error {
	s.records = s.records[:0]
	for _, rel := range ev.Truncated {
		t, err := s.tables.lookup(ctx, rel)
		if err != nil {
			return err
		}
		if t.compiled == nil {
			s.tables.skipUnmatched(rel)
			continue
		}
		before := len(s.records)
		if s.records, err = s.enc.Truncate(s.records, t.compiled, ev); err != nil {
			return err
		}
		if !s.recounting {
			t.count(s.records[before:])
		}
	}
	return s.hand(ctx, ev)
}

// hand sends s.records, which are all of one event; it waits while the queue is full. The producer
// may keep them until the stream is about to wait.
func (s *session) hand(ctx context.Context, ev *decode.Event) error {
	if done, err := s.transactionBegins(ctx, ev); done || err != nil {
		return err
	}
	records := s.sabotage.records(s, s.records)
	if s.exact != nil {
		return s.exact.send(ctx, records, ev)
	}
	return s.producer.Hold(ctx, records, s.tx)
}

// message takes a logical message: our own heartbeat, or another application's, which is progress
// only unless message.prefix.include.list or its sibling asks for it.
func (s *session) message(ctx context.Context, ev *decode.Event) error {
	if bytes.HasPrefix(ev.Prefix, []byte("tidemark.")) {
		if string(ev.Prefix) == offsets.HeartbeatPrefix {
			s.heartbeatSeen(ev.Content)
		}
		return nil
	}
	if !s.cfg.Messages.Wants(string(ev.Prefix)) {
		return nil
	}
	s.beforeWait() // the registry may be asked
	mt, err := s.tables.messageTable(ctx)
	if err != nil {
		return err
	}
	if s.records, err = s.enc.Message(s.records[:0], mt, ev); err != nil {
		return err
	}
	if s.tx == nil && len(s.records) > 0 {
		// Outside of a transaction: it holds later positions back and is none itself.
		if s.exact != nil {
			return s.exact.single(ctx, s.records, ev.LSN)
		}
		return s.producer.Send(ctx, s.records, &single{tracker: s.tracker})
	}
	return s.hand(ctx, ev)
}

// single hands a message's records to the tracker when the producer says how many there are.
type single struct {
	tracker *offsets.Tracker
	tx      *offsets.Tx
}

func (a *single) Add(n int)      { a.tx = a.tracker.BeginSingle(n) }
func (a *single) Done(err error) { a.tx.Done(err) }

// keepalive may move the position of a stream in which nothing happens: conditions K1 to K8.
func (s *session) keepalive(f capture.Frame) {
	now := time.Now()
	moved := f.ServerEnd > s.tracker.Received()
	s.tracker.Receive(f.ServerEnd)
	s.positions.Receive(f.ServerEnd)
	s.serverEnd.Store(uint64(f.ServerEnd))
	s.sabotage.keepalive(s, f.ServerEnd)
	in := offsets.IdleInput{
		WALEnd:        f.ServerEnd,
		InStreamOrder: true,
		Open:          s.tx != nil || s.exact.waiting(),
		LastCommit:    s.lastCommit,
		SystemID:      s.system.SystemID, StoredSystemID: s.storedSystem,
		Timeline: s.timeline.Load(), StoredTimeline: s.storedTimeline.Load(),
		PostgreSQL:  s.src.PostgreSQL(),
		SinceChange: now.Sub(s.lastChange),
		After:       s.cfg.IdleAdvanceAfter,
	}
	in.From(s.tracker, s.positions)
	lsn, reason := offsets.Idle(in)
	if reason == offsets.IdleOK && s.tracker.Advance(lsn) {
		s.metrics.IdleAdvance()
	}
	s.heartbeat(func(h *offsets.Heartbeat) {
		if moved {
			h.Data(now)
		}
		if reason == offsets.IdleNothingNew {
			h.Progress(now)
		}
	})
}

// notice ends the session on a warning that says rows are being left out (18 and later skip a
// publication that did not exist at a change, with nothing but this).
func (s *session) notice(f capture.Frame) error {
	if strings.Contains(f.Warning.Message, "publication") && strings.Contains(f.Warning.Message, "skipped") {
		return fault.New(fault.PublicationChanged,
			"the server skips changes because the publication did not exist at them").
			With(f.Warning.Message, "the publication of the stored position",
				"take a new snapshot; tidemark offsets show prints stored and present side by side")
	}
	s.log.Warn("the server sent a notice", "severity", f.Warning.Severity,
		"message", f.Warning.Message)
	return nil
}

// drop gives back records that will not be sent.
func (s *session) drop() {
	for i := range s.records {
		s.records[i].Buffer.Release()
	}
}

// snapshotRow encodes one row of the snapshot and hands it on. Nobody is told of its confirmation:
// a table is done when a flush has returned.
func (s *session) snapshotRow(
	ctx context.Context, t *table, row schema.Tuple, at envelope.Snapshot,
) error {
	var err error
	if s.records, err = s.enc.Read(s.records[:0], t.compiled, row, at); err != nil {
		return err
	}
	if s.join != nil && len(s.records) > 0 {
		if err := s.join.Table(s.records[0].Key); err != nil {
			s.drop()
			return err
		}
	}
	t.counters.SnapshotRows(len(s.records))
	t.counters.Event('r')
	return s.sendRead(ctx, s.records)
}

// sendRead hands on records of a snapshot.
func (s *session) sendRead(ctx context.Context, records []envelope.Record) error {
	if s.exact != nil {
		return s.exact.readRow(ctx, records)
	}
	return s.producer.Hold(ctx, records, nil)
}
