package offsets

import (
	"fmt"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// Claim is how a session takes the connector over from whoever had it, after a first look that says
// to stream (4-algorithms 4 and 5 of the design). The order is the point:
//
//	first look, START_REPLICATION accepted, fence, second look, first frame
//
// The slot is the mutex: a process that only waits for it never fences a healthy one. The fence
// comes before the record is read again, so that nothing can be stored after that reading but by
// us. And the second look shows what an earlier process stored and acknowledged after the first,
// which the server has answered by silently forwarding our start.
type Claim struct {
	// Start begins to stream at a position, and returns our walsender's PID. The stream hands nothing
	// on yet.
	Start func(LSN) (pid int32, err error)
	// Fence makes the broker refuse every earlier writer of the record.
	Fence func() error
	// Look reads slot and record freshly, and decides; self is what Start returned.
	Look func(self int32) (Decision, StartInput, error)
}

// Take takes the connector over. differs says what has changed since the first look (d, in): end
// the stream and look again. Otherwise d and in become the second look's.
func (c Claim) Take(d *Decision, in *StartInput) (differs string, err error) {
	self, err := c.Start(d.Start)
	switch fault.CodeOf(err) {
	case fault.SlotInUse, fault.SlotLost, fault.SlotMissing: // since the look: the matrix says more
		return string(fault.CodeOf(err)), nil
	}
	if err != nil {
		return "", err
	}
	if err := c.Fence(); err != nil {
		return "", err
	}
	again, second, err := c.Look(self)
	if err != nil {
		return "", err
	}
	switch {
	case again.Action == Refuse:
		return "", again.Fault
	case again.Action != Repair:
	case d.Action != Repair:
		return "a gap came to light", nil
	default: // the repair that is being made; the publication is the one of now
		again.Start = d.Start
	}
	differs, err = SecondLook(in, &second, d.Start)
	if err == nil && differs == "" && again.Start != d.Start {
		differs = "the position to begin at"
	}
	*d, *in = again, second
	return differs, err
}

// Fresh is how a fresh start makes what it needs, after a look that found neither slot nor position:
//
//	fence, look again, intent, publication and slot
//
// The look after the fence is what keeps a process from writing its intent over the position of
// another one that was faster: that one can store nothing any more.
type Fresh struct {
	// Fence makes the broker refuse every earlier writer of the record.
	Fence func() error
	// Look reads slot and record freshly, and decides.
	Look func() (Decision, StartInput, error)
	// Intend stores the intent over the record that Look has read, so that a crash is recognised.
	Intend func(*StartInput) error
	// Create makes publication and slot.
	Create func() error
}

// Make makes them. again says that somebody else begins too: look again.
func (f Fresh) Make() (again bool, err error) {
	if err := f.Fence(); err != nil {
		return false, err
	}
	d, in, err := f.Look()
	if err != nil || d.Action != FreshStart {
		return err == nil, err
	}
	if err := f.Intend(&in); err != nil {
		return false, err
	}
	return false, f.Create()
}

// looks bounds Look.
const looks = 20

// Look is once, and again when that says gap: another process that does its work between the
// reading of the slot and that of the record makes the slot seem gone. What two looks agree on is;
// when each of 20 differs from the one before, somebody else is at work: slot_in_use.
func Look(once func() (Decision, StartInput, error)) (Decision, StartInput, error) {
	var before *StartInput
	for range looks {
		d, in, err := once()
		if err != nil || d.Gap == nil {
			return d, in, err
		}
		if before != nil && (before.Slot == nil) == (in.Slot == nil) &&
			(in.Slot == nil || before.Slot.ConfirmedFlush == in.Slot.ConfirmedFlush) {
			same, err := sameRecord(before.Stored, in.Stored)
			if same || err != nil {
				return d, in, err
			}
		}
		before = &in
	}
	return Decision{}, *before, fault.New(fault.SlotInUse, fmt.Sprintf(
		"slot %s and the stored position seem not to belong together", before.SlotName)).With(
		fmt.Sprintf("one of them moved at each of %d looks", looks), "that nobody else moves them",
		"see that only one process runs this connector")
}
