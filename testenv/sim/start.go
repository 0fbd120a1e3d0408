package sim

import (
	"time"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/offsets"
)

// start mirrors session.start: look, wait, take; again when the second look differs.
func (s *session) start() error {
	began := s.w.now
	for looks, waits := 0, 0; looks < maxLooks; waits++ {
		d, in, err := s.look(0, s.w.elapsed(began))
		if err != nil {
			return err
		}
		if d.Action == offsets.Wait {
			s.w.count("waits for the slot")
			s.p.sleep(waits)
			continue
		}
		looks++
		again, err := s.take(d, in)
		if err != nil || !again {
			return err
		}
		s.p.sleep(waits)
	}
	return fault.New(fault.Internal, "slot or position changed between two looks, too often")
}

func (s *session) look(
	self int32, waited time.Duration,
) (offsets.Decision, offsets.StartInput, error) {
	return offsets.Look(func() (offsets.Decision, offsets.StartInput, error) {
		return s.lookOnce(self, waited)
	})
}

// lookOnce mirrors session.lookOnce: the slot before the record, each reading a moment of its own.
func (s *session) lookOnce(
	self int32, waited time.Duration,
) (d offsets.Decision, in offsets.StartInput, err error) {
	pg := s.w.pg
	in = offsets.StartInput{
		Connector: "c", SlotName: "s", Plugin: "pgoutput", Database: "d", PublicationName: "p",
		SelfPID: self, Waited: waited, TakeoverTimeout: takeover, OnGap: "fail",
		Server:   offsets.ServerInfo{SystemID: systemID, Timeline: 1},
		Captured: func(id uint32, _ string) bool { return id < relid(elsewhere) },
	}
	s.p.until(nil)
	in.Slot = pg.describeSlot()
	s.p.until(nil)
	in.Stored = s.w.kafka.stored
	if s.w.is(ReadBeforeFence) && self != 0 {
		in.Stored = s.early
	}
	s.p.until(nil)
	in.Publication = pg.fingerprint()
	s.p.until(nil)
	in.Server.WALEnd = pg.end
	if s.w.is(PublicationIgnored) && in.Stored.HasPosition() {
		in.Publication = in.Stored.Publication
	}
	d = offsets.Decide(in)
	if s.w.is(GapIgnored) && d.Gap != nil && d.Gap.Code == fault.SlotAhead {
		d = offsets.Decision{Action: offsets.Resume, Start: in.Stored.LSN}
	}
	return d, in, nil
}

func (s *server) describeSlot() *offsets.SlotInfo {
	if !s.slot.exists {
		return nil
	}
	i := &offsets.SlotInfo{
		Name: "s", Plugin: "pgoutput", Type: "logical", Database: "d",
		ConfirmedFlush: s.slot.confirmed, RestartLSN: s.slot.confirmed, WALStatus: "reserved",
	}
	if s.slot.lost {
		i.WALStatus, i.InvalidationReason, i.RestartLSN = "lost", "wal_removed", 0
	}
	if s.slot.active != nil {
		i.Active, i.ActivePID = true, s.slot.active.pid
	}
	return i
}

// take mirrors session.take; the order of taking over is offsets.Claim's.
func (s *session) take(d offsets.Decision, in offsets.StartInput) (again bool, err error) {
	switch d.Action {
	case offsets.Refuse:
		return false, d.Fault
	case offsets.FreshStart:
		again, err := s.create()
		if again || fault.Has(err, fault.Fenced) || fault.Has(err, fault.SlotWithoutOffset) {
			s.w.note("process %d: another one begins too: %v", s.p.id, err)
			return true, nil
		}
		if err != nil {
			return false, err
		}
		if d, in, err = s.look(0, 0); err != nil {
			return false, err
		}
		if d.Action != offsets.HalfMade {
			s.w.note("process %d: what it made is not what it finds: %s", s.p.id, d.Action)
			return true, nil
		}
	}
	differs, err := offsets.Claim{
		Start: func(at offsets.LSN) (_ int32, err error) {
			s.p.until(nil)
			if s.ws, err = s.w.pg.start(at); err != nil {
				return 0, err
			}
			s.w.note("process %d: streams from %s", s.p.id, s.ws.from)
			return s.ws.pid, nil
		},
		Fence: s.fence,
		Look: func(self int32) (offsets.Decision, offsets.StartInput, error) {
			if s.w.is(SecondLookRemoved) {
				return d, in, nil
			}
			return s.look(self, 0)
		},
	}.Take(&d, &in)
	if err != nil || differs != "" {
		s.w.count("second looks that differ")
		s.w.note("process %d: takes nothing over: %s %v", s.p.id, differs, err)
		if s.ws != nil {
			s.w.pg.drop(s.ws, errConnection)
		}
		return differs != "", err
	}
	return false, s.own(d, in)
}

// own mirrors session.own.
func (s *session) own(d offsets.Decision, in offsets.StartInput) error {
	s.begin = d.Start
	s.w.count("sessions")
	if s.exact != nil && in.Stored != nil && in.Stored.LSNCommit != 0 {
		s.w.count("starts within a split transaction")
	}
	s.tracker = offsets.NewTracker(d.Start)
	s.positions = offsets.NewPositions(d.Start)
	s.lastChange = s.w.now
	if in.Stored != nil {
		s.record = *in.Stored
	}
	if s.exact != nil {
		s.exact.part.Adopt(s.w.offByOne(&s.record))
	}
	s.tell(d.Start)
	return s.saveRecord(func(r *offsets.Record) {
		r.Epoch++
		if s.exact == nil {
			r.LSNCommit, r.EventIndex, r.RowLSN, r.MessageLSN = 0, 0, 0, 0
		}
		r.SystemID, r.Timeline, r.Slot = systemID, 1, "s"
		r.Publication = offsets.Remember(r.Publication, in.Publication)
		if r.LSN == 0 && r.Snapshot == nil {
			r.Snapshot = &offsets.SnapshotState{Point: d.Start}
		}
	})
}

// create mirrors session.create, whose order is offsets.Fresh's. The publication is there.
func (s *session) create() (again bool, err error) {
	return offsets.Fresh{
		Fence: s.fence,
		Look: func() (offsets.Decision, offsets.StartInput, error) {
			return s.look(0, 0)
		},
		Intend: func(in *offsets.StartInput) error {
			if in.Stored != nil {
				s.record = *in.Stored
			}
			return s.saveRecord(func(r *offsets.Record) {
				r.SystemID, r.Timeline, r.Slot = systemID, 1, "s"
				r.Intent = &offsets.Intent{Kind: offsets.IntentCreate, Slot: "s", SystemID: systemID}
			})
		},
		Create: func() error {
			s.p.until(func() bool { return len(s.w.pg.open) == 0 })
			if s.w.pg.slot.exists {
				return fault.New(fault.SlotWithoutOffset, "the slot exists")
			}
			s.w.pg.createSlot()
			s.w.note("process %d: slot made at %s", s.p.id, s.w.pg.slot.confirmed)
			return nil
		},
	}.Make()
}

// watch mirrors the catalog check of session.watch.
func (s *session) watch() error {
	for {
		next := s.w.now + 20
		s.p.until(func() bool { return s.w.now >= next })
		pg := s.w.pg
		switch {
		case !pg.slot.exists:
			return fault.New(fault.SlotMissing, "the slot was dropped")
		case pg.slot.lost:
			return fault.New(fault.SlotLost, "the slot was invalidated")
		}
		s.p.until(nil)
		present, seen := pg.fingerprint(), s.w.now
		s.p.until(nil)
		changes := offsets.Compare(s.record.Publication, present,
			func(id uint32, _ string) bool { return id < relid(elsewhere) }, nil)
		if gaps := offsets.GapChanges(changes); len(gaps) > 0 && !s.w.is(PublicationIgnored) {
			return offsets.PublicationFault("c", "s", &s.record, gaps)
		}
		s.w.watched = seen
		if len(changes) == 0 {
			continue
		}
		err := s.saveRecord(func(r *offsets.Record) {
			r.Publication = offsets.Remember(r.Publication, present)
		})
		if err != nil {
			return err
		}
	}
}
