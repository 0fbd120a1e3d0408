package offsets

import (
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

func TestPositionsMoveInOrder(t *testing.T) {
	p := NewPositions(10)
	p.Receive(30)
	p.Receive(20)
	for _, step := range []error{p.Confirm(30), p.Store(20), p.Flush(20), p.Flush(20)} {
		if step != nil {
			t.Fatal(step)
		}
	}
	want := PositionSet{Received: 30, Confirmed: 30, Stored: 20, Flushed: 20}
	if got := p.Snapshot(); got != want {
		t.Fatalf("%+v", got)
	}
}

func TestPositionsFollowTheTracker(t *testing.T) {
	tr := NewTracker(10)
	tr.Finish(tr.Begin(15), 20)
	tr.Receive(30)
	p := NewPositions(10)
	mark, err := p.Follow(tr)
	want := PositionSet{Received: 30, Confirmed: 20, Stored: 10, Flushed: 10}
	if err != nil || mark.LSN != 20 || p.Snapshot() != want {
		t.Fatalf("%+v %+v %v", mark, p.Snapshot(), err)
	}
}

func TestPositionsRefuseEachWrongOrder(t *testing.T) {
	for name, step := range map[string]func(*Positions) error{
		"flushed above stored":     func(p *Positions) error { return p.Flush(21) },
		"stored above confirmed":   func(p *Positions) error { return p.Store(31) },
		"confirmed above received": func(p *Positions) error { return p.Confirm(41) },
		"flushed falls":            func(p *Positions) error { return p.Flush(9) },
		"stored falls":             func(p *Positions) error { return p.Store(19) },
		"confirmed falls":          func(p *Positions) error { return p.Confirm(29) },
	} {
		p := &Positions{now: PositionSet{Received: 40, Confirmed: 30, Stored: 20, Flushed: 10}}
		err := step(p)
		if !fault.Has(err, fault.Internal) {
			t.Errorf("%s: %v", name, err)
		}
		if p.Snapshot() != (PositionSet{Received: 40, Confirmed: 30, Stored: 20, Flushed: 10}) {
			t.Errorf("%s: moved to %+v", name, p.Snapshot())
		}
	}
}
