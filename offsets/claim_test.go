package offsets

import (
	"errors"
	"slices"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// found is a look that says to go on at a position.
func found(at LSN) (Decision, StartInput) {
	return Decision{Action: Resume, Start: at}, StartInput{
		Stored: &Record{LSN: at, SystemID: "1"}, Slot: &SlotInfo{ConfirmedFlush: at},
	}
}

func TestClaimOrder(t *testing.T) {
	broken := errors.New("broken")
	moved := func() (Decision, StartInput) {
		d, in := found(100)
		in.Stored = &Record{LSN: 200, SystemID: "1"}
		return d, in
	}
	for name, tc := range map[string]struct {
		start, fence error
		second       func() (Decision, StartInput)
		calls        []string
		differs      bool
		fails        bool
	}{
		"whole": {calls: []string{"start", "fence", "look"}},
		"the slot is somebody else's": {
			start: fault.New(fault.SlotInUse, ""), calls: []string{"start"}, differs: true,
		},
		"no connection": {start: broken, calls: []string{"start"}, fails: true},
		"no fence":      {fence: broken, calls: []string{"start", "fence"}, fails: true},
		"another record": {
			second: moved, calls: []string{"start", "fence", "look"}, differs: true,
		},
		"refused at the second look": {
			second: func() (Decision, StartInput) {
				return Decision{Action: Refuse, Fault: fault.New(fault.SlotLost, "")}, StartInput{}
			},
			calls: []string{"start", "fence", "look"}, fails: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var calls []string
			d, in := found(100)
			differs, err := Claim{
				Start: func(at LSN) (int32, error) {
					calls = append(calls, "start")
					if at != 100 {
						t.Errorf("starts at %s", at)
					}
					return 7, tc.start
				},
				Fence: func() error { calls = append(calls, "fence"); return tc.fence },
				Look: func(self int32) (Decision, StartInput, error) {
					calls = append(calls, "look")
					if self != 7 {
						t.Errorf("looks as PID %d", self)
					}
					d, in := found(100)
					if tc.second != nil {
						d, in = tc.second()
					}
					return d, in, nil
				},
			}.Take(&d, &in)
			if !slices.Equal(calls, tc.calls) {
				t.Errorf("calls %v, want %v", calls, tc.calls)
			}
			if (differs != "") != tc.differs || (err != nil) != tc.fails {
				t.Errorf("differs %q, err %v", differs, err)
			}
		})
	}
}

func TestFreshOrder(t *testing.T) {
	for name, tc := range map[string]struct {
		action Action
		calls  []string
		again  bool
	}{
		"nobody else":       {FreshStart, []string{"fence", "look", "intend", "create"}, false},
		"a faster one":      {Wait, []string{"fence", "look"}, true},
		"a faster one died": {Resume, []string{"fence", "look"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var calls []string
			say := func(what string) { calls = append(calls, what) }
			again, err := Fresh{
				Fence: func() error { say("fence"); return nil },
				Look: func() (Decision, StartInput, error) {
					say("look")
					return Decision{Action: tc.action}, StartInput{}, nil
				},
				Intend: func(*StartInput) error { say("intend"); return nil },
				Create: func() error { say("create"); return nil },
			}.Make()
			if err != nil || again != tc.again || !slices.Equal(calls, tc.calls) {
				t.Errorf("again %t, err %v, calls %v", again, err, calls)
			}
		})
	}
}

func TestLook(t *testing.T) {
	gone := &Gap{}
	for name, tc := range map[string]struct {
		looks []Decision // the last one is seen for ever
		moves bool       // the stored position moves between the looks
		want  int        // how often is looked
		code  fault.Code
	}{
		"no gap":                {looks: []Decision{{Action: Resume}}, want: 1},
		"two looks agree":       {looks: []Decision{{Action: Refuse, Gap: gone}}, want: 2},
		"a gap that was a race": {looks: []Decision{{Gap: gone}, {Action: Resume}}, want: 2},
		"it never holds still": {
			looks: []Decision{{Gap: gone}}, moves: true, want: looks, code: fault.SlotInUse,
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			d, _, err := Look(func() (Decision, StartInput, error) {
				d := tc.looks[min(n, len(tc.looks)-1)]
				n++
				in := StartInput{SlotName: "s", Stored: &Record{LSN: 100}}
				if tc.moves {
					in.Stored.LSN += LSN(n)
				}
				return d, in, nil
			})
			if n != tc.want {
				t.Errorf("looked %d times, want %d", n, tc.want)
			}
			if tc.code != "" {
				if !fault.Has(err, tc.code) {
					t.Errorf("error %v, want %s", err, tc.code)
				}
			} else if last := tc.looks[len(tc.looks)-1]; err != nil || d.Action != last.Action || d.Gap != last.Gap {
				t.Errorf("got %+v, %v, want %+v", d, err, last)
			}
		})
	}
}
