package connector

import (
	"context"
	"time"

	"github.com/tidemark-cdc/tidemark/connector/metrics"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/offsets"
)

// watchTick is how often the watcher looks at its clocks.
const watchTick = 250 * time.Millisecond

// watch emits heartbeats, judges them, and looks at the catalog, on the ordinary connection. A
// connection that fails is made again; only findings that mean loss, and a stream that is silent
// though a heartbeat was sent through it, end the session. It returns nil when ctx ends.
func (s *session) watch(ctx context.Context) error {
	defer s.dropWatchCatalog()
	tick := time.NewTicker(watchTick)
	defer tick.Stop()
	nextCheck := time.Now()
	nextPing := time.Now().Add(s.pingEvery())
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now := time.Now()
		if err := s.judgeHeartbeat(now); err != nil {
			return err
		}
		if now.After(nextPing) {
			// A quiet server sends a keepalive only at half of its timeout, and none without one.
			s.stream.RequestStatus()
			nextPing = now.Add(s.pingEvery())
		}
		if s.heartbeatDue(now) {
			s.emitHeartbeat(ctx)
		}
		if s.cfg.CatalogCheck > 0 && now.After(nextCheck) {
			if err := s.catalogCheck(ctx); err != nil {
				return err
			}
			nextCheck = time.Now().Add(s.cfg.CatalogCheck)
		}
	}
}

// pingEvery is how often the server is asked for a keepalive on a quiet stream.
func (s *session) pingEvery() time.Duration {
	if s.cfg.IdleAdvanceAfter > 0 {
		return max(s.cfg.IdleAdvanceAfter, time.Second)
	}
	return 10 * time.Second
}

// heartbeat runs f on the heartbeat's state, which pump, keeper and watcher share.
func (s *session) heartbeat(f func(*offsets.Heartbeat)) {
	s.heartMu.Lock()
	defer s.heartMu.Unlock()
	f(s.heart)
}

// heartbeatClock runs f with the heartbeat's clock brought up to now: it stands still while reading is
// paused or a transaction is open.
func (s *session) heartbeatClock(now time.Time, f func(*offsets.Heartbeat)) {
	held := s.queue.Blocked() || s.tracker.Open() || s.exact.busy()
	s.heartbeat(func(h *offsets.Heartbeat) {
		h.Hold(held, now)
		f(h)
	})
}

func (s *session) heartbeatDue(now time.Time) (due bool) {
	s.heartbeatClock(now, func(h *offsets.Heartbeat) { due = h.Due(now) })
	return due
}

// emitHeartbeat sends one message through the server. A failure is a warning: idle advance still
// works, and the next interval tries again.
func (s *session) emitHeartbeat(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var content offsets.HeartbeatContent
	s.heartbeat(func(h *offsets.Heartbeat) { content = h.Start(time.Now()) })
	lsn, err := s.src.EmitHeartbeat(ctx, offsets.HeartbeatPrefix, content.Marshal())
	if err != nil {
		s.heartbeat(func(h *offsets.Heartbeat) { h.Failed(content.ID) })
		s.metrics.Heartbeat(metrics.HeartbeatEmitFailed)
		if s.heartbeatFailed.CompareAndSwap(false, true) {
			fix := "GRANT EXECUTE ON FUNCTION pg_logical_emit_message(boolean, text, text) TO " +
				"the connector's role; on 17 and later the one with four arguments"
			if fault.Has(err, fault.ConfigInvalid) { // of a standby
				fix = "set primary.hostname"
			}
			s.log.Warn("a heartbeat could not be emitted; idle advance goes on without", "error", err,
				"fix", fix)
		}
		return
	}
	s.heartbeatFailed.Store(false)
	s.metrics.Heartbeat(metrics.HeartbeatSent)
	s.heartbeat(func(h *offsets.Heartbeat) {
		if h.Emitted(content.ID, lsn, time.Now()) {
			s.heartbeatOK()
		}
	})
}

func (s *session) heartbeatSeen(content []byte) {
	c, err := offsets.ParseHeartbeat(content)
	if err != nil {
		return // another program's use of our prefix: progress like any other message
	}
	s.heartbeat(func(h *offsets.Heartbeat) {
		if h.Seen(c) {
			s.heartbeatOK()
		}
	})
}

func (s *session) heartbeatOK() {
	now := time.Now()
	s.metrics.Heartbeat(metrics.HeartbeatOK)
	s.metrics.HeartbeatEchoed(now)
	s.heartbeatAt.Store(int64(now.Sub(s.began)))
	s.finding("heartbeat", "")
}

// judgeHeartbeat acts on what became of the heartbeat that is outstanding.
func (s *session) judgeHeartbeat(now time.Time) error {
	var outcome offsets.HeartbeatOutcome
	s.heartbeatClock(now, func(h *offsets.Heartbeat) {
		outcome = h.Outcome(s.tracker.Received(), now)
	})
	changed := outcome != s.lastOutcome
	s.lastOutcome = outcome
	switch outcome {
	case offsets.HeartbeatLost:
		s.metrics.Heartbeat(metrics.HeartbeatLost)
		return fault.New(fault.PostgresUnreachable,
			"a heartbeat did not come back and the stream is silent").
			With("nothing for "+s.cfg.HeartbeatTimeout.String(), "its echo", "")
	case offsets.HeartbeatPassed:
		s.metrics.Heartbeat(metrics.HeartbeatPassed)
		s.finding("heartbeat", "the stream passed a heartbeat without bringing it: "+
			"logical messages are filtered out between the server and this connector")
	case offsets.HeartbeatBehind:
		if changed {
			s.metrics.Heartbeat(metrics.HeartbeatBehind)
		}
	case offsets.HeartbeatNone, offsets.HeartbeatOK, offsets.HeartbeatYoung:
	}
	return nil
}
