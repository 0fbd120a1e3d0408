// Package worker is what a process shows of its connectors over HTTP: /healthz (the process
// answers), /readyz (every connector does its work, with the reasons when one does not) and
// /metrics. It shows states, positions, codes and settings; never a row's value or a secret.
package worker

import (
	"errors"
	"strings"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// Status is what a connector says of itself at one moment. A nil pointer is "not known", which is
// shown as null and never as 0.
type Status struct {
	Connector string `json:"connector"`
	State     string `json:"state"` // a name of the connector's life cycle
	// Ready is true in a snapshot or while streaming, when nothing is wrong.
	Ready bool `json:"ready"`
	// Reasons says why the connector is not ready, and what is worth a look though it is:
	// whole sentences for a person.
	Reasons []string `json:"reasons"`
	Slot    *Slot    `json:"slot"`
	// Positions are LSNs in PostgreSQL's text form by kind: server, received, confirmed, stored,
	// flushed. One that is not known is left out.
	Positions           map[string]string `json:"positions"`
	HeartbeatAgeSeconds *float64          `json:"heartbeat_age_seconds"`
	// SnapshotTablesRemaining is nil when no snapshot runs.
	SnapshotTablesRemaining *int   `json:"snapshot_tables_remaining"`
	Error                   *Error `json:"last_error"`
}

// Slot is what pg_replication_slots last said of the connector's slot.
type Slot struct {
	Name               string `json:"name"`
	WALStatus          string `json:"wal_status"`
	Active             bool   `json:"active"`
	InvalidationReason string `json:"invalidation_reason,omitempty"`
	RetainedWALBytes   *int64 `json:"retained_wal_bytes"`
	SafeWALBytes       *int64 `json:"safe_wal_bytes"`
	LagBytes           *int64 `json:"lag_bytes"`
	CatalogXminAge     *int64 `json:"catalog_xmin_age"`
}

// Error is the last error that ended a session or the connector.
type Error struct {
	Code   fault.Code `json:"code"`
	Text   string     `json:"text"`
	Found  string     `json:"found,omitempty"`
	Wanted string     `json:"wanted,omitempty"`
	Fix    string     `json:"fix,omitempty"`
}

// ErrorOf renders err for Status: its faults' own sentences and no other error's text, since a
// server's message can quote a value of a row. An error without a fault is only named internal; the
// log has the rest. It returns nil for nil.
func ErrorOf(err error) *Error {
	if err == nil {
		return nil
	}
	e := &Error{Code: fault.CodeOf(err)}
	var texts []string
	for f := (*fault.Error)(nil); errors.As(err, &f); err = f.Err {
		texts = append(texts, f.Text)
		if e.Found == "" && e.Wanted == "" && e.Fix == "" {
			e.Found, e.Wanted, e.Fix = f.Found, f.Wanted, f.Fix
		}
	}
	e.Text = strings.Join(texts, ": ")
	if len(texts) == 0 {
		e.Text = "an unexpected error; the log has it"
	}
	return e
}
