package connector

import (
	"context"
	"fmt"
	"time"

	"github.com/tidemark-cdc/tidemark/connector/metrics"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/internal/pgdial"
	"github.com/tidemark-cdc/tidemark/offsets"
	"github.com/tidemark-cdc/tidemark/schema/catalog"
)

// catalogTimeout bounds one look at the catalog.
const catalogTimeout = 30 * time.Second

// catalogCheck looks, on the ordinary connection, at what the stream does not say: the slot's
// health, the timeline, the publication. What means loss is returned and ends the connector; the
// rest is a finding. A server that cannot be asked is a finding too: the stream says whether it is
// lost.
func (s *session) catalogCheck(session context.Context) error {
	ctx, cancel := context.WithTimeout(session, catalogTimeout)
	defer cancel()
	err := s.checkSlot(ctx)
	var changed *offsets.Fingerprint
	if err == nil {
		changed, err = s.checkPublication(ctx)
	}
	switch {
	case session.Err() != nil:
		return nil
	case changed != nil || err == nil && s.timeline.Load() != s.storedTimeline.Load():
		return s.storeChecked(context.WithoutCancel(session), changed)
	case err == nil:
		s.finding("catalog", "")
		return nil
	case meansLoss(fault.CodeOf(err)):
		s.metrics.Gap(fault.CodeOf(err))
		return err
	}
	s.metrics.SlotUnknown()
	s.dropWatchCatalog()
	s.finding("catalog", "the catalog could not be looked at: "+string(fault.CodeOf(err)))
	return nil
}

// storeChecked stores what the check found to be otherwise, and no gap. A write that fails, or is
// cut, leaves the store without a fence: the session ends with it.
func (s *session) storeChecked(ctx context.Context, changed *offsets.Fingerprint) error {
	timeline := s.timeline.Load()
	err := s.saveRecord(ctx, func(r *offsets.Record) {
		r.Timeline = timeline
		if changed != nil {
			r.Publication = offsets.Remember(r.Publication, changed)
		}
	})
	if err == nil {
		s.storedTimeline.Store(timeline)
	}
	return err
}

// meansLoss says of a finding's code whether rows may be missing.
func meansLoss(code fault.Code) bool {
	switch code {
	case fault.SlotLost, fault.SlotMissing, fault.PublicationChanged:
		return true
	}
	return false
}

// openWatchCatalog makes the watcher's own catalog connection: the pump never waits for it.
func (s *session) openWatchCatalog(ctx context.Context) error {
	if s.watchCatalog != nil {
		return nil
	}
	conn, err := pgdial.Connect(ctx, s.cfg.Database, s.c.appName())
	if err != nil {
		return err
	}
	s.watchCatalog = catalog.New(conn).Limit(s.cfg.Database.QueryTimeout)
	s.closeWatch = func() {
		closing, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_ = conn.Close(closing) // only catalog reads; nothing to lose
	}
	return nil
}

func (s *session) dropWatchCatalog() {
	if s.watchCatalog != nil {
		s.closeWatch()
		s.watchCatalog = nil
	}
}

func (s *session) checkSlot(ctx context.Context) error {
	h, err := s.src.SlotHealth(ctx, s.cfg.SlotName)
	if err != nil {
		return err
	}
	if h == nil {
		return fault.New(fault.SlotMissing, "slot "+s.cfg.SlotName+" was dropped while it was in use")
	}
	s.metrics.Slot(metrics.SlotSample{
		Name: s.cfg.SlotName, WALStatus: h.WALStatus, Active: h.Active,
		InvalidationReason: h.InvalidationReason, LagBytes: h.LagBytes,
		RetainedBytes: h.RetainedBytes, SafeBytes: h.SafeBytes, CatalogXminAge: h.CatalogXminAge,
	})
	s.health.Store(h)
	if h.Timeline != 0 && h.Timeline != s.timeline.Load() {
		// A session on a standby lives through its promotion. Stored before it counts (K6).
		s.log.Warn("the server's timeline changed under the session", "timeline", h.Timeline)
		s.timeline.Store(h.Timeline)
	}
	switch {
	case h.WALStatus == "lost" || h.InvalidationReason != "":
		info := offsets.SlotInfo{WALStatus: h.WALStatus, InvalidationReason: h.InvalidationReason}
		reason, setting := info.LostReason()
		return fault.New(fault.SlotLost, "the server invalidated slot "+s.cfg.SlotName).
			With(reason, "a slot that keeps the WAL", setting+"; tidemark offsets show has both positions")
	case h.WALStatus == "unreserved" && h.SafeBytes != nil:
		s.finding("slot", fmt.Sprintf("the slot is about to be lost: %d bytes of WAL are left", *h.SafeBytes))
	default:
		s.finding("slot", "")
	}
	return nil
}

// checkPublication compares the publication with the stored fingerprint. What is no gap (a table
// that was never captured comes in, one goes out) is returned to be stored, so that it is known
// when it happens again.
func (s *session) checkPublication(ctx context.Context) (changed *offsets.Fingerprint, err error) {
	if err := s.openWatchCatalog(ctx); err != nil {
		return nil, err
	}
	present, err := s.src.Publication(ctx, s.cfg.Publication)
	if err != nil {
		return nil, err
	}
	if err := s.checkExpectations(ctx, present); err != nil {
		return nil, err
	}
	captured, err := s.capturedRule(ctx, s.watchCatalog)
	if err != nil {
		return nil, err
	}
	s.recordMu.Lock()
	stored := s.record
	s.recordMu.Unlock()
	changes := offsets.Compare(stored.Publication, present, captured, nil)
	if gaps := offsets.GapChanges(changes); len(gaps) > 0 {
		return nil, offsets.PublicationFault(s.cfg.Name, s.cfg.SlotName, &stored, gaps)
	}
	for _, c := range changes {
		s.log.Warn("the publication changed", "change", c.String())
		if c.Kind == offsets.TableNew {
			s.finding("table/"+c.Name, "table "+c.Name+" is new in the publication: its history "+
				"begins there, rows that it had before were not read")
		}
	}
	if len(changes) == 0 {
		return nil, nil
	}
	return present, nil
}
