package sim

import "math/rand/v2"

// tape is the stream of choices that a run makes, each a number below a bound. It is drawn from a
// seed and written down; a tape that was written down gives the same run again, and a changed one a
// similar run, which is how a failing run is made smaller. 0 is the dullest choice.
type tape struct {
	rng *rand.Rand // nil: the choices are those of in
	in  []uint32
	out []uint32
	off bool // the script is over: every choice is 0

	later *rand.Rand
}

func (t *tape) n(bound int) int {
	if t.off || bound <= 1 {
		return 0
	}
	var v uint32
	switch {
	case t.rng != nil:
		v = uint32(t.rng.IntN(bound))
	case len(t.out) < len(t.in):
		v = t.in[len(t.out)] % uint32(bound)
	}
	t.out = append(t.out, v)
	return int(v)
}

// oneIn is true once in n times, and never on an exhausted tape.
func (t *tape) oneIn(n int) bool { return t.n(n) == n-1 && n > 1 }

// over reports whether a tape that was written down has no more choices.
func (t *tape) over() bool { return t.rng == nil && len(t.out) >= len(t.in) }

// jitter is a choice too, and one that goes on when the script is over: processes that wait for
// each other must not do so in step.
func (t *tape) jitter(bound int) int {
	if !t.off {
		return t.n(bound)
	}
	if t.later == nil {
		t.later = rand.New(rand.NewPCG(3, 4))
	}
	return t.later.IntN(max(bound, 1))
}
