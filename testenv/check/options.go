package check

import (
	"fmt"
	"sort"
	"strings"
	"time"
)

// Kind names a check.
type Kind string

// The checks, as the package comment describes them.
const (
	Order     Kind = "order"
	Hole      Kind = "hole"
	Fold      Kind = "fold"
	Once      Kind = "once"
	Before    Kind = "before"
	Partition Kind = "partition"
	Positions Kind = "positions"
	Image     Kind = "image"
)

// Options say what is read and what it is held against.
type Options struct {
	Brokers     []string
	RegistryURL string
	PostgresURL string // of the source's database
	Prefix      string // topic.prefix
	Tables      []Table

	// Marker is the text in column MarkerColumn of the rows with which the drain was begun; the
	// topics are read until every partition has one. Empty: they are read to their present end.
	Marker       string
	MarkerColumn string
	DrainTimeout time.Duration // 0 is 60 s

	// Audit is a table (op "char", rel text, key text, v bigint, seq bigint) of the source with
	// every committed change; key is the key columns' texts joined by '|'. Empty: there is none.
	Audit string
	// OffsetsTopic and Connector name the stored record, which says whether the snapshot was the
	// slot's own (then the stream must go on exactly behind it). Empty: it is not asked.
	OffsetsTopic string
	Connector    string

	ReadCommitted bool // leave records of open and aborted transactions out
	ExactlyOnce   bool // demand that nothing is repeated
}

// Identity is what a table's replica identity lets the log carry of an old row.
type Identity byte

// The identities.
const (
	IdentityKey  Identity = 'k' // DEFAULT or INDEX: the key, and that only when it changes
	IdentityFull Identity = 'f' // FULL: the whole old row
)

// Table is a captured table.
type Table struct {
	Schema, Name string
	Identity     Identity
	// Key are the columns that tell its rows apart, in the order of the Kafka key's fields. With
	// Keyless the Kafka key is null and they are only known to whoever fills the table.
	Key     []string
	Keyless bool
	NotNull []string // columns that are never null in a row
	Version string   // the column that counts a key's changes; "" when there is none
}

// ID is "schema.name".
func (t *Table) ID() string { return t.Schema + "." + t.Name }

// Violation is a broken promise, once.
type Violation struct {
	Check Kind
	Text  string
}

// Report is what was read and what is wrong with it.
type Report struct {
	Records    int // all of them, tombstones and repeats included
	Changes    int // first appearances of changes
	Snapshot   int // rows of snapshots
	Repeats    int // records that had been there before
	Partitions int
	Samples    int // positions
	Ops        map[string]int
	Images     map[string]int
	States     map[string]int

	Counts     map[Kind]int // how often each check failed
	Violations []Violation  // the first ones of each check
}

// violationsKept bounds how many of one check are kept with their text.
const violationsKept = 10

func newReport() *Report {
	return &Report{
		Ops: map[string]int{}, Images: map[string]int{}, States: map[string]int{},
		Counts: map[Kind]int{},
	}
}

func (r *Report) fail(kind Kind, format string, args ...any) {
	if r.Counts[kind]++; r.Counts[kind] <= violationsKept {
		r.Violations = append(r.Violations, Violation{Check: kind, Text: fmt.Sprintf(format, args...)})
	}
}

// OK says that nothing is wrong.
func (r *Report) OK() bool { return len(r.Counts) == 0 }

// Add puts what a Sampler found into the report.
func (r *Report) Add(samples int, found []Violation) {
	r.Samples += samples
	for _, v := range found {
		r.fail(v.Check, "%s", v.Text)
	}
}

// String is a summary for a person, with the violations that were kept.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d records in %d partitions: %d changes, %d snapshot rows, %d repeats; ops %s; "+
		"images %s; states %s; %d samples of the positions", r.Records, r.Partitions, r.Changes,
		r.Snapshot, r.Repeats, counts(r.Ops), counts(r.Images), counts(r.States), r.Samples)
	for _, v := range r.Violations {
		fmt.Fprintf(&b, "\n  %s: %s", v.Check, v.Text)
	}
	for kind, n := range r.Counts {
		if n > violationsKept {
			fmt.Fprintf(&b, "\n  %s: %d in all", kind, n)
		}
	}
	return b.String()
}

func counts(m map[string]int) string {
	var parts []string
	for k, n := range m {
		parts = append(parts, fmt.Sprintf("%s=%d", k, n))
	}
	sort.Strings(parts)
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, " ")
}
