package main

import (
	"math/rand/v2"
	"time"
)

// kind is a sort of fault.
type kind string

// The faults. Each is healed again, by which time the connector has to go on by itself.
const (
	killConnector   kind = "connector: kill -9"
	stopConnector   kind = "connector: SIGTERM"
	freezeConnector kind = "connector: SIGSTOP, SIGCONT"
	secondProcess   kind = "connector: second process"
	takeOver        kind = "connector: stands still, is taken over, wakes up"
	killBroker      kind = "broker: kill -9"
	cutBroker       kind = "broker: network cut"
	stallBroker     kind = "broker: network stalls"
	restartFast     kind = "PostgreSQL: fast restart"
	restartNow      kind = "PostgreSQL: immediate restart"
	killServer      kind = "PostgreSQL: kill -9"
	cutServer       kind = "PostgreSQL: network cut"
	stallServer     kind = "PostgreSQL: network stalls"
	resetServer     kind = "PostgreSQL: connections reset"
	endWalsender    kind = "PostgreSQL: pg_terminate_backend"
	killRegistry    kind = "registry: kill -9"
)

// bag is what is drawn from until it is empty, and then filled again: so that every kind has its
// turn, and a kill of the connector more often than others.
var bag = []kind{
	killConnector, killConnector, killConnector, stopConnector, freezeConnector, secondProcess,
	takeOver, killBroker, cutBroker, stallBroker, restartFast, restartNow, killServer, cutServer,
	stallServer, resetServer, endWalsender, killRegistry,
}

// plan is a fault that was drawn.
type plan struct {
	kind  kind
	pause time.Duration // before it
	hold  time.Duration // how long it lasts, where it is not a moment
}

// planner draws faults. What it draws depends on seed, round, mode and the round's length alone.
type planner struct {
	random *rand.Rand
	left   []kind
	mode   string
	pause  float64 // at most, in seconds
	hold   float64
}

func newPlanner(seed uint64, round int, mode string, length time.Duration) *planner {
	p := &planner{
		random: rand.New(rand.NewPCG(seed, uint64(round))), mode: mode, pause: 15, hold: 25,
	}
	if length < 10*time.Minute { // every kind is to have its turn
		p.pause, p.hold = 3, 5
	}
	return p
}

// next draws a fault. A process that wakes up in at-least-once mode may still send what it held,
// between the events of the one that took over, which is no broken promise but would look to the
// checker like one: that fault is for exactly-once mode, where nobody may see those events.
func (p *planner) next() plan {
	for {
		if len(p.left) == 0 {
			p.left = append(p.left, bag...)
			p.random.Shuffle(len(p.left), func(i, j int) { p.left[i], p.left[j] = p.left[j], p.left[i] })
		}
		k := p.left[len(p.left)-1]
		p.left = p.left[:len(p.left)-1]
		drawn := plan{kind: k, pause: p.between(1, p.pause), hold: p.between(1, p.hold)}
		if k != takeOver || p.mode == "eos" {
			return drawn
		}
	}
}

// between draws a duration, in seconds.
func (p *planner) between(low, high float64) time.Duration {
	return time.Duration((low + p.random.Float64()*(high-low)) * float64(time.Second)).
		Round(100 * time.Millisecond)
}
