package offsets

import (
	"bytes"
	"fmt"
)

// SecondLook compares the readings of before and after START_REPLICATION and returns what differs;
// "" is that the decision of the first look stands. Anything else means: disconnect and evaluate
// again. Between the two, an earlier process may have stored and acknowledged, and the server has
// silently forwarded our start to where it left the slot.
//
// The confirmed position may have become the start position itself: our own status updates tell it
// as soon as the session stands.
func SecondLook(first, second *StartInput, start LSN) (string, error) {
	if second.Slot == nil || first.Slot == nil {
		return "the slot is gone", nil
	}
	same, err := sameRecord(first.Stored, second.Stored)
	if err != nil {
		return "", err
	}
	c, d := first.Slot.ConfirmedFlush, second.Slot.ConfirmedFlush
	switch {
	case !same:
		return "another process has written the offsets record", nil
	case second.Slot.Active && second.Slot.ActivePID != second.SelfPID:
		return fmt.Sprintf("the slot is active for PID %d", second.Slot.ActivePID), nil
	case d != c && d != start:
		return fmt.Sprintf("the slot was at %s and is at %s", c, d), nil
	case second.Slot.Lost():
		return "the server has invalidated the slot", nil
	case first.Server.SystemID != second.Server.SystemID,
		first.Server.Timeline != second.Server.Timeline:
		return "it is another server", nil
	}
	return "", nil
}

// sameRecord reports whether two readings of the offsets record are one; nil is none.
func sameRecord(a, b *Record) (bool, error) {
	was, err := marshalOrNil(a)
	if err != nil {
		return false, err
	}
	now, err := marshalOrNil(b)
	return bytes.Equal(was, now), err
}

func marshalOrNil(r *Record) ([]byte, error) {
	if r == nil {
		return nil, nil
	}
	return r.Marshal()
}
