package offsets

import (
	"strings"
	"testing"
)

func TestSecondLook(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*StartInput)
		want   string // "": the decision stands
	}{
		"nothing changed":            {func(*StartInput) {}, ""},
		"our own status update":      {func(in *StartInput) { in.Slot.ConfirmedFlush = 300 }, ""},
		"an earlier process stored":  {func(in *StartInput) { in.Stored.LSN = 400 }, "offsets record"},
		"the record was reset":       {func(in *StartInput) { in.Stored = nil }, "offsets record"},
		"somebody advanced the slot": {func(in *StartInput) { in.Slot.ConfirmedFlush = 250 }, "0/FA"},
		"the slot is gone":           {func(in *StartInput) { in.Slot = nil }, "gone"},
		"the slot is another's":      {func(in *StartInput) { in.Slot.ActivePID = 5 }, "PID 5"},
		"the slot was invalidated":   {func(in *StartInput) { in.Slot.Conflicting = true }, "invalid"},
		"another server answers":     {func(in *StartInput) { in.Server.SystemID = "8" }, "another"},
		"the server was promoted":    {func(in *StartInput) { in.Server.Timeline = 2 }, "another server"},
	} {
		first, second := whole(), whole()
		second.Slot.Active, second.Slot.ActivePID, second.SelfPID = true, 4711, 4711
		c.change(&second)
		got, err := SecondLook(&first, &second, 300)
		if err != nil || (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
}
