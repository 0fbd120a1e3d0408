package offsets

import (
	"testing"
	"time"
)

// allowed is an input under which every condition holds.
func allowed() IdleInput {
	return IdleInput{
		WALEnd: 500, InStreamOrder: true, LastCommit: 300, Last: 300, Seen: 500,
		Stored: 300, Flushed: 300, SystemID: "7", StoredSystemID: "7", Timeline: 1,
		StoredTimeline: 1, PostgreSQL: true, SinceChange: 10 * time.Second, After: 10 * time.Second,
	}
}

func TestIdleAdvancesWhenEveryConditionHolds(t *testing.T) {
	if lsn, why := Idle(allowed()); lsn != 500 || why != IdleOK {
		t.Fatalf("%s %s", lsn, why)
	}
}

// A restart on an idle database: no commit was ever seen, and that is no reason to wait.
func TestIdleNeedsNoDataSinceTheStart(t *testing.T) {
	in := allowed()
	in.LastCommit = 0
	if lsn, why := Idle(in); lsn != 500 || why != IdleOK {
		t.Fatalf("%s %s", lsn, why)
	}
}

func forbids(t *testing.T, want IdleReason, change func(*IdleInput)) {
	t.Helper()
	in := allowed()
	change(&in)
	if lsn, why := Idle(in); lsn != 0 || why != want {
		t.Errorf("got %s %s, want %s", lsn, why, want)
	}
}

func TestIdleK1StreamOrder(t *testing.T) {
	forbids(t, IdleNotInOrder, func(in *IdleInput) { in.InStreamOrder = false })
}

func TestIdleK2TransactionOpen(t *testing.T) {
	forbids(t, IdleOpen, func(in *IdleInput) { in.Open = true })
}

func TestIdleK3Outstanding(t *testing.T) {
	forbids(t, IdleOutstanding, func(in *IdleInput) { in.Outstanding = true })
}

func TestIdleK3ReceivedCommitNotStored(t *testing.T) {
	forbids(t, IdleNotStored, func(in *IdleInput) { in.LastCommit = 301 })
}

func TestIdleK4NotAboveTheLastPosition(t *testing.T) {
	forbids(t, IdleNothingNew, func(in *IdleInput) { in.Last = 500 })
	forbids(t, IdleNothingNew, func(in *IdleInput) { in.WALEnd = 0 })
}

func TestIdleK4NotSeenInThisSession(t *testing.T) {
	forbids(t, IdleNotSeen, func(in *IdleInput) { in.Seen = 499 })
}

func TestIdleK5OffsetFirst(t *testing.T) {
	forbids(t, IdleNotOffsetFirst, func(in *IdleInput) { in.Flushed = 301 })
	forbids(t, IdleNotOffsetFirst, func(in *IdleInput) {
		in.Stored, in.Flushed, in.LastCommit = 0, 0, 0
	})
}

func TestIdleK6SameSystemAndTimeline(t *testing.T) {
	forbids(t, IdleOtherHistory, func(in *IdleInput) { in.SystemID = "8" })
	forbids(t, IdleOtherHistory, func(in *IdleInput) { in.Timeline = 2 })
	forbids(t, IdleOtherHistory, func(in *IdleInput) { in.SystemID, in.StoredSystemID = "", "" })
	forbids(t, IdleOtherHistory, func(in *IdleInput) { in.Timeline, in.StoredTimeline = 0, 0 })
}

func TestIdleK7PostgreSQL(t *testing.T) {
	forbids(t, IdleNotPostgreSQL, func(in *IdleInput) { in.PostgreSQL = false })
}

func TestIdleK8TimeSinceTheLastChange(t *testing.T) {
	forbids(t, IdleTooSoon, func(in *IdleInput) { in.SinceChange = 10*time.Second - 1 })
	forbids(t, IdleOff, func(in *IdleInput) { in.After = -1 })
}

func TestIdleZeroInputPermitsNothing(t *testing.T) {
	if lsn, why := Idle(IdleInput{}); lsn != 0 || why == IdleOK {
		t.Fatalf("%s %s", lsn, why)
	}
}
