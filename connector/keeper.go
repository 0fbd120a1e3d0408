package connector

import (
	"context"
	"time"

	"github.com/tidemark-cdc/tidemark/connector/metrics"
	"github.com/tidemark-cdc/tidemark/connector/source"
	"github.com/tidemark-cdc/tidemark/envelope"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/offsets"
)

// quietAfter is how long the stream must have been silent, with nothing outstanding, for its
// position to be stored before offset.flush.interval.ms has passed.
const quietAfter = 50 * time.Millisecond

// overwrittenEvery is how often a broker without transactions is asked whether another process has
// written a position after ours.
const overwrittenEvery = 5 * time.Second

// keep moves positions: what the Tracker has confirmed goes to the offsets topic, at most once an
// interval and at once when the stream goes quiet, and from there to the slot. It is the only one
// that writes to the Store while the session streams. It returns nil when stop ends, after a write
// that was under way; ctx is the writes' own.
func (s *session) keep(stop, ctx context.Context) error {
	tick := time.NewTicker(quietAfter)
	defer tick.Stop()
	last, looked := time.Now(), time.Now()
	for {
		select {
		case <-stop.Done():
			return nil
		case <-s.producer.Failed():
			return s.producer.Err()
		case <-s.tracker.Changed():
		case <-tick.C:
		}
		if err := s.tracker.Err(); err != nil {
			return err
		}
		s.sample()
		now := time.Now()
		quiet := now.Sub(s.began)-time.Duration(s.lastData.Load()) >= quietAfter
		if s.exact != nil {
			if err := s.exact.tick(ctx, quiet); err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return err
			}
			continue
		}
		overwritten := false
		if now.Sub(looked) >= overwrittenEvery {
			overwritten, looked = s.overwritten(ctx), now
		}
		quiet = quiet && !s.tracker.Outstanding()
		if !overwritten && (s.tracker.Confirmed() == s.positions.Snapshot().Stored ||
			!quiet && now.Sub(last) < s.cfg.OffsetFlush) {
			continue
		}
		if err := s.store(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		last = time.Now()
	}
}

// overwritten reports whether another process wrote a position after ours, which only a broker
// without transactions takes from it. What cannot be asked now is asked again later.
func (s *session) overwritten(ctx context.Context) bool {
	found, err := s.offsets.Overwritten(ctx)
	switch {
	case err != nil:
		s.log.Warn("the offsets topic cannot be asked for foreign positions", "error", err)
	case found:
		s.log.Warn("another process wrote a position of this connector; ours is written again",
			"fix", "see that only one process runs connector "+s.cfg.Name)
	}
	return found
}

// store writes the confirmed position, and then tells the slot. Each step checks
// flushed <= stored <= confirmed <= received.
func (s *session) store(ctx context.Context) error {
	mark := s.sabotage.mark(s, s.tracker.ConfirmedMark())
	if err := s.positions.Confirm(mark.LSN); err != nil {
		return err
	}
	s.recordMu.Lock()
	rec := s.record
	rec.LSN, rec.TsUsec = mark.LSN, time.Now().UnixMicro()
	if mark.XID != 0 {
		rec.TxID = mark.XID
	}
	err := s.sabotage.save(ctx, s, rec)
	if err == nil {
		s.record = rec
	}
	s.recordMu.Unlock()
	if err != nil {
		return s.explainFence(err)
	}
	return s.told(mark.LSN)
}

// told tells the slot a position that the offsets topic has.
func (s *session) told(lsn offsets.LSN) error {
	if err := s.positions.Told(lsn); err != nil {
		return err
	}
	s.stream.SetFlushed(lsn)
	now := time.Now()
	s.heartbeat(func(h *offsets.Heartbeat) { h.Progress(now) })
	return nil
}

// saveRecord stores a change of the record that is not a position: an intent, a table's snapshot,
// a fingerprint. change sees the newest record.
func (s *session) saveRecord(ctx context.Context, change func(*offsets.Record)) error {
	if s.exact != nil {
		return s.exact.save(ctx, change)
	}
	s.recordMu.Lock()
	defer s.recordMu.Unlock()
	rec := s.record
	change(&rec)
	rec.TsUsec = time.Now().UnixMicro()
	if err := s.offsets.Save(ctx, rec); err != nil {
		return s.explainFence(err)
	}
	s.record = rec
	return nil
}

// explainFence tells two refusals by the broker apart: when the slot is still ours, our own
// transaction had timed out, and the session begins again; otherwise another process has taken
// the connector over, and this one stops.
func (s *session) explainFence(err error) error {
	if !fault.Has(err, fault.Fenced) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	slot, slotErr := s.src.Slot(ctx, s.cfg.SlotName)
	if slotErr == nil && slot != nil && slot.Active && uint32(slot.ActivePID) == s.pid {
		return fault.Wrap(fault.BrokerUnreachable,
			"the broker had given up our own transaction", err).With("", "", "nothing, unless it comes "+
			"again: raise producer.override.transaction.timeout.ms, or lower exactly.once.batch.ms and "+
			"exactly.once.batch.bytes")
	}
	return err
}

// sample shows the positions and the queue in the metrics.
func (s *session) sample() {
	at := s.positions.Snapshot()
	s.metrics.LSN(metrics.LSNReceived, uint64(at.Received))
	s.metrics.LSN(metrics.LSNConfirmed, uint64(s.tracker.Confirmed()))
	s.metrics.LSN(metrics.LSNStored, uint64(at.Stored))
	s.metrics.LSN(metrics.LSNFlushed, uint64(at.Flushed))
	s.metrics.LSN(metrics.LSNServer, s.serverEnd.Load())
	s.metrics.QueueBytes(s.queue.Used())
	if mark := s.tracker.ConfirmedMark(); mark.CommitMicros != s.lastAcked {
		s.lastAcked = mark.CommitMicros
		s.metrics.CommitToAck(time.Since(time.UnixMicro(mark.CommitMicros)))
	}
	s.sampleValues()
}

// sampleValues turns the encoder's totals of values that events could not carry into counters.
func (s *session) sampleValues() {
	for _, t := range s.enc.Stats() {
		name := t.Schema + "." + t.Table
		before := s.values[name]
		if before == t {
			continue
		}
		s.c.warnUnlogged(t)
		if t.Truncated > 0 && before.Truncated == 0 {
			s.log.Warn("events of a table were too large for their topic; values are left out and marked "+
				"UNAVAILABLE", "table", name, "fix", "raise max.message.bytes of the topic and "+
				"producer.override.max.request.size")
		}
		counters := s.metrics.Table(name)
		counters.Truncated(int(t.Truncated - before.Truncated))
		counters.Unavailable(int(t.Unavailable - before.Unavailable))
		counters.Reselected(int(t.Reselected - before.Reselected))
		counters.Unrepresentable(int(t.Unrepresentable - before.Unrepresentable))
		s.values[name] = t
	}
}

// warnUnlogged says once a table, for as long as the process lives, that updates leave values out of
// the log, and what would avoid it.
func (c *Connector) warnUnlogged(t envelope.TableStats) {
	name := source.QuoteTable(t.Schema, t.Table)
	if t.Unavailable+t.Reselected == 0 || c.unlogged[name] {
		return
	}
	c.unlogged[name] = true
	become := "events say UNAVAILABLE"
	if c.cfg.ReselectUnavailable {
		become = "they are read again from the table, and may be newer than their change (RESELECTED)"
	}
	c.log.Warn("unchanged TOAST values were not in the log; "+become, "table", t.Schema+"."+t.Table,
		"fix", "ALTER TABLE "+name+" REPLICA IDENTITY FULL logs them; ALTER COLUMN ... SET STORAGE "+
			"MAIN keeps those in the row that fit into it")
}
