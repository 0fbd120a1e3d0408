package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// Violation is one thing that is wrong with a configuration.
type Violation struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"` // from 1; 0: unknown
	Where  string `json:"where"`          // "worker", "connectors.NAME", or "" for the file itself
	Key    string `json:"key,omitempty"`
	Found  string `json:"found,omitempty"` // quoted; **** for a secret
	Wanted string `json:"wanted,omitempty"`
	Fix    string `json:"fix,omitempty"`
}

// String renders the violation in one line: where it is, what is wrong, what to do.
func (v Violation) String() string {
	var b strings.Builder
	b.WriteString(position(v.File, v.Line, v.Where, v.Key))
	if v.Found != "" {
		b.WriteString("found " + v.Found)
	}
	if v.Wanted != "" {
		if v.Found != "" {
			b.WriteString(", ")
		}
		b.WriteString("wanted " + v.Wanted)
	}
	if v.Fix != "" {
		if v.Found != "" || v.Wanted != "" {
			b.WriteString("; ")
		}
		b.WriteString(v.Fix)
	}
	return b.String()
}

// Violations is all that is wrong with a configuration; it is the cause of Load's error.
type Violations []Violation

// Error renders one violation a line.
func (vs Violations) Error() string {
	lines := make([]string, len(vs))
	for i, v := range vs {
		lines[i] = "\n  " + v.String()
	}
	return strings.Join(lines, "")
}

// Warning is a key that is accepted but does not do what its writer may think.
type Warning struct {
	File  string `json:"file,omitempty"`
	Line  int    `json:"line,omitempty"`
	Where string `json:"where"`
	Key   string `json:"key,omitempty"`
	Text  string `json:"text"`
}

// String renders the warning in one line.
func (w Warning) String() string { return position(w.File, w.Line, w.Where, w.Key) + w.Text }

func position(file string, line int, where, key string) string {
	var b strings.Builder
	if file != "" {
		b.WriteString(file)
		if line > 0 {
			fmt.Fprintf(&b, ":%d", line)
		}
		b.WriteString(": ")
	}
	if where != "" {
		b.WriteString(where + ": ")
	}
	if key != "" {
		b.WriteString(key + ": ")
	}
	return b.String()
}

// report gathers violations and warnings while a configuration is read.
type report struct {
	violations Violations
	warnings   []Warning
	files      []string // in the order they were given
}

// Whatever is wrong with a key that has a salt in its name, the name is not repeated whole.
func (r *report) violate(v Violation) {
	v.Key = withoutSalt(v.Key)
	r.violations = append(r.violations, v)
}

func (r *report) warn(w Warning) {
	w.Key = withoutSalt(w.Key)
	r.warnings = append(r.warnings, w)
}

// sort brings violations and warnings into the order of the files and their lines.
func (r *report) sort() {
	order := func(fileA string, lineA int, fileB string, lineB int) int {
		return cmp.Or(
			cmp.Compare(slices.Index(r.files, fileA), slices.Index(r.files, fileB)),
			cmp.Compare(lineA, lineB),
		)
	}
	slices.SortStableFunc(r.violations, func(a, b Violation) int {
		return order(a.File, a.Line, b.File, b.Line)
	})
	slices.SortStableFunc(r.warnings, func(a, b Warning) int {
		return order(a.File, a.Line, b.File, b.Line)
	})
}

// err returns nil, or the fault that lists every violation.
func (r *report) err() error {
	if len(r.violations) == 0 {
		return nil
	}
	text := "1 violation"
	if n := len(r.violations); n > 1 {
		text = fmt.Sprintf("%d violations", n)
	}
	return fault.Wrap(fault.ConfigInvalid, text, r.violations)
}

// maxShown is how much of a wrong value is repeated in a message, in bytes.
const maxShown = 80

// show quotes a value for a message.
func show(text string) string {
	if len(text) > maxShown {
		text = cutAtRune(text, maxShown) + "..."
	}
	return fmt.Sprintf("%q", text)
}
