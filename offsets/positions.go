package offsets

import (
	"fmt"
	"sync"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// Positions holds the four positions of a session and their inequality:
//
//	flushed <= stored <= confirmed <= received
//
// It is checked at each step in all builds, since the step that breaks it is the one that would
// let the server throw away WAL that Kafka does not have. None of them falls in a session. A
// method that would break the rule changes nothing and returns a fault, which ends the connector.
type Positions struct {
	mu  sync.Mutex
	now PositionSet
}

// PositionSet is a reading of the four positions at one moment.
type PositionSet struct {
	// Received is the highest position that the stream has shown.
	Received LSN
	// Confirmed: the broker has confirmed everything up to it; Confirmed <= Received.
	Confirmed LSN
	// Stored: the offsets topic's broker has confirmed it; Stored <= Confirmed.
	Stored LSN
	// Flushed: told to PostgreSQL; Flushed <= Stored.
	Flushed LSN
}

// NewPositions starts a session at a stored position.
func NewPositions(start LSN) *Positions {
	return &Positions{now: PositionSet{start, start, start, start}}
}

// Snapshot returns the four positions of one moment.
func (p *Positions) Snapshot() PositionSet {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

// Receive moves the received position; a lower one is ignored (the stream's LSNs are not
// monotonic, its positions are).
func (p *Positions) Receive(lsn LSN) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.Received = max(p.now.Received, lsn)
}

// Confirm moves the confirmed position.
func (p *Positions) Confirm(lsn LSN) error {
	return p.move("confirmed", lsn, func(s *PositionSet) *LSN { return &s.Confirmed })
}

// Follow takes the tracker's positions over and returns the confirmed one: what is to be stored
// next. The confirmed one is read first, since the received one only rises.
func (p *Positions) Follow(t *Tracker) (Mark, error) {
	mark := t.ConfirmedMark()
	p.Receive(t.Received())
	return mark, p.Confirm(mark.LSN)
}

// Store moves the stored position.
func (p *Positions) Store(lsn LSN) error {
	return p.move("stored", lsn, func(s *PositionSet) *LSN { return &s.Stored })
}

// Flush moves the flushed position. It comes before the status update is written.
func (p *Positions) Flush(lsn LSN) error {
	return p.move("flushed", lsn, func(s *PositionSet) *LSN { return &s.Flushed })
}

// Told moves the last three for a position that the offsets topic has, and that the slot is told
// next.
func (p *Positions) Told(lsn LSN) error {
	err := p.Confirm(lsn)
	if err == nil {
		err = p.Store(lsn)
	}
	if err == nil {
		err = p.Flush(lsn)
	}
	return err
}

func (p *Positions) move(name string, lsn LSN, field func(*PositionSet) *LSN) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := p.now
	f := field(&next)
	if lsn < *f {
		return fault.New(fault.Internal, fmt.Sprintf(
			"the %s position would fall from %s to %s", name, *f, lsn))
	}
	*f = lsn
	if err := next.Check(); err != nil {
		return err
	}
	p.now = next
	return nil
}

// Check returns a fault when the inequality does not hold.
func (s PositionSet) Check() error {
	if s.Flushed <= s.Stored && s.Stored <= s.Confirmed && s.Confirmed <= s.Received {
		return nil
	}
	return fault.New(fault.Internal, fmt.Sprintf("positions out of order: flushed %s, stored %s, "+
		"confirmed %s, received %s", s.Flushed, s.Stored, s.Confirmed, s.Received))
}
