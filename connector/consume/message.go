package consume

import (
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-cdc/tidemark/offsets"
)

// Message is one record of a topic. Nothing in it is borrowed.
type Message struct {
	Topic     string
	Partition int32
	Offset    int64
	Time      time.Time // the record's timestamp
	Headers   []Header

	// Key and Value are Row for records with Avro records, nil for null, json.RawMessage for bytes
	// that are JSON, else one of Field's values. When an error is set, bytes could not be decoded
	// and the value is nil.
	Key, Value       any
	KeyErr, ValueErr error
	// KeyBytes and ValueBytes are what the topic holds; nil is null.
	KeyBytes, ValueBytes []byte
	// KeyID and ValueID are the schemas' ids, 0 for bytes without.
	KeyID, ValueID int
	// OtherKey is the key in header tidemark.key.new or tidemark.key.old of a change of key.
	OtherKey any
}

// Header is a record header. Value is the text; bytes that are a key stay in Raw.
type Header struct {
	Key   string
	Value string
	Raw   []byte
}

// Names of the headers that tidemark writes.
const (
	headerOp          = "tidemark.op"
	headerCommitLSN   = "tidemark.commit_lsn"
	headerEventIndex  = "tidemark.event_index"
	headerHistory     = "tidemark.history"
	headerBeforeImage = "tidemark.before_image"
	headerKeyNew      = "tidemark.key.new"
	headerKeyOld      = "tidemark.key.old"
)

// Header returns the text of a header, and whether the record has it.
func (m *Message) Header(name string) (string, bool) {
	for _, h := range m.Headers {
		if h.Key == name {
			return h.Value, true
		}
	}
	return "", false
}

// Tombstone reports whether the record is a null with a key: the key is gone.
func (m *Message) Tombstone() bool { return m.ValueBytes == nil && m.KeyBytes != nil }

// Table returns schema and table, from the envelope, else the last two parts of the topic.
func (m *Message) Table() string {
	if e := m.Event(); e != nil && e.Table != "" {
		return e.Schema + "." + e.Table
	}
	parts := strings.Split(m.Topic, ".")
	return strings.Join(parts[max(0, len(parts)-2):], ".")
}

// Event is the view of an envelope.
type Event struct {
	Op            string // c, u, d, r, t, m
	Schema, Table string
	// BeforeImage is UNKNOWN (also of an envelope that another program wrote), NOT_APPLICABLE,
	// ABSENT, KEY or FULL. Before may be shown as the old row only when it is FULL.
	BeforeImage   string
	Before, After Row // nil for null
	BeforeKey     Row
	States        []ColumnState
	Pos           offsets.Position
	Committed     time.Time // zero: not in the envelope
	Message       Row       // op m: prefix, content
}

// ColumnState says of one column of one row why its field is not simply its value.
type ColumnState struct {
	Image  string // BEFORE or AFTER: the row it is about
	Column string
	State  string // UNAVAILABLE, RESELECTED, UNREPRESENTABLE
	Text   any    // PostgreSQL's exact text, a string, or nil
}

// FullBefore reports whether the old row is known completely, the only case in which a difference
// between before and after means a change.
func (e *Event) FullBefore() bool { return e.BeforeImage == "FULL" && e.Before != nil }

// State returns what is said of a column of a row ("BEFORE" or "AFTER"); ok is false for none.
func (e *Event) State(image, column string) (s ColumnState, ok bool) {
	for _, s := range e.States {
		if s.Image == image && s.Column == column {
			return s, true
		}
	}
	return ColumnState{}, false
}

// Event returns the view of the value, or nil when it is no envelope.
func (m *Message) Event() *Event {
	v, ok := m.Value.(Row)
	if !ok {
		return nil
	}
	op, _ := get[string](v, "op")
	source, isSource := get[Row](v, "source")
	if op == "" || !isSource {
		return nil
	}
	e := &Event{Op: op, BeforeImage: "UNKNOWN"}
	e.Before, _ = get[Row](v, "before")
	e.After, _ = get[Row](v, "after")
	e.BeforeKey, _ = get[Row](v, "before_key")
	e.Message, _ = get[Row](v, "message")
	e.Schema, _ = get[string](source, "schema")
	e.Table, _ = get[string](source, "table")
	if image, ok := get[string](v, "before_image"); ok {
		e.BeforeImage = image
	}
	e.Pos.History, _ = get[int64](source, "history")
	e.Pos.Index, _ = get[int64](source, "event_index")
	lsn, _ := get[int64](source, "commit_lsn")
	e.Pos.CommitLSN = offsets.LSN(lsn)
	if us, ok := get[int64](source, "ts_us"); ok {
		e.Committed = time.UnixMicro(us).UTC()
	} else if ms, ok := get[int64](source, "ts_ms"); ok {
		e.Committed = time.UnixMilli(ms).UTC()
	}
	states, _ := get[[]any](v, "column_states")
	for _, s := range states {
		if row, ok := s.(Row); ok {
			e.States = append(e.States, columnState(row))
		}
	}
	return e
}

func columnState(r Row) (s ColumnState) {
	s.Image, _ = get[string](r, "image")
	s.Column, _ = get[string](r, "column")
	s.State, _ = get[string](r, "state")
	s.Text, _ = r.Get("text")
	return s
}

// get returns a field that has the type T.
func get[T any](r Row, name string) (T, bool) {
	v, _ := r.Get(name)
	t, ok := v.(T)
	return t, ok
}

// position is the pair of a record, from its headers: a tombstone has no value to hold it.
func (m *Message) position() (p offsets.Position, ok bool) {
	if e := m.Event(); e != nil {
		return e.Pos, true
	}
	lsn, ok := m.number(headerCommitLSN)
	index, ok2 := m.number(headerEventIndex)
	history, _ := m.number(headerHistory)
	return offsets.Position{History: history, CommitLSN: offsets.LSN(lsn), Index: index}, ok && ok2
}

func (m *Message) number(header string) (int64, bool) {
	text, _ := m.Header(header)
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// headerText shows a header's bytes: text as it is, anything else as PostgreSQL shows bytea.
func headerText(b []byte) string {
	for _, c := range string(b) {
		if c == '\uFFFD' || c < ' ' {
			return `\x` + hex.EncodeToString(b)
		}
	}
	return string(b)
}
