package check

import (
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
)

// Pair orders the events of a key: history, commit LSN, index in the transaction.
type Pair struct {
	History   int64
	CommitLSN uint64
	Index     int64
}

// Less says whether p is before q.
func (p Pair) Less(q Pair) bool {
	if p.History != q.History {
		return p.History < q.History
	}
	if p.CommitLSN != q.CommitLSN {
		return p.CommitLSN < q.CommitLSN
	}
	return p.Index < q.Index
}

func (p Pair) String() string {
	return fmt.Sprintf("(%d, %X/%X, %d)", p.History, p.CommitLSN>>32, uint32(p.CommitLSN), p.Index)
}

// Row is a row by field name, in PostgreSQL's text form; nil is null.
type Row map[string]*string

// State is a ColumnState of the envelope.
type State struct {
	Image, Column, State string
	Text                 *string
}

// Event is a record of a topic, decoded. A tombstone has what its headers and its key say.
type Event struct {
	Topic     string
	Partition int32
	Offset    int64

	KeyBody   []byte // the Avro body; nil: null key
	Key       Row
	Tombstone bool
	Op        string
	Pair      Pair
	Image     string
	Before    Row
	After     Row
	BeforeKey Row
	Columns   []string // the fields of Value
	States    []State
	Schema    string // of the source's table
	Table     string

	Headers map[string]string
	// content is a hash of the value without its schema id and processing times, and, where the log
	// did not carry all of the row, of what it carried.
	content uint64
}

var contentSeed = maphash.MakeSeed()

// keyChange says whether the event is one of the two halves of a change of key.
func (e *Event) keyChange() bool {
	_, from := e.Headers["tidemark.key.old"]
	_, to := e.Headers["tidemark.key.new"]
	return from || to
}

// unlogged are the columns of the new row that were read again, or should have been: a repeat reads
// them once more, and may find another value, or none.
func (e *Event) unlogged() map[string]bool {
	columns := map[string]bool{}
	for _, s := range e.States {
		if s.Image == "AFTER" && (s.State == "RESELECTED" || s.State == "UNAVAILABLE") {
			columns[s.Column] = true
		}
	}
	return columns
}

// logged is a hash of what the log says of the event, without some columns of the new row.
func (e *Event) logged(without map[string]bool) uint64 {
	var h maphash.Hash
	h.SetSeed(contentSeed)
	write := func(name string, value *string) {
		text := "-"
		if value != nil {
			text = "=" + *value
		}
		fmt.Fprintf(&h, "%q%q", name, text)
	}
	fmt.Fprintf(&h, "%q%q", e.Op, e.Image)
	for i, row := range []Row{e.Before, e.After, e.BeforeKey} {
		fmt.Fprintf(&h, "%d%t", i, row == nil)
		for _, name := range slices.Sorted(maps.Keys(row)) {
			if i != 1 || !without[name] {
				write(name, row[name])
			}
		}
	}
	for _, s := range e.States {
		if s.Image != "AFTER" || !without[s.Column] {
			write(s.Image+s.Column+s.State, s.Text)
		}
	}
	return h.Sum64()
}

// where names the record for a person. No value of a row is in it.
func (e *Event) where() string {
	what := e.Op
	if e.Tombstone {
		what = "tombstone of " + e.Op
	}
	return fmt.Sprintf("%s[%d]@%d %s %s", e.Topic, e.Partition, e.Offset, what, e.Pair)
}

// join is the identity of a row: the texts of its key columns.
func (r Row) join(columns []string) (string, bool) {
	parts := make([]string, len(columns))
	for i, c := range columns {
		v := r[c]
		if v == nil {
			return "", false
		}
		parts[i] = *v
	}
	return strings.Join(parts, "|"), true
}

// same says whether two values are.
func same(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
