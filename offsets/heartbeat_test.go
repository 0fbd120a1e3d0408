package offsets

import (
	"testing"
	"time"
)

var hbStart = time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time {
	return hbStart.Add(time.Duration(seconds * float64(time.Second)))
}

func newHB() *Heartbeat {
	return NewHeartbeat(HeartbeatOptions{
		Connector: "shop", Instance: "i1", Interval: 10 * time.Second, Verify: 300 * time.Second,
		Timeout: 60 * time.Second,
	}, hbStart)
}

func wantDue(t *testing.T, h *Heartbeat, seconds float64, want bool) {
	t.Helper()
	if got := h.Due(at(seconds)); got != want {
		t.Errorf("due after %v s: %t", seconds, got)
	}
}

func wantOutcome(t *testing.T, h *Heartbeat, pos LSN, seconds float64, want HeartbeatOutcome) {
	t.Helper()
	if got := h.Outcome(pos, at(seconds)); got != want {
		t.Errorf("outcome at %s after %v s: %s, want %s", pos, seconds, got, want)
	}
}

func TestHeartbeatDueWhenNoPositionCouldBeStored(t *testing.T) {
	h := newHB()
	wantDue(t, h, 9.9, false)
	wantDue(t, h, 10, true)
	h.Progress(at(15))
	wantDue(t, h, 24.9, false)
	wantDue(t, h, 25, true)
}

func TestHeartbeatDueForVerificationThoughPositionsAreStored(t *testing.T) {
	h := newHB()
	for s := 5.0; s < 299; s += 5 {
		h.Progress(at(s))
		wantDue(t, h, s, false)
	}
	h.Progress(at(299))
	wantDue(t, h, 300, true)
	h.Transaction(at(300))
	h.Progress(at(300))
	wantDue(t, h, 301, false)
}

func TestHeartbeatIntervalsOfZeroAreOff(t *testing.T) {
	h := NewHeartbeat(HeartbeatOptions{Instance: "i", Timeout: time.Minute}, hbStart)
	wantDue(t, h, 1e6, false)
	h = NewHeartbeat(HeartbeatOptions{Instance: "i", Verify: time.Minute}, hbStart)
	wantDue(t, h, 59, false)
	wantDue(t, h, 60, true)
}

func TestHeartbeatAtMostOneIsOutstanding(t *testing.T) {
	h := newHB()
	c := h.Start(at(10))
	if c != (HeartbeatContent{"shop", "i1", 1}) {
		t.Fatalf("%+v", c)
	}
	wantDue(t, h, 1000, false)
	h.Emitted(1, 100, at(10))
	wantDue(t, h, 1000, false)
	if !h.Seen(c) {
		t.Fatal("not recognised")
	}
	wantOutcome(t, h, 200, 11, HeartbeatNone)
	wantDue(t, h, 20, true)
	if c := h.Start(at(20)); c.ID != 2 {
		t.Fatalf("%+v", c)
	}
}

func TestHeartbeatFailedIsTriedAgainAfterAnInterval(t *testing.T) {
	h := newHB()
	h.Failed(h.Start(at(10)).ID)
	wantDue(t, h, 19, false)
	wantDue(t, h, 20, true)
}

func TestHeartbeatEchoBeforeTheEmissionReturns(t *testing.T) {
	h := newHB()
	c := h.Start(at(10))
	if !h.Seen(c) || h.Seen(c) {
		t.Fatal("seen once, and not twice")
	}
	wantOutcome(t, h, 500, 11, HeartbeatOK)
	if !h.Emitted(c.ID, 100, at(12)) {
		t.Fatal("Emitted should report the echo")
	}
	wantOutcome(t, h, 500, 12, HeartbeatNone)
}

func TestHeartbeatOfOthersIsNotOurs(t *testing.T) {
	h := newHB()
	c := h.Start(at(10))
	h.Emitted(c.ID, 100, at(10))
	for _, other := range []HeartbeatContent{
		{"shop", "i0", 1}, {"other", "i1", 1}, {"shop", "i1", 2}, {"shop", "i1", 0},
	} {
		if h.Seen(other) {
			t.Errorf("%+v taken for ours", other)
		}
	}
	wantOutcome(t, h, 0, 11, HeartbeatYoung)
}

func TestHeartbeatOutcomes(t *testing.T) {
	h := newHB()
	wantOutcome(t, h, 0, 0, HeartbeatNone)
	c := h.Start(at(10))
	wantOutcome(t, h, 1000, 10, HeartbeatYoung) // its LSN is not known yet
	h.Emitted(c.ID, 100, at(10))
	wantOutcome(t, h, 99, 69, HeartbeatYoung)
	wantOutcome(t, h, 99, 70, HeartbeatLost)
	h.Data(at(40))
	wantOutcome(t, h, 99, 70, HeartbeatBehind)
	wantOutcome(t, h, 99, 99.9, HeartbeatBehind)
	wantOutcome(t, h, 99, 100, HeartbeatLost)
	wantOutcome(t, h, 100, 100, HeartbeatPassed)
	wantOutcome(t, h, 100, 100, HeartbeatNone)
}

func TestHeartbeatClockStandsStillWhileReadingIsHeld(t *testing.T) {
	h := newHB()
	h.Hold(true, at(5))
	wantDue(t, h, 500, false)
	h.Hold(false, at(500))
	wantDue(t, h, 504.9, false)
	wantDue(t, h, 505, true)
	c := h.Start(at(505))
	h.Emitted(c.ID, 100, at(505))
	h.Hold(true, at(510))
	wantOutcome(t, h, 200, 5000, HeartbeatYoung) // in mid-transaction, not passed
	h.Hold(true, at(4000))                       // twice is as good as once
	if got := h.Age(at(5000)); got != 5*time.Second {
		t.Errorf("age %s", got)
	}
	h.Hold(false, at(5000))
	wantOutcome(t, h, 99, 5054.9, HeartbeatYoung)
	wantOutcome(t, h, 99, 5055, HeartbeatLost)
}

func TestHeartbeatResetForANewSession(t *testing.T) {
	h := newHB()
	old := h.Start(at(10))
	h.Emitted(old.ID, 100, at(10))
	h.Reset(at(80))
	wantOutcome(t, h, 500, 80, HeartbeatNone)
	wantDue(t, h, 89, false)
	wantDue(t, h, 90, true)
	if c := h.Start(at(90)); c.ID != 2 || h.Seen(old) {
		t.Errorf("%+v, the old one counts: %t", c, h.Seen(old))
	}
}

func TestHeartbeatContent(t *testing.T) {
	c := HeartbeatContent{Connector: "shop", Instance: "a1", ID: 3}
	if got := c.Marshal(); got != `{"connector":"shop","instance":"a1","id":3}` {
		t.Fatal(got)
	}
	if got, err := ParseHeartbeat([]byte(c.Marshal())); err != nil || got != c {
		t.Fatalf("%+v %v", got, err)
	}
	for _, bad := range []string{"", "hello", `{}`, `{"instance":"a"}`, `{"instance":1,"id":1}`} {
		if _, err := ParseHeartbeat([]byte(bad)); err == nil {
			t.Errorf("%q accepted", bad)
		}
	}
}
