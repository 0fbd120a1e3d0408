package check

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
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
			ordinary, {flushed: 10, written: 20, committed: 20, epoch: 1, confirmed: 30, fell: []fall{{20, 19}}},
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

// A record that stores less and is soon written over is seen too, though no look falls into its time.
func TestARecordThatFallsBetweenTwoLooksIsSeen(t *testing.T) {
	s := newStoredReader(nil, "offsets", "key")
	for offset, value := range []string{
		`{"lsn":20}`, `{"lsn":20}`, `{"lsn":19}`, `{"note":"no position"}`, `{"lsn":30}`,
	} {
		s.take(&kgo.Record{Key: []byte("key"), Value: []byte(value), Offset: int64(offset)})
	}
	s.take(&kgo.Record{Key: []byte("another"), Value: []byte(`{"lsn":1}`), Offset: 5})
	if fell := s.takeFell(); len(fell) != 1 || fell[0] != (fall{was: 20, is: 19}) {
		t.Errorf("%v fell, want the one from 20 to 19", fell)
	}
	if again := s.takeFell(); again != nil {
		t.Errorf("%v is told twice", again)
	}
}
