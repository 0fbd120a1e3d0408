package offsets

import (
	"fmt"
	"strings"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// The ways out, as an operator types them.
const (
	wayShow        = "tidemark offsets show prints stored and present side by side"
	wayReset       = "tidemark offsets reset forgets the position; the next start is a fresh one"
	wayNewHistory  = "tidemark offsets reset --new-history accepts it and takes a new snapshot"
	wayAcceptPub   = "tidemark offsets set --accept-publication, when nothing was lost"
	wayRepair      = "on.slot.gap: resnapshot reads the tables again and deletes what is gone"
	wayAdopt       = "slot.adopt: true starts at the slot's position, without what came before"
	wayDropSlotFmt = "SELECT pg_drop_replication_slot(%s)"
)

func ways(list ...string) string { return strings.Join(list, "; or ") }

// literal quotes a string for SQL that an operator pastes.
func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func (in *StartInput) clusterFault(stored string) *fault.Error {
	return fault.New(fault.ClusterChanged, fmt.Sprintf(
		"connector %s has a record of another PostgreSQL cluster", in.Connector)).With(
		"system identifier "+in.Server.SystemID, stored,
		ways("connect to the cluster that was captured", wayNewHistory))
}

func (in *StartInput) foreignFault(why string) *fault.Error {
	return fault.New(fault.SlotForeign, fmt.Sprintf(
		"slot %s cannot be used by connector %s: %s", in.SlotName, in.Connector, why)).With(
		fmt.Sprintf("%s slot, plugin %q, database %q", in.Slot.Type, in.Slot.Plugin,
			in.Slot.Database),
		fmt.Sprintf("logical slot, plugin %q, database %q", in.Plugin, in.Database),
		ways("choose another slot.name", "if nobody needs the slot: "+
			fmt.Sprintf(wayDropSlotFmt, literal(in.SlotName))))
}

func (in *StartInput) inUseFault(who string) *fault.Error {
	return fault.New(fault.SlotInUse, fmt.Sprintf(
		"slot %s is active for another session after waiting %s", in.SlotName, in.Waited)).With(
		who, "an inactive slot", ways("stop the other process",
			"raise slot.takeover.timeout.ms, if its session is only slow to end",
			fmt.Sprintf("SELECT pg_terminate_backend(%d)", in.Slot.ActivePID)))
}

func (in *StartInput) rewoundFault(found string) *fault.Error {
	return fault.New(fault.HistoryRewound, fmt.Sprintf("the server's history was rewound to before "+
		"the stored position of connector %s (a restored backup?)", in.Connector)).With(
		found, fmt.Sprintf("a server whose WAL holds %s on timeline %d", in.Stored.LSN,
			in.Stored.Timeline), ways(wayShow, wayNewHistory))
}

func (in *StartInput) timelineFault(point LSN, known bool) *fault.Error {
	found := fmt.Sprintf("timeline %d, whose history does not hold timeline %d",
		in.Server.Timeline, in.Stored.Timeline)
	if known {
		found = fmt.Sprintf("timeline %d, which left timeline %d at %s, %d bytes before the stored "+
			"position", in.Server.Timeline, in.Stored.Timeline, point,
			uint64(in.Stored.LSN-point))
	}
	return fault.New(fault.TimelineDiverged, fmt.Sprintf("the promoted server does not have all that "+
		"connector %s has sent", in.Connector)).With(
		found, fmt.Sprintf("a switch at or after %s", in.Stored.LSN), ways(wayShow, wayNewHistory))
}

func (in *StartInput) unfinishedFault() *fault.Error {
	return fault.New(fault.SlotLost, fmt.Sprintf(
		"slot %s has no confirmed position: its creation did not finish", in.SlotName)).With(
		"confirmed_flush_lsn NULL", "", fmt.Sprintf(wayDropSlotFmt, literal(in.SlotName)))
}

func (in *StartInput) noPublicationFault() *fault.Error {
	return fault.New(fault.PublicationMissing, fmt.Sprintf(
		"slot %s exists, but publication %s does not", in.SlotName, in.PublicationName)).With(
		"", "", "a publication made now does not reach back to the slot's position: drop the slot ("+
			fmt.Sprintf(wayDropSlotFmt, literal(in.SlotName))+") and start afresh")
}

func (in *StartInput) withoutOffsetFault() *fault.Error {
	return fault.New(fault.SlotWithoutOffset, fmt.Sprintf("slot %s exists, but no position is stored "+
		"for connector %s: what came before it is not known", in.SlotName, in.Connector)).With(
		"confirmed_flush_lsn "+in.Slot.ConfirmedFlush.String(), "a stored position", ways(
			wayAdopt, "drop the slot and start afresh: "+
				fmt.Sprintf(wayDropSlotFmt, literal(in.SlotName))))
}

// gapTexts says in words what each code of a gap means.
var gapTexts = map[fault.Code]string{
	fault.SlotMissing:        "the slot is gone",
	fault.SlotLost:           "the server invalidated the slot",
	fault.SlotAhead:          "the slot is ahead of the stored position",
	fault.PublicationChanged: "the publication is not what it was at the stored position",
}

// gapFault names both positions, the range in bytes, the server's reason with the setting to
// raise, and the ways out.
func (in *StartInput) gapFault(g *Gap) *fault.Error {
	text, ok := gapTexts[g.Code]
	if !ok {
		g.Code, text = fault.Internal, fmt.Sprintf("a gap with the unknown code %q", g.Code)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s (connector %s, slot %s): changes after %s", text, in.Connector,
		in.SlotName, g.From)
	if g.To > g.From {
		upTo := "up to"
		if g.Growing {
			upTo = "up to at least"
		}
		fmt.Fprintf(&b, " %s %s (%d bytes of WAL)", upTo, g.To, g.Bytes())
	}
	b.WriteString(" may be missing")
	if g.Setting != "" {
		fmt.Fprintf(&b, "; to keep it from happening again: %s", g.Setting)
	}
	f := fault.New(g.Code, b.String())
	f.Found = g.Reason
	if in.Slot != nil {
		f.Found += ", confirmed_flush_lsn " + in.Slot.ConfirmedFlush.String()
	}
	if in.Stored.HasPosition() {
		f.Wanted = "a slot that still has everything after " + in.Stored.LSN.String()
	}
	out := []string{wayShow}
	if g.Code == fault.PublicationChanged && len(g.Changes) > 0 {
		f.Found = joinChanges(g.Changes, 5)
		f.Wanted = "the stored publication"
		out = append(out, wayAcceptPub)
	}
	reset := wayReset
	if in.Slot != nil || g.Code == fault.PublicationChanged { // the publication is a slot's
		reset = fmt.Sprintf(wayDropSlotFmt, literal(in.SlotName)) + ", then " + wayReset
	}
	out = append(out, reset)
	if in.OnGap != OnGapResnapshot {
		out = append(out, wayRepair)
	}
	f.Fix = ways(out...)
	return f
}

// joinChanges lists the first most changes; a publication of ten thousand tables needs no more.
func joinChanges(changes []Change, most int) string {
	var parts []string
	for i, c := range changes {
		if i == most {
			parts = append(parts, fmt.Sprintf("and %d more", len(changes)-most))
			break
		}
		parts = append(parts, c.String())
	}
	return strings.Join(parts, "; ")
}
