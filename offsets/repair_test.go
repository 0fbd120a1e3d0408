package offsets

import (
	"slices"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// plan is PlanRepair of whole() after a change, which must be a gap.
func plan(t *testing.T, change func(*StartInput)) RepairPlan {
	t.Helper()
	in := whole()
	in.OnGap = OnGapResnapshot
	change(&in)
	d := Decide(in)
	if d.Action != Repair {
		t.Fatalf("%s: %v", d.Action, d.Fault)
	}
	return PlanRepair(&in, &d)
}

func pending(tables ...uint32) *Intent {
	return &Intent{
		Kind: IntentRepair, Code: fault.PublicationChanged, From: 300, To: 700, Reason: "before",
		Tables: tables,
	}
}

func TestRepairPlans(t *testing.T) {
	for _, row := range []struct {
		name            string
		change          func(*StartInput)
		pub, drop, made bool
		start           LSN
		tables          []uint32
	}{
		{
			name: "no slot", change: func(in *StartInput) { in.Slot = nil }, made: true,
		},
		{
			name:   "a lost slot is replaced",
			change: func(in *StartInput) { in.Slot.WALStatus = "lost" }, drop: true, made: true,
		},
		{
			name:   "a slot ahead is kept, from where it is, for all tables",
			change: func(in *StartInput) { in.Slot.ConfirmedFlush = 500 }, start: 500,
		},
		{
			name:   "a table's row: the slot is kept at O, for that table",
			change: func(in *StartInput) { in.Publication.Tables[0].XMin++ }, start: 300,
			tables: []uint32{whole().Publication.Tables[0].Relid},
		},
		{
			name:   "other operations: the slot is kept at O, for all",
			change: func(in *StartInput) { in.Publication.XMin++ }, start: 300,
		},
		{
			name:   "another publication: a slot from before it cannot be decoded",
			change: func(in *StartInput) { in.Publication.OID++ }, drop: true, made: true,
		},
		{
			name:   "no publication",
			change: func(in *StartInput) { in.Publication = nil }, pub: true, drop: true, made: true,
		},
		{
			name:   "a repair of one table that was begun",
			change: func(in *StartInput) { in.Stored.Intent = pending(7) }, start: 300,
			tables: []uint32{7},
		},
		{
			name: "and another one changed since",
			change: func(in *StartInput) {
				in.Stored.Intent = pending(7)
				in.Publication.Tables[0].XMin++
			},
			start:  300,
			tables: sorted(7, whole().Publication.Tables[0].Relid),
		},
		{
			name: "and the slot was moved since",
			change: func(in *StartInput) {
				in.Stored.Intent = pending(7)
				in.Slot.ConfirmedFlush = 500
			},
			start: 500,
		},
		{
			name: "a repair of all tables that was begun stays one of all",
			change: func(in *StartInput) {
				in.Stored.Intent = pending()
				in.Publication.Tables[0].XMin++
			},
			start: 300,
		},
		{
			name: "a repair before the first position",
			change: func(in *StartInput) {
				in.Stored.LSN, in.Stored.Intent = 0, pending(7)
			},
			start: 200,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := plan(t, row.change)
			if p.MakePublication != row.pub || p.DropSlot != row.drop || p.MakeSlot != row.made ||
				p.Start != row.start || !slices.Equal(p.Intent.Tables, row.tables) {
				t.Errorf("%+v", p)
			}
			if p.Intent.Kind != IntentRepair || p.Intent.Slot != "tidemark_shop" ||
				p.Intent.SystemID != "7" || p.Intent.TsUsec == 0 {
				t.Errorf("intent %+v", p.Intent)
			}
		})
	}
}

func sorted(ids ...uint32) []uint32 {
	slices.Sort(ids)
	return ids
}

// However often a repair is begun again, the gap stays the one that it was begun for.
func TestARepairThatIsBegunAgainKeepsItsGap(t *testing.T) {
	p := plan(t, func(in *StartInput) { in.Stored.Intent = pending(7) })
	again := plan(t, func(in *StartInput) { in.Stored.Intent = &p.Intent })
	for _, i := range []Intent{p.Intent, again.Intent} {
		if i.From != 300 || i.To != 700 || i.Code != fault.PublicationChanged || i.Reason != "before" {
			t.Errorf("%+v", i)
		}
	}
	lost := plan(t, func(in *StartInput) { in.Stored.Intent, in.Slot = pending(7), nil })
	if lost.Intent.Code != fault.SlotMissing || len(lost.Intent.Tables) != 0 {
		t.Errorf("%+v", lost.Intent)
	}
}

func TestAPendingRepairIsNoAdoptionAndNoFreshStart(t *testing.T) {
	for _, onGap := range []string{"fail", OnGapResnapshot} {
		in := whole()
		in.OnGap, in.Adopt = onGap, true
		in.Stored.LSN, in.Stored.Intent = 0, pending()
		if d := Decide(in); d.Gap == nil || d.Gap.Code != fault.PublicationChanged {
			t.Errorf("%+v", d)
		}
		in.Slot.ConfirmedFlush = 0
		if d := Decide(in); d.Action != Refuse || d.Gap != nil {
			t.Errorf("a slot without a position: %+v", d)
		}
	}
	if new(Record).Repairing() || !(&Record{Intent: pending()}).Repairing() {
		t.Error("Repairing")
	}
}
