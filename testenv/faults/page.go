package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// Names of the subtests of a test that runs in both delivery modes.
const (
	atLeastOnce = "at_least_once"
	exactlyOnce = "exactly_once"
)

// result is how a test ended last. Its zero value is a test that has not run.
type result struct {
	text string // "pass 2026-01-31"; "" when it has not run
	mode string
}

// results are those of tests by name.
type results map[string]result

const (
	notRun      = "not run yet"
	tableHeader = "| # | fault | test | level | delivery | result |\n|--:|---|---|---|---|---|\n"
)

// resultsOfPage reads back what page wrote.
func resultsOfPage(text string) results {
	out := results{}
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) != 8 {
			continue
		}
		name := strings.Trim(strings.TrimSpace(cells[3]), "`")
		if rowsOf(name) == nil {
			continue
		}
		r := result{text: strings.TrimSpace(cells[6]), mode: strings.TrimSpace(cells[5])}
		if r.text != notRun {
			out[name] = r
		}
	}
	return out
}

// read adds the results of a file that `go test -json` wrote.
func (r results) read(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	modes := map[string][]string{}
	for d := json.NewDecoder(f); ; {
		var e struct {
			Time   time.Time
			Action string
			Test   string
		}
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		parts := strings.Split(e.Test, "/")
		name := parts[0]
		if rowsOf(name) == nil || e.Action != "pass" && e.Action != "fail" && e.Action != "skip" {
			continue
		}
		for _, m := range []string{atLeastOnce, exactlyOnce} {
			if e.Action != "skip" && slices.Contains(parts[1:], m) {
				modes[name] = append(modes[name], m)
			}
		}
		if len(parts) == 1 && (e.Action != "skip" || r[name].text == "") {
			r[name] = result{e.Action + e.Time.Format(" 2006-01-02"), modeOf(name, modes[name])}
		}
	}
}

// modeOf names the delivery modes in which a test ran, by its subtests or else by its name.
func modeOf(name string, subtests []string) string {
	alo, eos := slices.Contains(subtests, atLeastOnce), slices.Contains(subtests, exactlyOnce)
	switch {
	case alo && eos:
		return "both"
	case eos || !alo && strings.Contains(name, "ExactlyOnce"):
		return "exactly once"
	}
	return "at least once"
}

// failed returns the names of the tests that failed last.
func (r results) failed(tests []test) (names []string) {
	for _, t := range tests {
		if strings.HasPrefix(r[t.name].text, "fail") {
			names = append(names, t.name)
		}
	}
	return names
}

// page is the text of docs/faults.md.
func page(tests []test, results results) string {
	var b strings.Builder
	b.WriteString("# Faults, and the tests that make them happen\n\n" +
		"<!-- Generated: make faults, or go run ./testenv/faults -->\n\n" +
		"`make faults` runs every test of this page and writes it. *Delivery* is " +
		"`exactly.once.support`: at least\nonce, exactly once, or both; — where no connector runs, or " +
		"the mode plays no part. *Level* is what the\ntest runs against: the real thing, or what " +
		"`testenv` has in the process. *Result* is the last run.\n")
	for i := range rows {
		row := &rows[i]
		if row.section != "" {
			fmt.Fprintf(&b, "\n## %s\n\n%s", row.section, tableHeader)
		}
		writeRow(&b, row, tests, results)
	}
	return b.String()
}

func writeRow(b *strings.Builder, row *row, tests []test, results results) {
	head := fmt.Sprintf("| %d | %s |", row.number, row.fault)
	for i := range tests {
		t := &tests[i]
		if !slices.Contains(t.rows, row.number) {
			continue
		}
		level, res := t.level(), results[t.name]
		if res.text == "" {
			res = result{notRun, modeOf(t.name, nil)}
		}
		if !level.mode {
			res.mode = "—"
		}
		fmt.Fprintf(b, "%s `%s` | %s | %s | %s |\n", head, t.name, level.text, res.mode, res.text)
		head = "| | |"
	}
	if row.reason != "" {
		fmt.Fprintf(b, "%s %s | | | not run here |\n", head, row.reason)
	}
}
