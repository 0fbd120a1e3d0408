package offsets

import (
	"fmt"
	"strings"
	"time"
)

// SlotInfo is a row of pg_replication_slots of PostgreSQL 14 to 18. Columns that a version lacks
// keep their zero value, which says nothing good or bad there.
type SlotInfo struct {
	Name      string
	Plugin    string // "" for a physical slot
	Type      string // "logical" or "physical"
	Database  string
	Temporary bool
	Active    bool
	ActivePID int32

	XMin        uint32
	CatalogXMin uint32
	// RestartLSN is where decoding begins; 0 is NULL: the slot was invalidated, or is being made.
	RestartLSN LSN
	// ConfirmedFlush is C: what was told to the server last; 0 is NULL: the slot is being made.
	ConfirmedFlush LSN
	// WALStatus: reserved, extended, unreserved (about to be lost) or lost; "" is NULL.
	WALStatus string
	// SafeWALSize is how many bytes may be written before the slot is lost; nil is NULL: no limit,
	// or lost. (A lost slot must not look like one without a limit.)
	SafeWALSize *int64

	TwoPhase    bool
	Conflicting bool // 16: invalidated by a conflict with recovery
	// InvalidationReason (17): rows_removed, wal_level_insufficient, wal_removed; 18: idle_timeout.
	InvalidationReason string
	InactiveSince      time.Time // 17
	Failover           bool      // 17
	Synced             bool      // 17: a copy on a standby, which cannot be used there
}

// Lost reports whether the server has invalidated the slot. It will never stream again.
func (s *SlotInfo) Lost() bool {
	return s.WALStatus == "lost" || s.InvalidationReason != "" || s.Conflicting
}

// LostReason is the server's reason, and the setting whose change keeps it from happening again.
func (s *SlotInfo) LostReason() (reason, setting string) {
	switch s.InvalidationReason {
	case "wal_removed":
		return s.InvalidationReason, "raise max_slot_wal_keep_size (-1 is no limit)"
	case "idle_timeout":
		return s.InvalidationReason, "raise idle_replication_slot_timeout (0 is none)"
	case "rows_removed":
		return s.InvalidationReason, "set hot_standby_feedback = on at the standby, with a physical " +
			"slot for it at the primary"
	case "wal_level_insufficient":
		return s.InvalidationReason, "keep wal_level = logical on the primary"
	case "":
	default:
		return s.InvalidationReason, ""
	}
	if s.WALStatus == "lost" {
		return "wal_status lost", "raise max_slot_wal_keep_size (-1 is no limit)"
	}
	if s.Conflicting {
		return "conflicting", "set hot_standby_feedback = on at the standby, and keep " +
			"wal_level = logical on the primary"
	}
	return "", ""
}

// Foreign says why a slot of this name cannot be the connector's; "" is that it can.
func (s *SlotInfo) Foreign(plugin, database string) string {
	switch {
	case s.Type != "logical":
		return "it is a physical slot"
	case s.Plugin != plugin:
		return fmt.Sprintf("its plugin is %s", s.Plugin)
	case s.Database != database:
		return fmt.Sprintf("it belongs to database %s", s.Database)
	case s.Temporary:
		return "it is another session's temporary slot"
	case s.Synced:
		return "it is a synchronized copy on a standby, which streams only after promotion"
	}
	return ""
}

// SessionInfo is what pg_stat_activity and pg_stat_replication say about the slot's user.
type SessionInfo struct {
	PID             int32
	ClientAddr      string // "" is a local socket
	ApplicationName string
	BackendStart    time.Time
	// Own: application_name carries our connector and an instance id of ours or of an earlier
	// process of this connector.
	Own bool
}

// String names the session in errors.
func (s *SessionInfo) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "PID %d", s.PID)
	if s.ClientAddr != "" {
		b.WriteString(" from " + s.ClientAddr)
	} else {
		b.WriteString(" from a local socket")
	}
	fmt.Fprintf(&b, ", application_name %q", s.ApplicationName)
	if !s.BackendStart.IsZero() {
		b.WriteString(", since " + s.BackendStart.UTC().Format(time.RFC3339))
	}
	if s.Own {
		b.WriteString(", an earlier session of this connector")
	}
	return b.String()
}
