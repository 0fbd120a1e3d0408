package offsets

import (
	"fmt"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// Action is what a start does.
type Action string

// The actions.
const (
	// FreshStart: neither slot nor position. Intent, publication, slot, snapshot, in this order.
	FreshStart Action = "fresh_start"
	// HalfMade: our own slot from a start that did not come to its first position. Go on from its
	// confirmed position with a snapshot taken now.
	HalfMade Action = "half_made"
	// Resume: start at the stored position.
	Resume Action = "resume"
	// Adopt: a slot without a position, taken over because slot.adopt says so.
	Adopt Action = "adopt"
	// Repair: a gap, and on.slot.gap is resnapshot. Fault says what gap, PlanRepair what to do.
	Repair Action = "repair"
	// Wait: the slot is active for another process. Look again, freshly, after a while.
	Wait Action = "wait"
	// Refuse: stop with Fault.
	Refuse Action = "refuse"
)

// OnGapResnapshot is the value of on.slot.gap that repairs.
const OnGapResnapshot = "resnapshot"

// ServerInfo is IDENTIFY_SYSTEM's answer.
type ServerInfo struct {
	SystemID string
	Timeline uint32
	// WALEnd is W: no position above it was ever given by this server.
	WALEnd LSN
}

// TimelineSwitch is a line of TIMELINE_HISTORY: Timeline ended at Switch.
type TimelineSwitch struct {
	Timeline uint32
	Switch   LSN
}

// StartInput is everything that the start-up matrix rests on. It is collected twice: before
// START_REPLICATION, and again after it (with SelfPID), before the first frame is handed on.
type StartInput struct {
	Connector       string
	SlotName        string
	Plugin          string // pgoutput
	Database        string
	PublicationName string

	// Stored is O with what was stored beside it; nil is none.
	Stored *Record
	// Slot is nil when there is none of this name.
	Slot *SlotInfo
	// ActiveSession describes the slot's user, when it is active and could be seen.
	ActiveSession *SessionInfo
	// SelfPID is our own walsender's PID at the second look; 0 at the first.
	SelfPID int32
	// NewPoint is P, the consistent point of a slot that was just made in place of a missing one;
	// 0 when none was made.
	NewPoint LSN

	Server ServerInfo
	// Timelines is the history of the server's timeline; needed only when it is above the stored.
	Timelines []TimelineSwitch
	// Publication is the present one; nil when it does not exist.
	Publication *Fingerprint
	// Captured says which tables of the publication the connector captures; nil is all.
	Captured func(relid uint32, name string) bool

	Adopt bool   // slot.adopt
	OnGap string // on.slot.gap
	// Waited and TakeoverTimeout bound the wait for an active slot.
	Waited, TakeoverTimeout time.Duration
}

// Decision is the matrix's answer.
type Decision struct {
	Action Action
	// Start is where START_REPLICATION begins: Resume, HalfMade and Adopt.
	Start LSN
	// Fault is set for Refuse and Repair.
	Fault *fault.Error
	// Gap is set when history is missing, for Refuse and Repair alike.
	Gap *Gap
	// Changes are all differences of the publication, gaps or not.
	Changes []Change
	// Notes are what an operator should know although the start goes on.
	Notes []string
	// Waiting says for whom, when the action is Wait.
	Waiting string
}

// Gap is a piece of history that the stream cannot give any more.
type Gap struct {
	Code fault.Code
	// From and To bound it, (From, To].
	From, To LSN
	// Growing: To is only where the server's WAL ends now; the gap ends where a new slot begins.
	Growing bool
	// Reason is the server's, Setting what keeps it from happening again.
	Reason, Setting string
	// Changes are the publication's, when it concerns only some tables.
	Changes []Change
}

// Bytes is the length of the gap in WAL.
func (g *Gap) Bytes() uint64 {
	if g.To <= g.From {
		return 0
	}
	return uint64(g.To - g.From)
}

// Decide is the start-up matrix. The server validates nothing: an older LSN is silently forwarded
// to the slot's confirmed position, a later one silently swallows commits. So every row that is
// not certainly whole stops or repairs.
//
// The order of the questions matters. Whose history it is comes first, since no position means
// anything on another cluster. Then whether the slot is ours and free: while another session uses
// it, both readings may be stale, so nothing else is decided before the wait is over. Then the
// slot's health, the positions, and the publication at last.
func Decide(in StartInput) Decision {
	for _, row := range []func(*StartInput) *Decision{
		rowCluster, rowForeign, rowActive, rowRewound, rowTimeline,
		rowNoSlot, rowLost, rowRepairPending, rowNoPosition, rowAhead,
	} {
		if d := row(&in); d != nil {
			return *d
		}
	}
	return rowPublication(&in)
}

// rowCluster: other system identifier. Also for an intent: its slot was on the other one.
func rowCluster(in *StartInput) *Decision {
	stored := in.storedSystem()
	if stored == "" || stored == in.Server.SystemID {
		return nil
	}
	return in.refuse(in.clusterFault(stored))
}

// rowForeign: wrong plugin, database, or a physical slot.
func rowForeign(in *StartInput) *Decision {
	if in.Slot == nil {
		return nil
	}
	if why := in.Slot.Foreign(in.Plugin, in.Database); why != "" {
		return in.refuse(in.foreignFault(why))
	}
	return nil
}

// rowActive: slot active for another PID.
func rowActive(in *StartInput) *Decision {
	if in.Slot == nil || !in.Slot.Active {
		return nil
	}
	if in.SelfPID != 0 && in.Slot.ActivePID == in.SelfPID {
		return nil
	}
	who := fmt.Sprintf("PID %d", in.Slot.ActivePID)
	if in.ActiveSession != nil {
		who = in.ActiveSession.String()
	}
	if in.Waited < in.TakeoverTimeout {
		return &Decision{Action: Wait, Waiting: who}
	}
	return in.refuse(in.inUseFault(who))
}

// rowRewound: O > W, P <= O for a new slot, or an older timeline. Whatever on.slot.gap says: the
// changes after O on the server are others than those that we have sent, under the same LSNs.
func rowRewound(in *StartInput) *Decision {
	if !in.Stored.HasPosition() {
		return nil
	}
	o := in.Stored.LSN
	switch {
	case in.Stored.Timeline != 0 && in.Server.Timeline < in.Stored.Timeline:
		return in.refuse(in.rewoundFault(fmt.Sprintf("the server is on timeline %d, before the "+
			"stored timeline %d", in.Server.Timeline, in.Stored.Timeline)))
	case o > in.Server.WALEnd:
		return in.refuse(in.rewoundFault(fmt.Sprintf("the server's WAL ends at %s, %d bytes before "+
			"the stored position %s", in.Server.WALEnd, uint64(o-in.Server.WALEnd), o)))
	case in.NewPoint != 0 && in.NewPoint <= o:
		return in.refuse(in.rewoundFault(fmt.Sprintf("a new slot's consistent point %s is not "+
			"after the stored position %s", in.NewPoint, o)))
	}
	return nil
}

// rowTimeline: same system, newer timeline. Past the switch point the LSNs of the two histories do
// not compare, so no repair under the same history can be right: a person decides.
func rowTimeline(in *StartInput) *Decision {
	if !in.Stored.HasPosition() || in.Stored.Timeline == 0 ||
		in.Server.Timeline == in.Stored.Timeline {
		return nil
	}
	point, known := in.switchPoint()
	if !known || in.Stored.LSN > point {
		return in.refuse(in.timelineFault(point, known))
	}
	return nil
}

// rowNoSlot: there is no slot. Without a position it is a fresh start, unless an earlier start has
// already published snapshot rows: a key of theirs that was deleted since would stay for ever.
func rowNoSlot(in *StartInput) *Decision {
	if in.Slot != nil {
		return nil
	}
	if !in.Stored.HasPosition() {
		if in.Stored == nil || in.Stored.Snapshot == nil ||
			len(in.Stored.Snapshot.Attempts) == 0 {
			return &Decision{Action: FreshStart}
		}
		return in.gap(in.upToNewSlot(&Gap{
			Code: fault.SlotMissing, From: in.Stored.Snapshot.Point,
			Reason: "the slot of an unfinished first snapshot was dropped",
		}))
	}
	return in.gap(in.upToNewSlot(&Gap{
		Code: fault.SlotMissing, From: in.Stored.LSN,
		Reason: "the slot was dropped, or it was not there after a fail-over",
	}))
}

// rowLost: wal_status lost, invalidation_reason or conflicting set.
func rowLost(in *StartInput) *Decision {
	if !in.Slot.Lost() {
		return nil
	}
	reason, setting := in.Slot.LostReason()
	from := in.Slot.ConfirmedFlush
	if in.Stored.HasPosition() {
		from = in.Stored.LSN
	}
	return in.gap(in.upToNewSlot(&Gap{
		Code: fault.SlotLost, From: from, Reason: reason, Setting: setting,
	}))
}

// rowRepairPending: a repair was begun and not finished; its gap is still there, and the
// publication may have changed once more since.
func rowRepairPending(in *StartInput) *Decision {
	i := in.Stored.repairIntent()
	switch {
	case i == nil:
		return nil
	case in.Slot.ConfirmedFlush == 0:
		return in.refuse(in.unfinishedFault())
	}
	changes := Compare(in.Stored.Publication, in.Publication, in.Captured, nil)
	d := in.gap(&Gap{
		Code: i.Code, From: i.From, To: i.To,
		Reason:  "a repair of this gap was begun and not finished: " + i.Reason,
		Changes: GapChanges(changes),
	})
	d.Changes = changes
	return d
}

// rowNoPosition: a slot and no position: our own half-made start, an adoption, or neither.
func rowNoPosition(in *StartInput) *Decision {
	if in.Stored.HasPosition() {
		return nil
	}
	c := in.Slot.ConfirmedFlush
	switch {
	case c == 0:
		return in.refuse(in.unfinishedFault())
	case !in.ownIntent() && !in.Adopt:
		return in.refuse(in.withoutOffsetFault())
	case in.Publication == nil:
		return in.refuse(in.noPublicationFault())
	case in.ownIntent():
		return in.publication(HalfMade, c)
	}
	return &Decision{Action: Adopt, Start: c, Notes: []string{fmt.Sprintf("slot %s adopted at "+
		"%s: what happened before is not known", in.SlotName, c)}}
}

// rowAhead: O < C. What we store is stored before the slot is told (K5), so somebody else moved or
// recreated the slot.
func rowAhead(in *StartInput) *Decision {
	o, c := in.Stored.LSN, in.Slot.ConfirmedFlush
	if o >= c {
		return nil
	}
	return in.gap(&Gap{
		Code: fault.SlotAhead, From: o, To: c,
		Reason: "another program advanced or recreated the slot",
	})
}

// rowPublication: C <= O <= W. Start at O, if the publication is what it was.
func rowPublication(in *StartInput) Decision {
	d := in.publication(Resume, in.Stored.LSN)
	if in.Stored.Timeline != 0 && in.Server.Timeline != in.Stored.Timeline {
		point, _ := in.switchPoint()
		d.Notes = append(d.Notes, fmt.Sprintf("the server was promoted: timeline %d became %d at "+
			"%s, after the stored position %s", in.Stored.Timeline, in.Server.Timeline, point,
			in.Stored.LSN))
	}
	return *d
}

func (in *StartInput) publication(action Action, start LSN) *Decision {
	changes := Compare(in.Stored.Publication, in.Publication, in.Captured, in.Stored.Intent)
	missing := in.Publication == nil && in.Stored.Publication == nil
	if missing {
		changes = []Change{{
			Kind: PublicationGone, Name: in.PublicationName, Gap: true,
			Stored: "unknown", Present: "none",
		}}
	}
	if gaps := GapChanges(changes); len(gaps) > 0 {
		d := in.gap(&Gap{
			Code: fault.PublicationChanged, From: start, To: in.Server.WALEnd,
			Reason: gaps[0].String(), Changes: gaps,
		})
		d.Changes = changes
		return d
	}
	d := &Decision{Action: action, Start: start, Changes: changes}
	for _, c := range changes {
		d.Notes = append(d.Notes, c.String())
	}
	return d
}

func (in *StartInput) storedSystem() string {
	switch {
	case in.Stored == nil:
		return ""
	case in.Stored.SystemID != "":
		return in.Stored.SystemID
	case in.Stored.Intent != nil:
		return in.Stored.Intent.SystemID
	}
	return ""
}

func (in *StartInput) ownIntent() bool {
	if in.Stored == nil || in.Stored.Intent == nil {
		return false
	}
	i := in.Stored.Intent
	return i.Kind == IntentCreate && i.Slot == in.SlotName && i.SystemID == in.Server.SystemID
}

// switchPoint is where the stored timeline ended, as the server's own timeline remembers it.
func (in *StartInput) switchPoint() (LSN, bool) {
	for _, s := range in.Timelines {
		if s.Timeline == in.Stored.Timeline {
			return s.Switch, true
		}
	}
	return 0, false
}

// upToNewSlot ends a gap where the new slot begins, or, when none was made yet, at the end of the
// server's WAL: it grows from there.
func (in *StartInput) upToNewSlot(g *Gap) *Gap {
	g.To = in.NewPoint
	if g.To == 0 {
		g.To, g.Growing = in.Server.WALEnd, true
	}
	return g
}

func (in *StartInput) refuse(f *fault.Error) *Decision {
	return &Decision{Action: Refuse, Fault: f}
}

func (in *StartInput) gap(g *Gap) *Decision {
	d := &Decision{Action: Refuse, Gap: g, Fault: in.gapFault(g)}
	if in.OnGap == OnGapResnapshot {
		d.Action = Repair
	}
	return d
}
