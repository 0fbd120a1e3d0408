package decode

import (
	"reflect"
	"slices"
	"testing"

	"github.com/tidemark-cdc/tidemark/schema"
)

// A clone is what the event was, whatever becomes of its frame and of the session.
func TestACloneStays(t *testing.T) {
	s := NewSession()
	text := func(v string) schema.Datum { return schema.Datum{Kind: schema.DatumText, Text: []byte(v)} }
	null, unchanged := schema.Datum{Kind: schema.DatumNull}, schema.Datum{Kind: schema.DatumUnchanged}
	empty := schema.Datum{Kind: schema.DatumText, Text: []byte{}}
	frames := [][]byte{
		relationFrame(orders()), beginFrame(0x100, 5, 7), wire("O").u64(0x90).str("o1"),
		insertFrame(16385, schema.Tuple{text("1"), empty}),
		updateFrame(16385, 'K', schema.Tuple{text("1"), null}, schema.Tuple{text("2"), unchanged}),
		deleteFrame(16385, 'K', schema.Tuple{text("2"), null}),
		truncateFrame(3, 16385), messageFrame(1, 0x95, "prefix", "content"),
		commitFrame(0x100, 0x110), beginFrame(0x200, 6, 8), commitFrame(0x200, 0x210),
	}
	var clones []*Event
	var before *Tx
	for i, frame := range frames {
		frame = slices.Clone(frame)
		ev, err := s.Decode(1, frame)
		if err != nil {
			t.Fatalf("frame %d: %v", i, err)
		}
		if ev.Unchanged != (ev.Kind == KindUpdate) {
			t.Errorf("frame %d: unchanged %t", i, ev.Unchanged)
		}
		c := ev.Clone(before)
		if !reflect.DeepEqual(c, ev) {
			t.Errorf("frame %d: clone %+v, event %+v", i, c, ev)
		}
		if c.Tx != nil && c.Tx == ev.Tx {
			t.Errorf("frame %d: the clone has the session's transaction", i)
		}
		before = c.Tx
		clones = append(clones, c)
		clear(frame)
	}
	again := NewSession()
	for i, frame := range frames {
		ev, err := again.Decode(1, frame)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(clones[i], ev) {
			t.Errorf("frame %d: the clone became %+v, was %+v", i, clones[i], ev)
		}
		if ev.Size() < int64(len(frame)) {
			t.Errorf("frame %d of %d bytes takes %d", i, len(frame), ev.Size())
		}
	}
	// Two events of one transaction share theirs, and no other.
	if clones[3].Tx != clones[4].Tx || clones[4].Tx == clones[9].Tx || clones[9].Tx.XID != 8 {
		t.Error("transactions are shared otherwise than they are the same")
	}
}
