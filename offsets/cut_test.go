package offsets

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// step is a message of the stream: a Begin (B), a row message (r) or a Commit (C).
type step struct {
	kind  byte
	final LSN // B
	index int64
	lsn   LSN
	skip  bool   // of an r that must be left out
	fails string // part of the fault's text; the stream ends with it
}

func run(t *testing.T, c *Cut, steps []step) {
	t.Helper()
	for i, s := range steps {
		var skip bool
		var err error
		switch s.kind {
		case 'B':
			err = c.Begin(s.final)
		case 'r':
			skip, err = c.Skip(s.index, s.lsn)
		case 'C':
			err = c.Commit()
		}
		if skip != s.skip {
			t.Errorf("step %d: left out %v, want %v", i, skip, s.skip)
		}
		if (err != nil) != (s.fails != "") || err != nil && !strings.Contains(err.Error(), s.fails) {
			t.Errorf("step %d: %v, want %q", i, err, s.fails)
		}
		if err != nil && fault.CodeOf(err) != fault.TransactionChanged {
			t.Errorf("step %d: code %s", i, fault.CodeOf(err))
		}
	}
}

func TestCut(t *testing.T) {
	b := func(final LSN) step { return step{kind: 'B', final: final} }
	r := func(index int64, lsn LSN, skip bool) step {
		return step{kind: 'r', index: index, lsn: lsn, skip: skip}
	}
	c := step{kind: 'C'}
	fails := func(s step, text string) step {
		s.skip, s.fails = false, text
		return s
	}
	for name, tc := range map[string]struct {
		cut     *Cut
		steps   []step
		pending bool // at the end
	}{
		"none": {nil, []step{b(50), r(0, 10, false), c}, false},
		"the one cut": {cutAt(50, 2, 11), []step{
			b(50), r(0, 10, true), r(1, 11, true), r(2, 9, false), c,
		}, false},
		"behind it nothing is left out": {cutAt(50, 1, 10), []step{
			b(50), r(0, 10, true), r(1, 10, false), c, b(60), r(0, 10, false), r(1, 11, false), c,
		}, false},
		"cut behind its last row": {cutAt(50, 1, 10), []step{
			b(50), r(0, 10, true), c, b(60), r(0, 12, false),
		}, false},
		"a smaller one passes whole": {cutAt(50, 1, 10), []step{
			b(40), r(0, 10, false), r(1, 11, false), c, b(50), r(0, 10, true), r(1, 11, false), c,
		}, false},
		"still waited for":     {cutAt(50, 1, 10), []step{b(40), r(0, 10, false), c}, true},
		"a greater one":        {cutAt(50, 1, 10), []step{fails(b(51), "goes on behind it")}, true},
		"a greater one, later": {cutAt(50, 1, 10), []step{b(40), c, fails(b(60), "0/3C")}, true},
		"another row at the cut": {cutAt(50, 2, 11), []step{
			b(50), r(0, 11, true), fails(r(1, 12, true), "lies elsewhere"),
		}, true},
		"fewer rows than are done": {cutAt(50, 3, 12), []step{
			b(50), r(0, 10, true), r(1, 11, true), fails(c, "fewer row messages"),
		}, true},
		"a hole": {cutAt(50, 2, 11), []step{b(50), fails(r(2, 12, false), "skips row messages")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, tc.cut, tc.steps)
			if tc.cut.Pending() != tc.pending {
				t.Errorf("pending %v, want %v", tc.cut.Pending(), tc.pending)
			}
		})
	}
}

func cutAt(final LSN, rows int64, row LSN) *Cut {
	return CutOf(&Record{LSN: 1, LSNCommit: final, EventIndex: rows, RowLSN: row})
}

func TestCutOfARecordWithoutOne(t *testing.T) {
	for _, r := range []*Record{nil, {LSN: 7}, {LSN: 7, LSNCommit: 9}} {
		if c := CutOf(r); c != nil || c.Pending() {
			t.Errorf("%+v: %+v", r, c)
		}
	}
}

// Wherever a stream is cut, and however often, what is done before and after the cuts is the
// stream, once, in its order.
func TestCutProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type tx struct {
			final LSN
			rows  []LSN
		}
		var stream []tx
		var want []LSN // an id for each row: transaction and index
		at := LSN(100)
		for range rapid.IntRange(1, 5).Draw(t, "transactions") {
			var x tx
			for range rapid.IntRange(0, 6).Draw(t, "rows") {
				at += LSN(rapid.IntRange(0, 2).Draw(t, "gap")) // COPY gives rows one LSN
				x.rows = append(x.rows, at)
			}
			at += 10
			x.final = at
			for i := range x.rows {
				want = append(want, x.final<<8|LSN(i))
			}
			stream = append(stream, x)
		}
		var got []LSN
		rec := Record{LSN: 1}
		for sessions := 0; ; sessions++ {
			left := 1 << 20 // row messages and commits until this session dies; what is done is stored
			if sessions < 10 {
				left = rapid.IntRange(0, 8).Draw(t, "until death")
			}
			cut := CutOf(&rec)
			died := false
			for _, x := range stream {
				if x.final < rec.LSN {
					continue // the server starts at rec.LSN
				}
				if err := cut.Begin(x.final); err != nil {
					t.Fatal(err)
				}
				for i, lsn := range x.rows {
					skip, err := cut.Skip(int64(i), lsn)
					if err != nil {
						t.Fatal(err)
					}
					if skip {
						continue
					}
					if left--; left < 0 {
						died = true
						break
					}
					got = append(got, x.final<<8|LSN(i))
					rec.LSNCommit, rec.EventIndex, rec.RowLSN = x.final, int64(i)+1, lsn
				}
				if died {
					break
				}
				if err := cut.Commit(); err != nil {
					t.Fatal(err)
				}
				if left--; left < 0 {
					died = true
					break
				}
				rec.LSN, rec.LSNCommit, rec.EventIndex, rec.RowLSN = x.final+1, 0, 0, 0
			}
			if !died {
				break
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%d rows, want %d", len(got), len(want))
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("row %d is %x, want %x", i, got[i], want[i])
			}
		}
	})
}
