package consume

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/connector/decode"
	"github.com/tidemark-cdc/tidemark/envelope"
	"github.com/tidemark-cdc/tidemark/offsets"
	"github.com/tidemark-cdc/tidemark/schema"
)

func TestEventsForAPersonUnderDefaultIdentity(t *testing.T) {
	t.Parallel()
	s := newShop(t, orders(schema.IdentityDefault), primaryKey)
	var recs []envelope.Record
	add := func(r []envelope.Record) { recs = append(recs, r...) }
	add(s.change(decode.KindInsert, 0, nil, tuple("7", "new", "12.50", null, "infinity")))
	add(s.change(decode.KindUpdate, 0, nil,
		tuple("7", "paid", "12.50", unchanged, "2026-11-30 23:59:59.5")))
	add(s.change(decode.KindUpdate, 'K', tuple("7", null, null, null, null),
		tuple("8", "paid", "12.50", "a \"quoted\"\nline", null)))
	add(s.change(decode.KindDelete, 'K', tuple("8", null, null, null, null), nil))
	r, err := s.encoder.Read(nil, s.table, tuple("9", "old", "0.01", null, null),
		envelope.Snapshot{Micros: commitTime, Pos: offsets.Position{CommitLSN: 0x16B3000, Index: -1}})
	if err != nil {
		t.Fatal(err)
	}
	add(r)
	r, err = s.encoder.Truncate(nil, s.table, &decode.Event{
		Kind: decode.KindTruncate, Tx: &tx, Truncated: []*schema.Relation{s.rel},
	})
	if err != nil {
		t.Fatal(err)
	}
	add(r)
	golden(t, "default.txt", printed(t, s.messages(recs...)...))
}

func TestEventsForAPersonUnderFullIdentity(t *testing.T) {
	t.Parallel()
	s := newShop(t, orders(schema.IdentityFull), primaryKey)
	old := tuple("7", "new", "12.50", "kept out of line", "infinity")
	var recs []envelope.Record
	recs = append(recs, s.change(decode.KindUpdate, 'O', old,
		tuple("7", "paid", "12.05", unchanged, "2026-11-30 00:00:00"))...)
	recs = append(recs, s.change(decode.KindDelete, 'O', old, nil)...)
	golden(t, "full.txt", printed(t, s.messages(recs...)...))
}

// The old row's key is known, and its other fields are null in nobody's sense: no line may show
// them as if they had changed.
func TestNoDifferenceIsDrawnWithoutTheFullOldRow(t *testing.T) {
	t.Parallel()
	s := newShop(t, orders(schema.IdentityDefault), primaryKey)
	for _, recs := range [][]envelope.Record{
		s.change(decode.KindUpdate, 0, nil, tuple("7", "paid", "1.00", null, null)),
		s.change(decode.KindUpdate, 'K', tuple("7", null, null, null, null),
			tuple("7", "paid", "1.00", null, null)),
	} {
		m := s.messages(recs...)[0]
		if out := printed(t, m); strings.Contains(out, "->") || strings.Contains(out, "~") {
			t.Errorf("a difference was drawn:\n%s", out)
		}
		// nor for a writer that fills before and does not say how much of the row it is
		row := m.Value.(Row)
		for i := range row {
			switch row[i].Name {
			case "before":
				row[i].Value = m.Event().After
			case "before_image":
				row[i].Value = "KEY"
			}
		}
		if out := printed(t, m); strings.Contains(out, "->") {
			t.Errorf("a difference was drawn:\n%s", out)
		}
	}
}

func TestReselectedValuesSaySo(t *testing.T) {
	t.Parallel()
	s := newShop(t, orders(schema.IdentityDefault), primaryKey)
	m := s.messages(s.change(decode.KindUpdate, 0, nil,
		tuple("7", "paid", "1.00", "read again", null))...)[0]
	row := m.Value.(Row)
	for i := range row {
		if row[i].Name == "column_states" {
			row[i].Value = []any{Row{
				{"image", "AFTER"}, {"column", "note"}, {"state", "RESELECTED"}, {"text", nil},
			}}
		}
	}
	want := `"read again" RESELECTED (read again: may be newer than this change)`
	if out := printed(t, m); !strings.Contains(out, want) {
		t.Errorf("%q is not in\n%s", want, out)
	}
}

func TestRecordsThatAreNoEnvelopes(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(recordTime).UTC()
	golden(t, "other.txt", printed(t,
		&Message{
			Topic: "shop.tidemark-events", Time: at, Offset: 1, ValueBytes: []byte(`{"gap": 1}`),
			Value: json.RawMessage(`{"gap": 1}`),
		},
		&Message{
			Topic: "elsewhere", Time: at, Offset: 2, KeyBytes: []byte{1}, ValueBytes: []byte{2},
			KeyErr: errFormat, ValueErr: errors.New("7 bytes more than schema 3 takes"),
		},
		&Message{
			Topic: "shop.public.t", Time: at, Offset: 3, KeyBytes: []byte{0}, Key: Row{{"id", int64(1)}},
		},
		&Message{
			Topic: "plain", Time: at, Offset: 4, ValueBytes: []byte{0},
			Value: Row{{"a", true}, {"list", []any{int64(1), nil, "x"}}, {"m", Map{"k": nil}}},
		},
	))
}

// A value may hold what makes a terminal do things.
func TestNoValueSpeaksToTheTerminal(t *testing.T) {
	t.Parallel()
	evil := "\x1b[2J\u009b31m\u202e"
	s := newShop(t, orders(schema.IdentityDefault), primaryKey)
	m := s.messages(s.change(decode.KindInsert, 0, nil, tuple("1", evil, "1.00", null, null))...)[0]
	m.Topic = evil
	out := printed(t, m)
	for _, r := range out {
		if r != '\n' && (r < ' ' || r == 0x9b || r == 0x202e) {
			t.Fatalf("%q holds %U", out, r)
		}
	}
	if !strings.Contains(out, `"\u001b[2J\u009b31m\u202e"`) {
		t.Errorf("the value is not visible in\n%s", out)
	}
}

func TestLongValuesAreCut(t *testing.T) {
	t.Parallel()
	if got := show(strings.Repeat("ä", 201)); got != `"`+strings.Repeat("ä", 200)+
		`"... (201 characters)` {
		t.Errorf("got %s", got)
	}
}

func TestColoursAreForTerminalsThatWantThem(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if UseColor(f) || UseColor(&strings.Builder{}) {
		t.Error("a file and a buffer are no terminals")
	}
	s := newShop(t, orders(schema.IdentityDefault), primaryKey)
	m := s.messages(s.change(decode.KindInsert, 0, nil, tuple("1", "x", "1.00", null, null))...)[0]
	var b strings.Builder
	if err := NewPrinter(&b, true).Print(m); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "\x1b[32mINSERT   \x1b[0m") {
		t.Errorf("no colour in %q", b.String())
	}
}
