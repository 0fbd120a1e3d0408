package offsets

import "fmt"

// TableStatus is how far a table's snapshot is. No status at all means: not started.
type TableStatus string

// The statuses.
const (
	// TableRunning: rows of it may have been published, by the attempts that it names.
	TableRunning TableStatus = "running"
	// TableDone: every row of it is confirmed by the broker.
	TableDone TableStatus = "done"
	// TableSkipped: no snapshot of it is wanted (snapshot.mode, or a warning said so).
	TableSkipped TableStatus = "skipped"
)

// SnapshotState is the progress of the snapshot in the offsets record. It is stored before the
// first row of an attempt is produced, and a table is done only when its records are confirmed.
type SnapshotState struct {
	// Done: every table is done or skipped. The position of the record may move only then.
	Done bool `json:"done"`
	// Point is the slot's consistent point: where the stream starts.
	Point LSN `json:"point,omitempty"`
	// Attempts are the snapshots that rows were read with, in order.
	Attempts []SnapshotAttempt `json:"attempts,omitempty"`
	// Tables by schema.table; a part that has a dot or a quote in it is quoted as PostgreSQL does.
	Tables map[string]TableState `json:"tables,omitempty"`
}

// SnapshotAttempt is one MVCC snapshot that rows were read with.
type SnapshotAttempt struct {
	ID int `json:"id"`
	// Position is the commit LSN of its r rows: whatever the snapshot does not see commits after it.
	Position LSN `json:"position"`
	// Until is the WAL insert position read after the snapshot (Q): the descriptor is asked only
	// about transactions whose commit LSN is below it.
	Until LSN `json:"until,omitempty"`
	// XMin, XMax and Running are the descriptor: pg_current_snapshot's, 64 bits.
	XMin    uint64   `json:"xmin,omitempty"`
	XMax    uint64   `json:"xmax,omitempty"`
	Running []uint64 `json:"running,omitempty"`
	// Exact: the slot's own exported snapshot, whose point is the slot's; no descriptor is needed.
	Exact bool `json:"exact,omitempty"`
	// Recovery: taken on a standby, where the list of running transactions is not to be trusted.
	Recovery bool `json:"recovery,omitempty"`
}

// TableState is one table's progress.
type TableState struct {
	Status TableStatus `json:"status"`
	OID    uint32      `json:"oid,omitempty"`
	// First and Last are the ids of the first attempt that may have published a row of the table,
	// and of the one that is running or finished it.
	First int   `json:"first,omitempty"`
	Last  int   `json:"last,omitempty"`
	Rows  int64 `json:"rows,omitempty"`
}

// Attempt returns the attempt with an id.
func (s *SnapshotState) Attempt(id int) (SnapshotAttempt, bool) {
	for _, a := range s.Attempts {
		if a.ID == id {
			return a, true
		}
	}
	return SnapshotAttempt{}, false
}

func (s *SnapshotState) check() error {
	for name, t := range s.Tables {
		switch t.Status {
		case TableDone, TableSkipped:
		case TableRunning:
			if s.Done {
				return unreadable("its snapshot is done but table "+name+" is not", nil)
			}
		default:
			return unreadable(fmt.Sprintf("table %s has the unknown snapshot status %q",
				name, t.Status), nil)
		}
	}
	return nil
}
