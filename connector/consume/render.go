package consume

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printer writes messages for a person: a head line with time, operation, table, key and what is
// known of the old row, then a line a column. It draws a difference between the old and the new
// row only when the old row is FULL; otherwise it says that there is none and why, since a column
// that is missing from an old row that nobody knows did not change to anything. Text is quoted,
// with control characters escaped, so that no value can speak to the terminal.
type Printer struct {
	w     io.Writer
	color bool
}

// NewPrinter returns a Printer; UseColor decides color.
func NewPrinter(w io.Writer, color bool) *Printer { return &Printer{w: w, color: color} }

// UseColor reports whether output to w may have colours: w is a terminal that knows them, and
// NO_COLOR is empty.
func UseColor(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Colours, as parameters of the terminal's SGR sequence.
const (
	plainText = ""
	red       = "31"
	green     = "32"
	yellow    = "33"
	blue      = "34"
	magenta   = "35"
	faint     = "2"
	bold      = "1"
)

// operations are the words for op, all of one width.
var operations = map[string]struct{ word, color string }{
	"c": {"INSERT   ", green}, "u": {"UPDATE   ", yellow}, "d": {"DELETE   ", red},
	"r": {"READ     ", blue}, "t": {"TRUNCATE ", magenta}, "m": {"MESSAGE  ", magenta},
}

// images are what the head line says of the old row.
var images = map[string]struct{ text, color string }{
	"FULL":           {"before: FULL", green},
	"KEY":            {"before: KEY (nothing but the key is known)", yellow},
	"ABSENT":         {"before: ABSENT (nothing is known of the old row)", yellow},
	"NOT_APPLICABLE": {"before: none (there is no old row)", faint},
	"UNKNOWN":        {"before: UNKNOWN (the writer did not say)", yellow},
}

// Print writes one message.
func (p *Printer) Print(m *Message) error {
	l := &lines{p: p}
	if e := m.Event(); e != nil {
		l.event(m, e)
	} else {
		l.other(m)
	}
	_, err := io.WriteString(p.w, l.String())
	return err
}

// lines gathers what is printed of one message, so that it is written at once.
type lines struct {
	strings.Builder
	p *Printer
}

func (l *lines) paint(color, text string) string {
	if !l.p.color || color == plainText {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

func (l *lines) event(m *Message, e *Event) {
	op, ok := operations[e.Op]
	if !ok {
		op.word = fmt.Sprintf("%-9s", safe(e.Op))
	}
	image, ok := images[e.BeforeImage]
	if !ok {
		image.text = "before: " + safe(e.BeforeImage)
	}
	at := m.Time
	if !e.Committed.IsZero() {
		at = e.Committed
	}
	fmt.Fprintf(l, "%s %s %s%s  %s  %s\n",
		l.paint(faint, at.Format("2006-01-02 15:04:05.000")), l.paint(op.color, op.word),
		l.paint(bold, safe(m.Table())), l.key(m), l.paint(image.color, image.text),
		l.paint(faint, l.place(m)))
	switch e.Op {
	case "c", "r":
		l.row(e, "AFTER", e.After, "+", green)
	case "u":
		l.update(e)
	case "d":
		if e.FullBefore() {
			l.row(e, "BEFORE", e.Before, "-", red)
		}
	case "m":
		l.row(e, "AFTER", e.Message, " ", plainText)
	}
}

// key is the record's key on the head line: of a change of key, with the other one.
func (l *lines) key(m *Message) string {
	var b strings.Builder
	switch {
	case m.KeyErr != nil:
		fmt.Fprintf(&b, " key unreadable: %v", m.KeyErr)
	case m.Key != nil:
		b.WriteString(" " + brief(m.Key))
	}
	if m.OtherKey == nil {
		return b.String()
	}
	if _, isDelete := m.Header(headerKeyNew); isDelete {
		return b.String() + " (the key becomes " + brief(m.OtherKey) + ")"
	}
	return b.String() + " (the key was " + brief(m.OtherKey) + ")"
}

// place is where the record is and the pair that orders it.
func (l *lines) place(m *Message) string {
	text := fmt.Sprintf("[%d@%d", m.Partition, m.Offset)
	if pos, ok := m.position(); ok {
		text += fmt.Sprintf(" lsn %s/%d", pos.CommitLSN, pos.Index)
		if pos.History != 0 {
			text += fmt.Sprintf(" history %d", pos.History)
		}
	}
	return text + "]"
}

// update draws a difference only when the whole old row is known.
func (l *lines) update(e *Event) {
	if !e.FullBefore() {
		l.row(e, "AFTER", e.After, " ", plainText)
		return
	}
	width := widest(e.After)
	same := 0
	for _, f := range e.After {
		old, known := e.Before.Get(f.Name)
		_, oldState := e.State("BEFORE", f.Name)
		_, newState := e.State("AFTER", f.Name)
		if known && !oldState && !newState && reflect.DeepEqual(old, f.Value) {
			same++
			continue
		}
		fmt.Fprintf(l, "  %s %-*s  %s %s %s\n", l.paint(yellow, "~"), width, safe(f.Name),
			l.value(e, "BEFORE", Field{f.Name, old}), l.paint(faint, "->"), l.value(e, "AFTER", f))
	}
	if same > 0 {
		fmt.Fprintf(l, "  %s\n", l.paint(faint, fmt.Sprintf("  %s as before", columns(same))))
	}
}

func columns(n int) string {
	if n == 1 {
		return "1 column"
	}
	return fmt.Sprintf("%d columns", n)
}

// row writes a line for each column of one row.
func (l *lines) row(e *Event, image string, r Row, sign, color string) {
	width := widest(r)
	for _, f := range r {
		fmt.Fprintf(l, "  %s %-*s  %s\n", l.paint(color, sign), width, safe(f.Name),
			l.value(e, image, f))
	}
}

// value shows a column's value, or why it is not simply that.
func (l *lines) value(e *Event, image string, f Field) string {
	s, ok := e.State(image, f.Name)
	if !ok {
		return show(f.Value)
	}
	switch s.State {
	case "UNAVAILABLE":
		if s.Text != nil {
			return l.paint(yellow, "UNAVAILABLE ("+safe(fmt.Sprint(s.Text))+")")
		}
		return l.paint(yellow, "UNAVAILABLE (the log did not carry it)")
	case "RESELECTED":
		return show(f.Value) +
			l.paint(yellow, " RESELECTED (read again: may be newer than this change)")
	case "UNREPRESENTABLE":
		return l.paint(yellow, "UNREPRESENTABLE ") + show(s.Text)
	}
	return show(f.Value) + l.paint(yellow, " "+safe(s.State))
}

// other writes a record that is no envelope: a tombstone, JSON, or bytes that say nothing to us.
func (l *lines) other(m *Message) {
	word, color, what := "RECORD   ", plainText, ""
	image, _ := m.Header(headerBeforeImage)
	switch {
	case m.Tombstone():
		word, color = "TOMBSTONE", red
		if op, ok := m.Header(headerOp); ok {
			what = "  " + l.paint(faint, "after op "+safe(op)+", before: "+safe(image))
		}
	case m.ValueErr != nil:
		what = "  " + l.paint(red, "value unreadable: "+m.ValueErr.Error())
	}
	fmt.Fprintf(l, "%s %s %s%s%s  %s\n",
		l.paint(faint, m.Time.Format("2006-01-02 15:04:05.000")), l.paint(color, word),
		l.paint(bold, safe(m.Table())), l.key(m), what, l.paint(faint, l.place(m)))
	if m.Value == nil {
		return
	}
	if r, ok := m.Value.(Row); ok {
		l.row(&Event{}, "AFTER", r, " ", plainText)
		return
	}
	fmt.Fprintf(l, "    %s\n", show(m.Value))
}

func widest(r Row) int {
	n := 0
	for _, f := range r {
		n = max(n, utf8.RuneCountInString(safe(f.Name)))
	}
	return n
}

// brief shows a key: name=value of each field.
func brief(v any) string {
	r, ok := v.(Row)
	if !ok {
		return show(v)
	}
	parts := make([]string, len(r))
	for i, f := range r {
		parts[i] = safe(f.Name) + "=" + show(f.Value)
	}
	return strings.Join(parts, " ")
}

// longest is how many characters of one value a person is shown.
const longest = 200

func show(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return shorten(v, func(s string) string { return `"` + escape(s, `"\`) + `"` })
	case Literal:
		return shorten(string(v), safe)
	case json.RawMessage:
		return shorten(string(v), safe)
	case Row:
		return "{" + brief(v) + "}"
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = show(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case Map:
		parts := make([]string, 0, len(v))
		for _, k := range v.keys() {
			parts = append(parts, show(k)+": "+show(v[k]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return fmt.Sprint(v)
}

// shorten cuts what is longer than a person reads, and says how long it was.
func shorten(s string, form func(string) string) string {
	n := utf8.RuneCountInString(s)
	if n <= longest {
		return form(s)
	}
	return form(string([]rune(s)[:longest])) + fmt.Sprintf("... (%d characters)", n)
}

// safe makes everything visible that a terminal would act on.
func safe(s string) string { return escape(s, "") }

func escape(s, also string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case strings.ContainsRune(also, r):
			b.WriteString(`\` + string(r))
		case unicode.IsPrint(r) && r != utf8.RuneError:
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
