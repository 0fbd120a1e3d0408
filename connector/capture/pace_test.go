package capture

import (
	"testing"
	"time"
)

// paced simulates reads on a clock of the test and returns how long the pacer slept in all.
type paced struct {
	pacer
	at    time.Time
	slept time.Duration
}

func newPaced() *paced {
	p := &paced{at: time.Unix(1_000_000, 0)}
	p.now = func() time.Time { return p.at }
	p.room = func() int { return 4 << 20 }
	p.sleep = func(d time.Duration) { p.slept += d; p.at = p.at.Add(d) }
	return p
}

// read is a read that waits so long for so many bytes.
func (p *paced) read(wait time.Duration, bytes int, full bool) {
	p.before()
	p.at = p.at.Add(wait)
	p.after(bytes, full)
}

func TestAQuietStreamIsReadAtOnce(t *testing.T) {
	p := newPaced()
	for range 5000 { // 1 000 transactions a second, three reads each, 340 bytes in all
		p.read(333*time.Microsecond, 113, false)
	}
	p.read(time.Minute, 200, false)
	for range 40 { // a transaction of 100 rows at once
		p.read(10*time.Microsecond, 600, false)
	}
	p.read(time.Second, 200, false)
	if p.slept != 0 {
		t.Errorf("slept %s", p.slept)
	}
}

func TestABacklogIsLeftToFillTheSocket(t *testing.T) {
	p := newPaced()
	for range 10_000 { // 40 MB/s, a row at a time
		p.read(5*time.Microsecond, 200, false)
		if p.slept > 0 {
			break
		}
	}
	if took := p.at.Sub(time.Unix(1_000_000, 0)); p.slept != paceStart || took > 25*time.Millisecond {
		t.Fatalf("slept %s after %s", p.slept, took)
	}
	for range 30 {
		p.read(time.Millisecond, 400<<10, false)
	}
	p.slept = 0
	p.read(time.Millisecond, 400<<10, false)
	if p.slept != paceMax {
		t.Errorf("slept %s, want %s", p.slept, paceMax)
	}
}

func TestAWaitThatFillsTheSocketIsMadeShorter(t *testing.T) {
	p := newPaced()
	p.room = func() int { return 200 << 10 }
	var last time.Duration
	for range 30 {
		p.slept = 0
		p.read(time.Millisecond, 190<<10, false)
		last = p.slept
	}
	if last != paceMin {
		t.Errorf("slept %s, want %s", last, paceMin)
	}
	for range 30 { // between a quarter and a half: just right
		p.slept = 0
		p.read(time.Millisecond, 80<<10, false)
		last = p.slept
	}
	if last != paceMin {
		t.Errorf("slept %s, want %s still", last, paceMin)
	}
}

func TestAReadThatFilledItsBufferIsFollowedByAnother(t *testing.T) {
	p := newPaced()
	for range 10 {
		p.read(10*time.Millisecond, 1<<20, false)
	}
	p.read(0, 1<<20, true)
	p.slept = 0
	p.read(0, 1<<20, false)
	if p.slept != 0 {
		t.Errorf("slept %s though more was there", p.slept)
	}
}

func TestTheCallersTimeCountsAsWaiting(t *testing.T) {
	p := newPaced()
	for range 10 {
		p.read(10*time.Millisecond, 1<<20, false)
	}
	p.slept = 0
	p.at = p.at.Add(paceMax)
	p.read(0, 1<<20, false)
	if p.slept != 0 {
		t.Errorf("slept %s", p.slept)
	}
}

func TestABacklogThatEndsIsReadAtOnce(t *testing.T) {
	p := newPaced()
	for range 10 {
		p.read(10*time.Millisecond, 1<<20, false)
	}
	p.read(50*time.Millisecond, 200, false) // the last of it
	p.slept = 0
	p.read(100*time.Millisecond, 200, false)
	if p.slept != 0 {
		t.Errorf("slept %s", p.slept)
	}
}

func TestALateStreamIsABacklogAtALowRate(t *testing.T) {
	p := newPaced()
	for range 1000 { // 1 MB/s, a row at a time
		p.read(200*time.Microsecond, 200, false)
	}
	if p.slept != 0 {
		t.Fatalf("slept %s though nothing is late", p.slept)
	}
	p.late = true
	for range 1000 {
		p.read(200*time.Microsecond, 200, false)
	}
	if p.slept == 0 {
		t.Error("did not sleep though everything is late")
	}
}
