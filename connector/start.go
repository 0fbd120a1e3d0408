package connector

import (
	"context"
	"fmt"
	"time"

	"github.com/tidemark-cdc/tidemark/connector/capture"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/offsets"
)

// maxLooks bounds how often a start begins anew because the second look differed from the first:
// somebody keeps changing slot or record under us.
const maxLooks = 10

// start evaluates the start-up matrix, makes what a fresh start needs, begins to stream, fences
// earlier writers, and evaluates the matrix again before the first frame (4-algorithms 4 and 5).
func (s *session) start(ctx context.Context) error {
	if err := s.checkColumns(ctx); err != nil {
		return err
	}
	var err error
	if s.rep, err = s.dialReplication(ctx); err != nil {
		return err
	}
	began := time.Now()
	wait := newBackoff(5 * time.Second)
	for looks := 0; looks < maxLooks; {
		d, in, err := s.look(ctx, 0, time.Since(began))
		if err != nil {
			return err
		}
		if d.Action == offsets.Wait {
			s.log.Warn("the slot is in use; waiting", "slot", s.cfg.SlotName, "by", d.Waiting)
			if !sleep(ctx, wait.delay()) {
				return ctx.Err()
			}
			continue
		}
		if gap := s.c.gap; gap != nil && d.Action != offsets.Repair && d.Action != offsets.Refuse {
			// A session ended because rows may be missing, and nothing shows which.
			return gap
		}
		if s.cfg.SnapshotMode == snapshotOnly && in.Stored != nil && in.Stored.Snapshot != nil &&
			in.Stored.Snapshot.Done {
			s.log.Info("the snapshot was taken by an earlier run")
			return errDone
		}
		looks++
		again, err := s.take(ctx, d, in)
		if err != nil {
			return err
		}
		if !again {
			return nil
		}
		s.dropExported()
		if !sleep(ctx, wait.delay()) {
			return ctx.Err()
		}
		// The connection is used up by START_REPLICATION.
		if s.rep, err = s.dialReplication(ctx); err != nil {
			return err
		}
	}
	return fault.New(fault.Internal, fmt.Sprintf(
		"slot or stored position changed between two looks, %d times in a row", maxLooks))
}

func (s *session) dialReplication(ctx context.Context) (*capture.Conn, error) {
	rep, err := capture.Dial(ctx, s.cfg.Database, s.c.appName())
	if err != nil {
		return nil, err
	}
	s.onClose(func() {
		closing, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_ = rep.Close(closing) // a stream that came out of it is closed by its own closer
	})
	s.pid = rep.PID()
	s.system, err = rep.Identify(ctx)
	return rep, err
}

// look collects the matrix's inputs freshly, twice where they show a gap, and decides.
func (s *session) look(
	ctx context.Context, self uint32, waited time.Duration,
) (offsets.Decision, offsets.StartInput, error) {
	return offsets.Look(func() (offsets.Decision, offsets.StartInput, error) {
		return s.lookOnce(ctx, self, waited)
	})
}

// lookOnce collects the matrix's inputs, all of them freshly, and decides. self is our walsender's
// PID at the second look, 0 at the first.
func (s *session) lookOnce(
	ctx context.Context, self uint32, waited time.Duration,
) (offsets.Decision, offsets.StartInput, error) {
	in := offsets.StartInput{
		Connector: s.cfg.Name, SlotName: s.cfg.SlotName, Plugin: "pgoutput",
		Database: s.system.Database, PublicationName: s.cfg.Publication, SelfPID: int32(self),
		Adopt: s.cfg.SlotAdopt, OnGap: s.cfg.OnSlotGap,
		Waited: waited, TakeoverTimeout: s.cfg.SlotTakeover,
		Server: offsets.ServerInfo{
			SystemID: s.system.SystemID, Timeline: uint32(s.system.Timeline), WALEnd: s.system.WAL,
		},
	}
	// The slot first: what it was told was stored before, so that the record read after it is never
	// behind. The other way round, a process that stores and stops between the two looks like
	// somebody who moved the slot.
	var err error
	if in.Slot, err = s.src.Slot(ctx, s.cfg.SlotName); err != nil {
		return offsets.Decision{}, in, err
	}
	if in.Stored, err = s.offsets.Load(ctx); err != nil {
		return offsets.Decision{}, in, err
	}
	if in.Slot != nil && in.Slot.Synced && in.Stored != nil {
		// We have streamed from its primary: a failover is under way, or has not begun.
		return offsets.Decision{}, in, fault.New(fault.PostgresUnreachable,
			"the server is a standby; its copy of slot "+s.cfg.SlotName+" streams after promotion only").
			With("", "the primary", "promote it, or let database.hostname lead to the primary")
	}
	if in.Slot != nil && in.Slot.Active && in.Slot.ActivePID != int32(self) {
		in.ActiveSession, err = s.src.Session(ctx, in.Slot.ActivePID, ownSessions(s.cfg.Name))
		if err != nil {
			return offsets.Decision{}, in, err
		}
	}
	if in.Publication, err = s.src.Publication(ctx, s.cfg.Publication); err != nil {
		return offsets.Decision{}, in, err
	}
	if in.Captured, err = s.capturedRule(ctx, s.catalog); err != nil {
		return offsets.Decision{}, in, err
	}
	if err := s.refreshServer(ctx, self, &in); err != nil {
		return offsets.Decision{}, in, err
	}
	in.Timelines = s.timelines
	return offsets.Decide(in), in, nil
}

// refreshServer reads the WAL's end and, after a promotion, the timeline's history, on the
// replication connection, which is free only before the stream begins: the second look holds the
// same history against what is stored by then, and asks for the WAL's end elsewhere, since another
// process may have stored more than there was at the first look.
func (s *session) refreshServer(ctx context.Context, self uint32, in *offsets.StartInput) error {
	var err error
	if self != 0 {
		in.Server.WALEnd, err = s.src.WALInsert(ctx)
		return err
	}
	if s.system, err = s.rep.Identify(ctx); err != nil {
		return err
	}
	in.Server.WALEnd = s.system.WAL
	s.timelines = nil
	if in.Stored == nil || in.Stored.Timeline == 0 || in.Stored.Timeline == in.Server.Timeline {
		return nil
	}
	history, err := s.rep.TimelineHistory(ctx, s.system.Timeline)
	for _, h := range history {
		s.timelines = append(s.timelines, offsets.TimelineSwitch{
			Timeline: uint32(h.Timeline), Switch: h.Switch,
		})
	}
	return err
}

// take acts on the first look. again means that the second look differed, or that somebody took
// the slot first: everything is looked at anew.
func (s *session) take(
	ctx context.Context, d offsets.Decision, in offsets.StartInput,
) (again bool, err error) {
	switch d.Action {
	case offsets.Refuse:
		if d.Gap != nil {
			s.metrics.Gap(d.Fault.Code)
		}
		return false, d.Fault
	case offsets.Repair:
		s.metrics.Gap(d.Fault.Code)
		d, in, again, err = s.beginRepair(ctx, d, in)
		if lostRace(err) || fault.Has(err, fault.SlotInUse) {
			s.log.Warn("another process repairs too; its work is looked at", "error", err)
			return true, nil
		}
		if err != nil || again {
			return again, err
		}
	case offsets.FreshStart:
		again, err := s.create(ctx, in)
		if again || lostRace(err) {
			s.log.Warn("another process begins too; its work is looked at", "error", err)
			return true, nil
		}
		if err != nil {
			return false, err
		}
		// What was made is what the second look is held against: a half-made start of our own.
		if d, in, err = s.look(ctx, 0, 0); err != nil {
			return false, err
		}
		if d.Action != offsets.HalfMade {
			return true, nil
		}
	case offsets.Resume, offsets.HalfMade, offsets.Adopt, offsets.Wait:
	}
	for _, note := range d.Notes {
		s.log.Warn(note)
	}
	stream, differs, err := s.claim(ctx, &d, &in)
	if err != nil || differs != "" {
		if differs != "" {
			s.log.Warn("slot or record changed while the stream began; looking again", "what", differs)
		}
		return differs != "", err
	}
	s.stream = stream
	s.onClose(closer(stream))
	return false, s.own(ctx, d, in)
}

// claim begins to stream, fences earlier writers and looks again. A stream that it returns with
// neither differs nor an error is ours.
func (s *session) claim(
	ctx context.Context, d *offsets.Decision, in *offsets.StartInput,
) (stream *capture.Stream, differs string, err error) {
	differs, err = s.sabotage.claim(ctx, offsets.Claim{
		Start: func(at offsets.LSN) (pid int32, err error) {
			stream, err = s.rep.Start(ctx, capture.StartOptions{
				Slot: s.cfg.SlotName, Publication: s.cfg.Publication, Start: at, Messages: true,
				ServerVersion: s.src.Version(), StatusInterval: s.cfg.StatusInterval,
			})
			if err != nil {
				return 0, err
			}
			return int32(stream.PID()), nil
		},
		Fence: func() error { return s.fence(ctx) },
		Look: func(self int32) (offsets.Decision, offsets.StartInput, error) {
			return s.look(ctx, uint32(self), 0)
		},
	}, d, in).Take(d, in)
	if stream != nil && (err != nil || differs != "") {
		closer(stream)()
	}
	return stream, differs, err
}

// closer ends a stream; that has a deadline of its own.
func closer(stream *capture.Stream) func() {
	return func() { _ = stream.Close(context.Background()) }
}

// own sets the session up for the slot that is now ours, and stores that this process took over.
func (s *session) own(ctx context.Context, d offsets.Decision, in offsets.StartInput) error {
	s.begin = d.Start
	s.tracker = offsets.NewTracker(d.Start)
	s.positions = offsets.NewPositions(d.Start)
	s.lastChange = time.Now()
	s.storedSystem = s.system.SystemID
	s.storedTimeline.Store(uint32(s.system.Timeline))
	s.timeline.Store(uint32(s.system.Timeline))
	s.heart = offsets.NewHeartbeat(offsets.HeartbeatOptions{
		Connector: s.cfg.Name, Instance: s.c.instance, Interval: s.cfg.HeartbeatInterval,
		Verify: s.cfg.HeartbeatVerify, Timeout: s.cfg.HeartbeatTimeout,
	}, time.Now())
	if in.Stored != nil {
		s.record = *in.Stored
	}
	if d.Action == offsets.Repair {
		forgetCut(&s.record, d.Start)
	}
	s.exact.adopt(s.sabotage.cut(&s.record))
	s.stream.SetFlushed(d.Start)
	err := s.saveRecord(ctx, func(r *offsets.Record) {
		r.Epoch++
		if s.exact == nil { // a transaction that was cut comes again whole
			r.LSNCommit, r.EventIndex, r.RowLSN, r.MessageLSN = 0, 0, 0, 0
		}
		r.SystemID, r.Timeline, r.Slot = s.system.SystemID, uint32(s.system.Timeline), s.cfg.SlotName
		r.Publication = offsets.Remember(r.Publication, in.Publication)
		switch {
		case d.Action == offsets.Repair:
			plan := offsets.PlanRepair(&in, &d)
			s.ownRepair(r, &plan)
		case d.Action == offsets.Adopt:
			r.LSN = d.Start
			r.Snapshot = &offsets.SnapshotState{Done: true, Point: d.Start}
		case r.LSN == 0 && r.Snapshot == nil:
			r.Snapshot = &offsets.SnapshotState{Point: d.Start}
		}
	})
	if err != nil {
		return err
	}
	return s.prepare(ctx, s.record.History, in.Publication != nil && in.Publication.Root)
}
