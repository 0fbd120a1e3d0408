package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Failure is a run that broke the promise, as small as it could be made.
type Failure struct {
	Config    Config
	Violation Violation
	History   []string
	Choices   int // of the small run
	Drawn     int // of the seed's run
}

// Run runs a seed, and adds to counts what came up in it. It returns nil when every check holds.
func Run(seed uint64, m Mutation, counts map[string]int) *Failure {
	w := newWorld(ConfigOf(seed, m), tape{rng: rand.New(rand.NewPCG(seed, 2))})
	w.run()
	for what, n := range w.counts {
		counts[what] += n
	}
	if w.bad == nil {
		return nil
	}
	return &Failure{Config: w.cfg, Violation: *w.bad, Choices: len(w.out), Drawn: len(w.out)}
}

// Minimise makes a seed's failing run smaller, and writes its history down: it leaves out stretches
// of choices, and makes choices dull, as long as the same check fails.
func Minimise(seed uint64, m Mutation, budget int) *Failure {
	w := newWorld(ConfigOf(seed, m), tape{rng: rand.New(rand.NewPCG(seed, 2))})
	w.run()
	if w.bad == nil {
		return nil
	}
	drawn, check := len(w.out), w.bad.Check
	best := w.out
	try := func(in []uint32) bool {
		if budget <= 0 {
			return false
		}
		budget--
		next := newWorld(w.cfg, tape{in: in})
		next.run()
		if next.bad == nil || next.bad.Check != check || len(next.out) > len(in) {
			return false
		}
		best = next.out
		return true
	}
	try(best)
	for before := -1; before != len(best) && budget > 0; {
		before = len(best)
		for size := len(best) / 2; size > 0; size /= 2 {
			for at := 0; at+size <= len(best); {
				if !try(append(append([]uint32(nil), best[:at]...), best[at+size:]...)) {
					at += size
				}
			}
		}
	}
	for at := 0; at < len(best) && budget > 0; at++ {
		if best[at] != 0 {
			dull := append([]uint32(nil), best...)
			dull[at] = 0
			try(dull)
		}
	}
	last := newWorld(w.cfg, tape{in: best})
	last.keep = true
	last.run()
	return &Failure{
		Config: w.cfg, Violation: *last.bad, History: last.history, Choices: len(best), Drawn: drawn,
	}
}

// String is the failure for a person: what broke, how it came to that, and how to see it again.
func (f *Failure) String() string {
	mutation := ""
	if f.Config.Mutation != "" {
		mutation = fmt.Sprintf(" TIDEMARK_SIM_MUTATION='%s'", f.Config.Mutation)
	}
	return fmt.Sprintf("%s: %s\n%s\n%d of %d choices are left\n\n%s\n\nagain: "+
		"TIDEMARK_SIM_SEED=%d%s go test ./testenv/sim -run '^TestOneSeed$' -v", f.Violation.Check,
		f.Violation.Text, f.Config, f.Choices, f.Drawn, strings.Join(f.History, "\n"),
		f.Config.Seed, mutation)
}
