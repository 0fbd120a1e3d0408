package reselect

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/tidemark-cdc/tidemark/connector/decode"
	"github.com/tidemark-cdc/tidemark/schema"
)

// asked is a server for a Hold: it notes what it is asked, and answers with the row's name.
type asked struct {
	t         *testing.T
	questions []string
	reason    Reason // of every answer
	some      int    // answers at most so many rows; 0: all
	fail      error
	budgets   []int64
}

func (a *asked) Ask(
	_ context.Context, q Question, rows [][][]byte, xids []uint32, budget int64,
) ([]Answer, error) {
	slices.Sort(xids)
	text := fmt.Sprint(q.Relation.Name, q.Columns, xids)
	for _, r := range rows {
		text += fmt.Sprintf(" %s", r)
	}
	a.questions = append(a.questions, text)
	a.budgets = append(a.budgets, budget)
	out := make([]Answer, len(rows))
	for i, r := range rows {
		if a.some > 0 && i >= a.some {
			break
		}
		out[i] = Answer{Done: true, Reason: a.reason}
		if a.reason == "" {
			for _, c := range q.Columns {
				out[i].Values = append(out[i].Values, schema.Datum{
					Kind: schema.DatumText, Text: fmt.Appendf(nil, "%s.%d", r[0], c),
				})
			}
		}
	}
	return out, a.fail
}

var (
	relationA = &schema.Relation{OID: 1, Name: "a"}
	relationB = &schema.Relation{OID: 2, Name: "b"}
)

// update is an event of the stream; its texts are the frame's, which is overwritten after Add.
func update(rel *schema.Relation, xid uint32, id string) (*decode.Event, []byte) {
	frame := []byte(id)
	return &decode.Event{
		Kind: decode.KindUpdate, Relation: rel, Tx: &decode.Tx{XID: xid}, Unchanged: true,
		New: schema.Tuple{
			{Kind: schema.DatumText, Text: frame},
			{Kind: schema.DatumUnchanged},
			{Kind: schema.DatumUnchanged},
		},
	}, frame
}

func add(h *Hold, rel *schema.Relation, xid uint32, id string, columns ...int) {
	ev, frame := update(rel, xid, id)
	var w *Want
	if len(columns) > 0 {
		w = &Want{Question{rel, []int{0}, columns}, [][]byte{ev.New[0].Text}}
	}
	h.Add(ev, w, 100)
	clear(frame)
}

// drain takes everything out: an event in one line each.
func drain(t *testing.T, h *Hold, a Asker) (out []string) {
	t.Helper()
	for {
		held, err := h.Next(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		if held == nil {
			return out
		}
		line := held.Event.Relation.Name
		for _, d := range held.Event.New {
			line += fmt.Sprintf(" %c%s", d.Kind, d.Text)
		}
		out = append(out, line+string(held.Reason))
	}
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s\n got %v\nwant %v", what, got, want)
	}
}

func TestEventsKeepTheirOrderAndRowsAreAskedByTable(t *testing.T) {
	a := &asked{t: t}
	h := NewHold(1 << 20)
	add(h, relationA, 7, "x", 1)
	add(h, relationB, 7, "x", 1, 2)
	add(h, relationA, 7, "plain")
	add(h, relationA, 8, "y", 1)
	add(h, relationA, 9, "x", 1) // the same row again
	add(h, relationA, 9, "z", 2) // other columns: another statement
	equal(t, "events", drain(t, h, a), []string{
		"a tx tx.1 u", "b tx tx.1 tx.2", "a tplain u u", "a ty ty.1 u", "a tx tx.1 u", "a tz u tz.2",
	})
	equal(t, "questions", a.questions, []string{
		"a[1] [7 8 9] [x] [y]", "b[1 2] [7] [x]", "a[2] [9] [z]",
	})
	if !h.Empty() || h.values != 0 || h.bytes != 0 {
		t.Errorf("it is not empty: %d bytes, %d of values", h.bytes, h.values)
	}
}

func TestWhatDoesNotFitIsAskedAgain(t *testing.T) {
	a := &asked{t: t, some: 2}
	h := NewHold(1000)
	for _, id := range []string{"p", "q", "r", "s", "t"} {
		add(h, relationA, 1, id, 1)
	}
	equal(t, "events", drain(t, h, a), []string{
		"a tp tp.1 u", "a tq tq.1 u", "a tr tr.1 u", "a ts ts.1 u", "a tt tt.1 u",
	})
	equal(t, "questions", a.questions, []string{
		"a[1] [1] [p] [q] [r] [s] [t]", "a[1] [1] [r] [s] [t]", "a[1] [1] [t]",
	})
	equal(t, "budgets", a.budgets, []int64{1000, 1000, 1000}) // used answers are given back
}

// A table that cannot be read is asked once for everything that is held, a row that is gone by row.
func TestAReasonOfAStatementIsEveryRows(t *testing.T) {
	for reason, statements := range map[Reason]int{LockTimeout: 1, RowGone: 2, NoIdentity: 2} {
		a := &asked{t: t, reason: reason}
		h := NewHold(1 << 20)
		for i := range maxRows + 10 {
			add(h, relationA, 1, fmt.Sprint("k", i), 1)
		}
		got := drain(t, h, a)
		if len(got) != maxRows+10 || len(a.questions) != statements {
			t.Errorf("%s: %d events, %d statements, want %d", reason, len(got), len(a.questions), statements)
		}
		for i, line := range got {
			if want := fmt.Sprintf("a tk%d u u%s", i, reason); line != want {
				t.Fatalf("%s: %q, want %q", reason, line, want)
			}
		}
	}
}

func TestAHoldIsBounded(t *testing.T) {
	h := NewHold(250)
	if !h.Room(1 << 40) {
		t.Error("an empty one must take any event")
	}
	add(h, relationA, 1, "x", 1)
	add(h, relationA, 1, "y", 1)
	if h.Room(51) || !h.Room(50) {
		t.Error("it takes 250 bytes")
	}
	h = NewHold(1 << 30)
	for range maxEvents {
		if !h.Room(100) {
			t.Fatal("it takes more events")
		}
		add(h, relationA, 1, "x", 1)
	}
	if h.Room(1) {
		t.Error("its number of events is not bounded")
	}
}

func TestAnErrorOfTheConnectionEndsIt(t *testing.T) {
	h := NewHold(1 << 20)
	add(h, relationA, 1, "x", 1)
	broken := errors.New("broken")
	if _, err := h.Next(t.Context(), &asked{t: t, fail: broken}); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

func TestVisible(t *testing.T) {
	const epoch = 3 << 32
	for _, c := range []struct {
		descriptor string
		xid        uint32
		want       bool
	}{
		{"100:100:", 99, true},
		{"100:100:", 100, false}, // not begun when the snapshot was taken
		{"90:100:95,97", 96, true},
		{"90:100:95,97", 97, false},
		{fmt.Sprintf("%d:%d:", epoch+100, epoch+100), 99, true},
		{fmt.Sprintf("%d:%d:%d", epoch+100, epoch+120, epoch+110), 110, false},
		{fmt.Sprintf("%d:%d:", epoch+5, epoch+5), 0xfffffff0, true},                       // of the epoch before
		{fmt.Sprintf("%d:%d:%d", epoch-20, epoch+5, uint64(epoch-16)), 0xfffffff0, false}, // the same, running
		{fmt.Sprintf("%d:%d:", epoch-3, epoch-3), 5, false},                               // of the epoch after
	} {
		got, err := visible(c.descriptor, []uint32{c.xid})
		if got != c.want || err != nil {
			t.Errorf("%s sees %d: %t, %v", c.descriptor, c.xid, got, err)
		}
	}
	if _, err := visible("", []uint32{1}); err == nil {
		t.Error("no snapshot was taken for one")
	}
}
