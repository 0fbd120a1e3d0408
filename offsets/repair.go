package offsets

import (
	"slices"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// RepairPlan is what a repair does about a gap, before it reads the tables again.
type RepairPlan struct {
	// MakePublication: it is gone. Made before the slot: a change before it cannot be decoded.
	MakePublication bool
	// DropSlot and MakeSlot: the slot cannot be streamed from. That is so for a lost one, and for
	// one whose WAL has changes from before the present publication: up to PostgreSQL 17 decoding
	// them is an error for ever, from 18 on they are skipped with a warning.
	DropSlot, MakeSlot bool
	// Start is where the stream begins when the slot is kept: O, or C where that is later.
	Start LSN
	// Intent is stored before anything else is done. Its Tables are the tables that concerns;
	// none is all.
	Intent Intent
}

// PlanRepair plans what Decide called a repair. It is asked again after each crash, so that it goes
// by what is there: a slot that an earlier try has made is kept.
func PlanRepair(in *StartInput, d *Decision) RepairPlan {
	p := RepairPlan{MakePublication: in.Publication == nil}
	again := p.MakePublication || slices.ContainsFunc(d.Gap.Changes, func(c Change) bool {
		return c.Kind == PublicationGone || c.Kind == PublicationRecreated
	})
	p.MakeSlot = in.Slot == nil || in.Slot.Lost() || again
	p.DropSlot = p.MakeSlot && in.Slot != nil
	var o LSN
	if in.Stored != nil {
		o = in.Stored.LSN
	}
	if !p.MakeSlot {
		p.Start = max(o, in.Slot.ConfirmedFlush)
	}
	p.Intent = Intent{
		Kind: IntentRepair, Slot: in.SlotName, SystemID: in.Server.SystemID,
		TsUsec: time.Now().UnixMicro(),
		From:   d.Gap.From, To: d.Gap.To, Code: d.Gap.Code, Reason: d.Gap.Reason,
	}
	earlier := in.Stored.repairIntent()
	if earlier != nil && earlier.Code == d.Gap.Code {
		p.Intent.From, p.Intent.To, p.Intent.Reason = earlier.From, earlier.To, earlier.Reason
	}
	if !p.MakeSlot && o != 0 && p.Start == o {
		p.Intent.Tables = concerned(earlier, d.Gap)
	}
	return p
}

// concerned lists the tables whose publication rows changed; nil is all tables. Everything else
// still comes through the stream, which starts at the stored position.
func concerned(earlier *Intent, g *Gap) []uint32 {
	var tables []uint32
	if earlier != nil {
		if len(earlier.Tables) == 0 {
			return nil
		}
		tables = slices.Clone(earlier.Tables)
	} else if g.Code != fault.PublicationChanged {
		return nil
	}
	for _, c := range g.Changes {
		if c.Kind != TableRowChanged && c.Kind != TableBack {
			return nil // the publication itself, or a schema's row
		}
		tables = append(tables, c.ID)
	}
	slices.Sort(tables)
	return slices.Compact(tables)
}

// repairIntent is the repair that was begun and not finished, or nil.
func (r *Record) repairIntent() *Intent {
	if r == nil || r.Intent == nil || r.Intent.Kind != IntentRepair {
		return nil
	}
	return r.Intent
}

// Repairing reports whether a repair was begun and not finished.
func (r *Record) Repairing() bool { return r.repairIntent() != nil }
