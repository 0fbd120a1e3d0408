package connector

import (
	"fmt"
	"time"

	"github.com/tidemark-cdc/tidemark/connector/worker"
)

// Bounds of what counts as working.
const (
	// stalledAfter is how long records may wait for the broker without one being confirmed.
	stalledAfter = 5 * time.Second
	// askingAfter is how long the stream may wait for rows that are read again.
	askingAfter = time.Second
)

// status adds what the running session knows to a connector's status: findings, positions, ages.
// It is ready when nothing keeps changes from flowing; findings are shown either way.
func (s *session) status(out *worker.Status) {
	out.Ready = true
	out.Reasons = append(out.Reasons, s.findings.list()...)
	at := s.positions.Snapshot()
	out.Positions = map[string]string{
		"received":  at.Received.String(),
		"confirmed": s.tracker.Confirmed().String(),
		"stored":    at.Stored.String(),
		"flushed":   at.Flushed.String(),
	}
	if h := s.health.Load(); h != nil {
		out.Slot = &worker.Slot{
			Name: s.cfg.SlotName, WALStatus: h.WALStatus, Active: h.Active,
			InvalidationReason: h.InvalidationReason, RetainedWALBytes: h.RetainedBytes,
			SafeWALBytes: h.SafeBytes, LagBytes: h.LagBytes, CatalogXminAge: h.CatalogXminAge,
		}
	}
	if echoed := s.heartbeatAt.Load(); echoed != 0 {
		age := (time.Since(s.began) - time.Duration(echoed)).Seconds()
		out.HeartbeatAgeSeconds = &age
	}
	if left := s.progress.tablesLeft.Load(); left >= 0 {
		n := int(left)
		out.SnapshotTablesRemaining = &n
		out.Reasons = append(out.Reasons, fmt.Sprintf(
			"snapshot: %d tables left, %d rows of the present one read", left, s.progress.rows.Load()))
	}
	if stalled := s.producer.Stalled(); stalled > stalledAfter {
		out.Ready = false
		out.Reasons = append(out.Reasons, fmt.Sprintf(
			"the brokers have confirmed nothing for %s; reading pauses when max.queue.bytes is full",
			stalled.Round(time.Second)))
	}
	for _, text := range []string{s.tables.waiting(), s.reread.waiting()} {
		if text != "" {
			out.Ready = false
			out.Reasons = append(out.Reasons, text)
		}
	}
}
