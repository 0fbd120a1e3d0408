package preflight

import (
	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// Severity says what a check that fails means.
type Severity string

// The severities. Only Error makes `tidemark check` exit with 3.
const (
	Error   Severity = "error"   // the connector would not start, or would lose or alter something
	Warning Severity = "warning" // it would run, and somebody will be sorry
	Info    Severity = "info"    // worth knowing; nothing is wrong
)

// Status is a finding's outcome.
type Status string

// The outcomes. A check that could not be made for its own reason (a query failed) is Unknown and
// counts as its severity does; one that needs a server that another finding says is away is
// NotChecked and counts for nothing.
const (
	OK         Status = "ok"
	Failed     Status = "failed"
	Unknown    Status = "unknown"
	NotChecked Status = "not_checked"
)

// Finding is one line of a report. Field names of its JSON are part of the contract.
type Finding struct {
	Check    string   `json:"check"`
	Area     string   `json:"area"`
	Severity Severity `json:"severity"` // of the check, whatever the outcome
	Status   Status   `json:"status"`
	// Code is what `tidemark run` would stop with; empty when it would not stop.
	Code   fault.Code `json:"code,omitempty"`
	Object string     `json:"object,omitempty"` // what it is about: a table, topic, slot, setting
	Found  string     `json:"found,omitempty"`
	Wanted string     `json:"wanted,omitempty"` // of an object, or what the check is about
	Fix    string     `json:"fix,omitempty"`    // SQL or a command that can be pasted as it is
}

// Report is what all checks of one connector found.
type Report struct {
	Connector  string    `json:"connector"`
	Passed     bool      `json:"passed"` // no check of severity error failed
	Errors     int       `json:"errors"`
	Warnings   int       `json:"warnings"`
	NotChecked int       `json:"not_checked"`
	Findings   []Finding `json:"findings"`
}

// Exit is the process's exit status for the report: 0, or 3 when a check of severity error failed.
func (r *Report) Exit() int {
	if r.Passed {
		return 0
	}
	return fault.Exit(fault.WALLevel) // the status of everything that must be set up first
}

// add appends a finding and counts it.
func (r *Report) add(f Finding) {
	r.Findings = append(r.Findings, f)
	switch {
	case f.Status == NotChecked:
		r.NotChecked++
	case f.Status == OK:
	case f.Severity == Error:
		r.Errors++
	case f.Severity == Warning:
		r.Warnings++
	}
	r.Passed = r.Errors == 0
}
