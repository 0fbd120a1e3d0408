package sim

import (
	"strconv"

	"github.com/tidemark-cdc/tidemark/connector/capture"
	"github.com/tidemark-cdc/tidemark/connector/decode"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/offsets"
)

// pump mirrors session.pump: each frame is handled before the next one is asked for. What was read
// from the socket of a connection that broke is handled too.
func (s *session) pump() error {
	for {
		s.p.until(func() bool { return len(s.ws.socket) > 0 || !s.ws.alive || s.p.asked })
		if s.p.asked && (s.tx == nil || s.w.n(3) == 2) {
			return nil
		}
		if len(s.ws.socket) == 0 {
			if !s.ws.alive {
				return s.ws.err
			}
			continue
		}
		f := s.ws.socket[0]
		s.ws.socket = s.ws.socket[1:]
		var err error
		switch f.Kind {
		case capture.Data:
			err = s.data(f)
		case capture.Keepalive:
			s.keepalive(f)
		case capture.Notice:
			err = fault.New(fault.PublicationChanged, f.Warning.Message)
		}
		if err != nil {
			return err
		}
	}
}

// data mirrors session.data.
func (s *session) data(f capture.Frame) error {
	ev, err := s.decoder.Decode(f.Start, f.Payload)
	if err != nil {
		return err
	}
	if skip, err := s.exact.skip(ev); skip || err != nil {
		return err
	}
	switch ev.Kind {
	case decode.KindBegin:
		s.tx = s.tracker.Begin(ev.Tx.FinalLSN)
		s.tx.XID = ev.Tx.XID
		s.exact.begin(s.tx)
	case decode.KindCommit:
		err = s.commit(ev)
	case decode.KindInsert, decode.KindUpdate:
		err = s.row(ev, ev.New[0].Text, ev.New[1].Text, 1)
	case decode.KindDelete:
		err = s.row(ev, ev.Old[0].Text, ev.Old[1].Text, 2)
	case decode.KindMessage:
		if string(ev.Prefix) == "captured" {
			err = s.message(ev)
		}
	}
	if err != nil {
		return err
	}
	return s.exact.done(ev)
}

func (s *session) commit(ev *decode.Event) error {
	if err := s.releaseHeld(); err != nil {
		return err
	}
	s.lastCommit = ev.EndLSN
	s.positions.Receive(ev.EndLSN)
	tx := s.tx
	s.tx = nil
	s.tracker.Finish(tx, ev.EndLSN)
	s.lastChange = s.w.now
	return s.exact.finish(tx, ev.EndLSN)
}

// row takes the place of the encoder: one record, and with a delete a tombstone.
func (s *session) row(ev *decode.Event, key, change []byte, records int) error {
	table := int(ev.Relation.OID - relid(0))
	if table == elsewhere {
		return nil // not captured
	}
	k, err := strconv.Atoi(string(key))
	if err != nil {
		return err
	}
	c, err := strconv.Atoi(string(change))
	if err != nil {
		return err
	}
	s.rows++
	if s.w.is(Drop) && c%7 == 0 || s.w.is(SkipOnRestart) && s.record.Epoch > 1 && s.rows <= 5 {
		return nil
	}
	evs := []event{eventOf(c, 0), eventOf(c, 1)}[:records]
	if s.w.is(Swap) {
		return s.swap(heldRow{partitionOf(table, k), evs, table*numKeys + k}, ev)
	}
	return s.hand(partitionOf(table, k), evs, ev)
}

func partitionOf(table, key int) int { return (table + key) % dataPartitions }

// hand mirrors session.hand and deliver: the Tracker is told of a record before the client has it,
// and a full queue is waited for.
func (s *session) hand(partition int, evs []event, ev *decode.Event) error {
	if s.exact != nil {
		return s.exact.send(partition, evs, ev)
	}
	tx := s.tx
	tx.Add(len(evs))
	return s.produce(partition, evs, tx.Done)
}

func (s *session) produce(partition int, evs []event, done func(error)) error {
	p := s.producer
	s.p.until(func() bool { return p.waiting < queueLimit || p.err != nil })
	if p.err != nil {
		return p.err
	}
	for _, ev := range evs {
		p.send(partition, ev, done)
	}
	return nil
}

// message mirrors session.message for a captured one outside of transactions.
func (s *session) message(ev *decode.Event) error {
	c, err := strconv.Atoi(string(ev.Content))
	if err != nil {
		return err
	}
	evs := []event{eventOf(c, 0)}
	if s.exact != nil {
		return s.exact.single(evs, ev.LSN)
	}
	return s.produce(0, evs, s.tracker.BeginSingle(1).Done)
}

// keepalive mirrors session.keepalive.
func (s *session) keepalive(f capture.Frame) {
	s.tracker.Receive(f.ServerEnd)
	s.positions.Receive(f.ServerEnd)
	in := offsets.IdleInput{
		WALEnd: f.ServerEnd, InStreamOrder: true,
		Open:       s.tx != nil || s.exact.waiting(),
		LastCommit: s.lastCommit,
		SystemID:   systemID, StoredSystemID: s.record.SystemID,
		Timeline: 1, StoredTimeline: s.record.Timeline, PostgreSQL: true,
		SinceChange: s.w.elapsed(s.lastChange), After: idleAfter,
	}
	in.From(s.tracker, s.positions)
	if s.w.is(IdleRemoved) {
		in.After = -1
	}
	switch {
	case s.w.is(K2Removed):
		in.Open = false
	case s.w.is(K3Removed):
		in.Outstanding, in.LastCommit = false, 0
	}
	lsn, reason := offsets.Idle(in)
	if reason != offsets.IdleOK {
		return
	}
	s.w.count("idle positions")
	if !s.tracker.Advance(lsn) && (s.w.is(K2Removed) || s.w.is(K3Removed)) {
		s.forced = lsn // the Tracker asks again by itself
	}
}

// heldRow is a row that waits for the next one, to go behind it.
type heldRow struct {
	partition int
	evs       []event
	key       int
}

func (s *session) swap(r heldRow, ev *decode.Event) error {
	was := s.held
	s.held = nil
	switch {
	case was == nil:
		s.held = &r
		return nil
	case was.key == r.key:
		was, r = &r, *was
	}
	if err := s.hand(was.partition, was.evs, ev); err != nil {
		return err
	}
	return s.hand(r.partition, r.evs, ev)
}

func (s *session) releaseHeld() error {
	r := s.held
	s.held = nil
	if r == nil {
		return nil
	}
	if s.exact != nil {
		return s.exact.sendOnly(r.partition, r.evs)
	}
	return s.hand(r.partition, r.evs, nil)
}
