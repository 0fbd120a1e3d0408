package connector

import (
	"context"
	"slices"

	"github.com/tidemark-cdc/tidemark/connector/snapshot"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/offsets"
	"github.com/tidemark-cdc/tidemark/schema/catalog"
)

// A repair closes a gap by reading the tables that it concerns again (on.slot.gap: resnapshot).
//
// Durable first: the offsets record says that a repair is due before anything is done, and keeps
// its old position until every table is read and every key that is gone is deleted. Whatever ends
// a repair in between, the next start finds the intent and repairs again, by what is there then: a
// slot that was made already is kept, tables are read anew, and rows that were sent meanwhile are
// in the topic like any others.
//
// Exact: the r rows' position is a WAL position from before their snapshot (the new slot's
// consistent point, when its own snapshot is read), and later than everything that was sent before.
// What the stream repeats from the slot's position on is older by pair, or comes after.

// repair is what a session knows of the repair that it makes.
type repair struct {
	intent offsets.Intent
	names  []string // of the tables that are read
}

// beginRepair makes the slot ready to stream from. again means that something changed meanwhile,
// and everything is looked at anew.
func (s *session) beginRepair(
	ctx context.Context, d offsets.Decision, in offsets.StartInput,
) (_ offsets.Decision, _ offsets.StartInput, again bool, err error) {
	plan := offsets.PlanRepair(&in, &d)
	s.log.Warn("a gap is to be repaired by reading tables again", "code", d.Gap.Code,
		"from", d.Gap.From, "to", d.Gap.To, "bytes", d.Gap.Bytes(), "reason", d.Gap.Reason,
		"new_slot", plan.MakeSlot)
	if !plan.MakeSlot {
		d.Start = plan.Start
		return d, in, false, nil
	}
	// There is no slot that could keep others away, so the fence comes first, and what an earlier
	// process may have stored up to then is looked at again.
	if err := s.fence(ctx); err != nil {
		return d, in, false, err
	}
	if d, in, err = s.look(ctx, 0, 0); err != nil {
		return d, in, false, err
	}
	if d.Action != offsets.Repair {
		return d, in, true, nil
	}
	if plan = offsets.PlanRepair(&in, &d); !plan.MakeSlot {
		return d, in, true, nil
	}
	if err := s.replaceSlot(ctx, &plan, &in); err != nil {
		return d, in, false, err
	}
	if d, in, err = s.look(ctx, 0, 0); err != nil {
		return d, in, false, err
	}
	if in.Slot == nil || in.Slot.Lost() {
		return d, in, true, nil
	}
	in.NewPoint = s.exportedAt
	if d = offsets.Decide(in); d.Action == offsets.Refuse {
		return d, in, false, d.Fault
	}
	d.Start = in.Slot.ConfirmedFlush
	return d, in, d.Action != offsets.Repair || d.Start != s.exportedAt, nil
}

// replaceSlot stores the intent, and makes publication and slot as the plan says.
func (s *session) replaceSlot(
	ctx context.Context, plan *offsets.RepairPlan, in *offsets.StartInput,
) error {
	if in.Stored != nil {
		s.record = *in.Stored
	}
	err := s.saveRecord(ctx, func(r *offsets.Record) {
		r.SystemID, r.Timeline, r.Slot = s.system.SystemID, uint32(s.system.Timeline), s.cfg.SlotName
		r.Intent = &plan.Intent
	})
	if err != nil {
		return err
	}
	crashPoint("repair-intent-stored")
	if plan.MakePublication {
		if err := s.ensurePublication(ctx); err != nil {
			return err
		}
		crashPoint("repair-publication-made")
	}
	if plan.DropSlot {
		// It is nobody's by now, unless another process repairs as well and has made it anew.
		dropping, cancel := context.WithTimeout(ctx, drainTimeout)
		err := s.src.DropSlot(dropping, s.cfg.SlotName)
		cancel()
		if err != nil {
			return err
		}
		s.log.Warn("the slot was dropped: nothing could be streamed from it any more",
			"slot", s.cfg.SlotName)
		crashPoint("repair-slot-dropped")
	}
	if err := s.makeSlot(ctx, true); err != nil {
		return err
	}
	crashPoint("repair-slot-made")
	return nil
}

// makeSlot makes the slot and, when rows are to be read, opens its exported snapshot.
func (s *session) makeSlot(ctx context.Context, read bool) error {
	created, err := s.createSlot(ctx)
	if err != nil {
		return err
	}
	crashPoint("slot-made")
	s.log.Info("slot created", "slot", s.cfg.SlotName, "consistent_point", created.ConsistentPoint.String())
	if !read {
		return nil
	}
	s.exportedAt = created.ConsistentPoint
	s.exported, err = snapshot.Open(ctx, snapshot.Options{
		Database: s.cfg.Database, AppName: s.c.appName(), Exported: created.Snapshot,
		LockTimeout: s.cfg.SnapshotLockTimeout,
	})
	if err != nil {
		return err
	}
	s.onClose(s.exported.Close)
	return nil
}

// dropExported gives up the slot's first snapshot: the slot is another's now, and an open snapshot
// would keep vacuum away for as long as the session lives.
func (s *session) dropExported() {
	if s.exported != nil {
		s.exported.Close()
		s.exported = nil
	}
}

// ownRepair puts the repair into the record that says that the slot is ours: from here on the
// tables that it concerns are not read, and the publication is the present one.
func (s *session) ownRepair(r *offsets.Record, plan *offsets.RepairPlan) {
	s.repair = &repair{intent: plan.Intent}
	state := &offsets.SnapshotState{Point: s.begin}
	if len(plan.Intent.Tables) > 0 && r.Snapshot != nil {
		state.Tables = make(map[string]offsets.TableState, len(r.Snapshot.Tables))
		for name, t := range r.Snapshot.Tables {
			t.First, t.Last = 0, 0 // the attempts of then are gone
			state.Tables[name] = t
		}
	}
	r.Snapshot, r.Intent = state, &plan.Intent
}

// forgetCut: where the stream begins after the stored position, the transaction that was cut there
// does not come again.
func forgetCut(r *offsets.Record, start offsets.LSN) {
	if start != r.LSN {
		r.LSNCommit, r.EventIndex, r.RowLSN, r.MessageLSN = 0, 0, 0, 0
	}
}

// settle waits until everything that was sent is confirmed, in exactly-once mode committed.
func (s *session) settle(ctx context.Context) error {
	if s.exact != nil {
		return s.exact.close(ctx)
	}
	return s.producer.Flush(ctx)
}

// startRepair picks the tables that are to be read, and tells of the gap.
func (s *session) startRepair(
	ctx context.Context, all []catalog.Published,
) ([]catalog.Published, error) {
	tables := all
	if ids := s.repair.intent.Tables; len(ids) > 0 {
		rows, err := s.candidates(ctx)
		if err != nil {
			return nil, err
		}
		tables = announcedFor(ids, rows, all)
	}
	s.repair.names = []string{}
	for _, p := range tables {
		s.repair.names = append(s.repair.names, tableName(p.Relation))
	}
	s.finding("gap", "a gap is being repaired: tables are read again ("+
		string(s.repair.intent.Code)+")")
	crashPoint("repair-begun")
	return tables, s.tellGap(ctx, gapBegun)
}

// announcedFor turns the OIDs of publication rows into those of the relations that the stream
// names: a partitioned table's row stands for its leaves, or the other way round.
func announcedFor(
	ids []uint32, rows []catalog.TableRow, all []catalog.Published,
) (out []catalog.Published) {
	root := make(map[uint32]uint32, len(rows))
	for _, r := range rows {
		root[r.OID] = r.RootOID
	}
	for _, p := range all {
		oid := p.Relation.OID
		related := func(id uint32) bool {
			return id == oid || root[oid] != 0 && root[oid] == root[id]
		}
		if slices.ContainsFunc(ids, related) {
			out = append(out, p)
		}
	}
	return out
}

// repaired tells that the gap is closed, once the record says so.
func (s *session) repaired(ctx context.Context) error {
	i := &s.repair.intent
	s.finding("gap", "")
	s.log.Info("the gap is repaired", "code", i.Code, "from", i.From, "to", i.To,
		"tables", len(s.repair.names), "position", s.begin.String())
	return s.tellGap(ctx, gapDone)
}

// repairable says of an error that ended a running session whether the next one repairs what it
// means. A start that refuses is not asked: it has looked at everything.
func (c *Connector) repairable(err error) bool {
	if c.cfg.OnSlotGap != offsets.OnGapResnapshot {
		return false
	}
	switch fault.CodeOf(err) {
	case fault.SlotLost, fault.SlotMissing, fault.PublicationChanged:
		return true
	}
	return false
}
