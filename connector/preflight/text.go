package preflight

import (
	"fmt"
	"io"
	"strings"
)

// markWidth is the width of the first column: its longest word is "unknown".
const markWidth = len("not checked")

// WriteText prints the report for a person: a line a finding, and under one that failed what was
// wanted and what to do.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "connector %s\n", r.Connector)
	width := 0
	for _, f := range r.Findings {
		width = max(width, len(f.Check))
	}
	area := ""
	for i := 0; i < len(r.Findings); {
		f := r.Findings[i]
		if f.Area != area {
			area = f.Area
			fmt.Fprintf(&b, "\n%s\n", area)
		}
		same := r.sameReason(i)
		if same > 1 {
			f.Check = fmt.Sprintf("%d checks", same)
		}
		writeFinding(&b, f, width)
		i += same
	}
	fmt.Fprintf(&b, "\n%s\n", r.summary())
	_, err := io.WriteString(w, b.String())
	return err
}

// sameReason counts the findings from i on, in one area, that were not checked for one reason: the
// text has one line for them. It is at least 1.
func (r *Report) sameReason(i int) int {
	f, n := r.Findings[i], 1
	for f.Status == NotChecked && i+n < len(r.Findings) && r.Findings[i+n].Area == f.Area &&
		r.Findings[i+n].Status == NotChecked && r.Findings[i+n].Found == f.Found {
		n++
	}
	return n
}

func writeFinding(b *strings.Builder, f Finding, width int) {
	text := f.Found
	switch {
	case f.Object != "" && text != "":
		text = f.Object + ": " + text
	case text == "":
		text = f.Object
	}
	line := fmt.Sprintf("  %-*s  %-*s  ", markWidth, f.mark(), width, f.Check)
	writeWrapped(b, line, text)
	if f.Status == OK || f.Status == NotChecked {
		return
	}
	indent := strings.Repeat(" ", len(line))
	if f.Wanted != "" && f.Severity != Info {
		writeWrapped(b, indent+"wanted: ", f.Wanted)
	}
	if f.Fix != "" {
		writeWrapped(b, indent+"fix:    ", f.Fix)
	}
}

// writeWrapped prints a text whose further lines are indented like its first. Lines are not broken
// by width: what is to be pasted stays whole.
func writeWrapped(b *strings.Builder, first, text string) {
	indent := strings.Repeat(" ", len(first))
	for i, line := range strings.Split(text, "\n") {
		if i == 0 {
			b.WriteString(strings.TrimRight(first+line, " "))
		} else {
			b.WriteString(strings.TrimRight(indent+line, " "))
		}
		b.WriteByte('\n')
	}
}

func (f *Finding) mark() string {
	switch f.Status {
	case OK:
		return "ok"
	case NotChecked:
		return "not checked"
	case Unknown:
		return "unknown"
	case Failed:
	}
	return string(f.Severity)
}

func (r *Report) summary() string {
	text := plural(r.Errors, "error") + ", " + plural(r.Warnings, "warning")
	if r.NotChecked > 0 {
		text += fmt.Sprintf(", %d not checked", r.NotChecked)
	}
	if r.Passed {
		return text + ": the connector can start"
	}
	return text + ": the connector would not start, or would not be right"
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
