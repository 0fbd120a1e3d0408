package check

import (
	"testing"
	"time"
)

func TestPositions(t *testing.T) {
	at := time.Unix(0, 0)
	type look = sample
	ordinary := look{flushed: 10, written: 20, committed: 20, epoch: 1, confirmed: 30}
	for name, c := range map[string]struct {
		looks []look
		crash bool
		fails bool
	}{
		"in order": {looks: []look{ordinary}},
		"all equal": {looks: []look{
			{flushed: 10, written: 10, committed: 10, epoch: 1, confirmed: 10},
		}},
		"a marker on its way": {looks: []look{
			{flushed: 20, written: 20, committed: 10, epoch: 1, confirmed: 30},
		}},
		"a connector that is down": {looks: []look{ordinary, {flushed: 20, written: 20, committed: 20}}},
		"flushed ahead of stored": {looks: []look{
			{flushed: 21, written: 20, committed: 20, epoch: 1, confirmed: 30},
		}, fails: true},
		"stored ahead of confirmed": {looks: []look{
			{flushed: 10, written: 31, committed: 31, epoch: 1, confirmed: 30},
		}, fails: true},
		"flushed falls": {looks: []look{
			ordinary, {flushed: 9, written: 20, committed: 20, epoch: 1, confirmed: 30},
		}, fails: true},
		"flushed falls over a crash of the server": {looks: []look{
			ordinary, {flushed: 9, written: 20, committed: 20, epoch: 1, confirmed: 30},
		}, crash: true},
		"stored falls": {looks: []look{
			ordinary, {flushed: 10, written: 19, committed: 19, epoch: 1, confirmed: 30},
		}, fails: true},
		"confirmed falls within a session": {looks: []look{
			ordinary,
			{flushed: 10, written: 20, committed: 20, epoch: 1, confirmed: 25},
			{at: at.Add(time.Minute), flushed: 10, written: 20, committed: 20, epoch: 1, confirmed: 26},
		}, fails: true},
		"confirmed begins lower in the next session": {looks: []look{
			ordinary,
			{flushed: 10, written: 20, committed: 20, epoch: 1, confirmed: 25},
			{at: at.Add(time.Minute), flushed: 10, written: 20, committed: 20, epoch: 2, confirmed: 26},
		}},
		"a session's record is seen before its first answer": {looks: []look{
			ordinary,
			{flushed: 10, written: 20, committed: 20, epoch: 2},
			{flushed: 10, written: 20, committed: 20, epoch: 2, confirmed: 25},
			{at: at.Add(time.Minute), flushed: 10, written: 20, committed: 20, epoch: 2, confirmed: 26},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Sampler{
				o: SamplerOptions{Patience: 5 * time.Second}, report: newReport(), crashed: c.crash,
			}
			for _, l := range c.looks {
				if l.at.IsZero() {
					l.at = at
				}
				s.judge(l)
			}
			if s.report.Samples != len(c.looks) {
				t.Errorf("%d of %d looks were judged", s.report.Samples, len(c.looks))
			}
			if fails := !s.report.OK(); fails != c.fails {
				t.Errorf("fails: %t, want %t: %v", fails, c.fails, s.report)
			}
		})
	}
}

// The commit that stores a position in exactly-once mode is known to the broker first.
func TestStoredMayBeSeenBeforeConfirmedInExactlyOnceMode(t *testing.T) {
	look := sample{at: time.Now(), flushed: 10, written: 20, committed: 20, epoch: 1, confirmed: 15}
	for exactly, wrong := range map[bool]int{true: 0, false: 1} {
		s := &Sampler{o: SamplerOptions{ExactlyOnce: exactly}, report: newReport()}
		s.judge(look)
		if n := s.report.Counts[Positions]; n != wrong {
			t.Errorf("exactly once %t: %d violations", exactly, n)
		}
	}
	s := &Sampler{o: SamplerOptions{ExactlyOnce: true}, report: newReport()}
	look.flushed = 16
	s.judge(look)
	if s.report.OK() {
		t.Error("the slot was told what is not confirmed, and nobody says so")
	}
}
