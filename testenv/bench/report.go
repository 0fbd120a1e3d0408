package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// Report is what a run of the bench found; it is written as JSON.
type Report struct {
	Commit   string `json:"commit"`
	Date     string `json:"date"`
	Quick    bool   `json:"quick"`
	Machine  string `json:"machine"`
	Cores    int    `json:"cores"`
	Go       string `json:"go"`
	Server   string `json:"server"`
	Baseline string `json:"baseline"`
	// The machine's load: other work slows what is measured, and the ratios too.
	Load      string   `json:"load_before"`
	LoadAfter string   `json:"load_after"`
	Figures   []Figure `json:"figures"`
	// Failed names what could not be measured.
	Failed []string `json:"failed,omitempty"`
	// Of the comparison with Debezium: what each was given, and every run.
	Settings string                          `json:"settings,omitempty"`
	Races    map[string]map[string][]watched `json:"races,omitempty"`
	Steady   map[string]steady               `json:"steady,omitempty"`
}

// Figure is one line of the report.
type Figure struct {
	Name string `json:"name"`
	What string `json:"what"`
	Unit string `json:"unit"`
	// Least, Middle and Most are of the connector's runs.
	Least  float64 `json:"min"`
	Middle float64 `json:"median"`
	Most   float64 `json:"max"`
	// Against names what Ratio is over; Other is its median, in the same unit.
	Against string  `json:"against,omitempty"`
	Other   float64 `json:"other,omitempty"`
	Ratio   float64 `json:"ratio,omitempty"`
	// Target is what the design asks for: at least (or, AtMost, at most) of Ratio, or of Middle
	// where there is no ratio; 0: the figure is reported and no more.
	Target float64 `json:"target,omitempty"`
	AtMost bool    `json:"at_most,omitempty"`
	Note   string  `json:"note,omitempty"`
	Runs   series  `json:"runs,omitempty"`
	Others series  `json:"other_runs,omitempty"`
}

// value is what the target is held against.
func (f *Figure) value() float64 {
	if f.Against != "" {
		return f.Ratio
	}
	return f.Middle
}

// short says how far the figure is from its target; "" when it meets it or has none.
func (f *Figure) short() string {
	v := f.value()
	switch {
	case f.Target == 0, f.AtMost && v <= f.Target, !f.AtMost && v >= f.Target:
		return ""
	case f.AtMost:
		return fmt.Sprintf("%s over its bound of %s", number(v), number(f.Target))
	}
	return fmt.Sprintf("%.0f %% of its target", 100*v/f.Target)
}

func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	return strings.Join(strings.Fields(string(text))[:3], " ")
}

// busy says that others wanted the processors too: more were waiting before the run, or at its end,
// than there are.
func (r *Report) busy() bool {
	for _, text := range []string{r.Load, r.LoadAfter} {
		first, _, _ := strings.Cut(text, " ")
		if v, err := strconv.ParseFloat(first, 64); err == nil && v > 2*float64(r.Cores) {
			return true
		}
	}
	return false
}

// number prints a value as a person reads it.
func number(v float64) string {
	switch {
	case v >= 10_000:
		return fmt.Sprintf("%.0f k", v/1000)
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// markdown writes docs/benchmarks.md, or docs/benchmarks-peer.md.
func (r *Report) markdown(w io.Writer) {
	title, kind, command := "Benchmarks", "full", "make bench"
	if r.peer() {
		title, command = "Debezium beside Tidemark", "make bench-peer"
	}
	if r.Quick {
		kind, command = "quick", command+"-quick"
	}
	fmt.Fprintf(w, "# %s\n\nThis page is written by `%s` (the %s run); `testenv/bench` is "+
		"the program, [profile.md](profile.md)\nsays where the time goes. Ratios are of medians within "+
		"one run: absolute figures are this machine's.\n\n", title, command, kind)
	fmt.Fprintf(w, "- commit %s, %s\n- %s, %d cores; load before and after: %s, %s\n"+
		"- %s, PostgreSQL %s\n- baseline: %s\n", r.Commit, r.Date, r.Machine, r.Cores, r.Load,
		r.LoadAfter, r.Go, r.Server, r.Baseline)
	if r.peer() {
		fmt.Fprintf(w, "- %s\n", r.Settings)
	}
	fmt.Fprintln(w)
	if r.busy() {
		fmt.Fprint(w, "**The machine did other work during this run.** The targets are for one that "+
			"does not,\nand these ratios say little about it.\n\n")
	}
	r.table(w)
	if r.peer() {
		fmt.Fprint(w, "\nEach row is Tidemark's, against the other's median. Both are processes "+
			"of their own and are seen\nfrom outside: the records that the topic holds, the kernel's "+
			"counters of the process. Rates and CPU\ncount from the first event, so the start of a "+
			"JVM is not in them; its warming up is.\n")
	}
	r.explain(w)
}

func (r *Report) peer() bool { return r.Settings != "" }

func (r *Report) table(w io.Writer) {
	fmt.Fprint(w, "| figure | min | median | max | against | ratio | target |\n"+
		"|---|---|---|---|---|---|---|\n")
	for _, f := range r.Figures {
		against, ratio, target := "", "", ""
		if f.Against != "" {
			against, ratio = f.Against+": "+number(f.Other), number(f.Ratio)
		}
		if f.Target > 0 {
			sign := ">="
			if f.AtMost {
				sign = "<="
			}
			target = fmt.Sprintf("%s %s", sign, number(f.Target))
		}
		fmt.Fprintf(w, "| %s (%s) | %s | %s | %s | %s | %s | %s |\n", f.Name, f.Unit,
			number(f.Least), number(f.Middle), number(f.Most), against, ratio, target)
	}
}

// explain says what each figure is, and which are short of their targets.
func (r *Report) explain(w io.Writer) {
	fmt.Fprint(w, "\nWhat each figure is:\n\n")
	said := map[string]bool{}
	for _, f := range r.Figures {
		if said[f.Name] {
			continue
		}
		said[f.Name] = true
		fmt.Fprintf(w, "- **%s**: %s.", f.Name, f.What)
		if f.Note != "" {
			fmt.Fprintf(w, " %s.", f.Note)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprint(w, "\n## Short of the target\n\n")
	none := true
	for _, f := range r.Figures {
		if s := f.short(); s != "" {
			none = false
			fmt.Fprintf(w, "- %s: %s.\n", f.title(), s)
		}
	}
	if none {
		fmt.Fprintln(w, "None of the figures above.")
	}
	for _, name := range r.Failed {
		fmt.Fprintf(w, "- %s: the run failed; there is no figure.\n", name)
	}
}

// title names a figure among others of its name.
func (f *Figure) title() string {
	if f.Against == "" {
		return f.Name
	}
	return f.Name + ", against " + f.Against
}
