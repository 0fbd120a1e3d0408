package reselect

import (
	"context"
	"encoding/binary"
	"iter"
	"maps"
	"slices"

	"github.com/tidemark-cdc/tidemark/connector/decode"
	"github.com/tidemark-cdc/tidemark/schema"
)

// maxEvents bounds what a Hold keeps, beside the bytes.
const maxEvents = 8192

// Want is what an event lacks.
type Want struct {
	Question Question
	Identity [][]byte // texts of Question.Identity; Hold.Add copies them
}

// Held is an event of the stream that waited for its turn.
type Held struct {
	Event *decode.Event // owned; values that were read again are in its New
	Size  int64         // as it was given to Hold.Add
	// Columns are the indices of what it lacked, Reason why they could not be had, if so.
	Columns []int
	Reason  Reason

	want *want
}

// want is a Want in the Hold: key tells the rows of a question apart.
type want struct {
	question Question
	identity [][]byte
	key      string
	answer   *answer
}

// answer is shared by the events of one row.
type answer struct {
	Answer
	users int
}

// Hold keeps events in the order of the stream while values of some of them are read again. It is
// empty, or its first event lacks something. It is not safe for concurrent use.
type Hold struct {
	limit  int64
	items  []Held
	bytes  int64 // of the events
	values int64 // of the answers
	tx     *decode.Tx
}

// NewHold returns a Hold whose events, and apart from them their values, take at most limit bytes.
func NewHold(limit int64) *Hold { return &Hold{limit: limit} }

// Empty reports whether nothing is held.
func (h *Hold) Empty() bool { return len(h.items) == 0 }

// Room reports whether an event of size bytes may be added. An empty Hold takes any.
func (h *Hold) Room(size int64) bool {
	return h.Empty() || len(h.items) < maxEvents && h.bytes+size <= h.limit
}

// Add takes a copy of an event; w is nil when it lacks nothing.
func (h *Hold) Add(ev *decode.Event, w *Want, size int64) {
	item := Held{Event: ev.Clone(h.tx), Size: size}
	h.tx = item.Event.Tx
	if w != nil {
		item.Columns = w.Question.Columns
		item.want = &want{question: w.Question}
		var key []byte
		for _, text := range w.Identity {
			item.want.identity = append(item.want.identity, slices.Clone(text))
			key = append(binary.AppendUvarint(key, uint64(len(text))), text...)
		}
		item.want.key = string(key)
	}
	h.items = append(h.items, item)
	h.bytes += size
}

// Asker is what a Hold asks: a Reader.
type Asker interface {
	Ask(ctx context.Context, q Question, rows [][][]byte, xids []uint32, budget int64) (
		[]Answer, error,
	)
}

// Asks reports what table has to be asked before Next can return, nil for none.
func (h *Hold) Asks() *schema.Relation {
	if h.Empty() || h.items[0].want == nil || h.items[0].want.answer != nil {
		return nil
	}
	return h.items[0].want.question.Relation
}

// Next takes the first event out, with its values; asker is asked when they are not there yet. It
// returns nil when the Hold is empty. After an error the Hold is of no use any more.
func (h *Hold) Next(ctx context.Context, asker Asker) (*Held, error) {
	if h.Empty() {
		return nil, nil
	}
	for h.Asks() != nil {
		if err := h.ask(ctx, asker); err != nil {
			return nil, err
		}
	}
	item := h.items[0]
	h.items[0] = Held{}
	h.items = h.items[1:]
	h.bytes -= item.Size
	if item.want != nil {
		h.fill(&item)
	}
	if h.Empty() {
		h.items, h.tx = nil, nil
	}
	return &item, nil
}

// fill completes an event's new row.
func (h *Hold) fill(item *Held) {
	a := item.want.answer
	item.Reason = a.Reason
	for i, v := range a.Values {
		item.Event.New[item.Columns[i]] = v
	}
	if a.users--; a.users == 0 {
		h.values -= a.size()
	}
	item.want = nil
}

// ask has the rows read that the first event's question is about, and those behind it that ask the
// same.
func (h *Hold) ask(ctx context.Context, asker Asker) error {
	first := h.items[0].want.question
	var rows [][][]byte
	index := map[string]int{}
	seen := map[uint32]bool{}
	for w, xid := range h.wants(first) {
		if _, ok := index[w.key]; !ok {
			if len(rows) == maxRows {
				continue
			}
			index[w.key] = len(rows)
			rows = append(rows, w.identity)
		}
		seen[xid] = true
	}
	xids := slices.Collect(maps.Keys(seen))
	got, err := asker.Ask(ctx, first, rows, xids, h.limit-h.values)
	if err != nil {
		return err
	}
	answers := make([]*answer, len(got))
	for i := range got {
		if got[i].Done {
			answers[i] = &answer{Answer: got[i]}
			h.values += got[i].size()
		}
	}
	for w := range h.wants(first) {
		i, ok := index[w.key]
		if !ok && got[0].Reason.ofAll() {
			i, ok = 0, true // it would be the same again
		}
		if ok && answers[i] != nil {
			w.answer = answers[i]
			w.answer.users++
		}
	}
	return nil
}

// wants are those that ask q and have no answer, each with its transaction.
func (h *Hold) wants(q Question) iter.Seq2[*want, uint32] {
	return func(yield func(*want, uint32) bool) {
		for i := range h.items {
			w := h.items[i].want
			if w == nil || w.answer != nil || !q.same(w.question) {
				continue
			}
			if !yield(w, h.items[i].Event.Tx.XID) {
				return
			}
		}
	}
}

func (q Question) same(other Question) bool {
	return q.Relation == other.Relation && slices.Equal(q.Columns, other.Columns) &&
		slices.Equal(q.Identity, other.Identity)
}
