package offsets

import "time"

// IdleReason names the condition that keeps a keepalive's position from becoming one of ours.
type IdleReason string

// The conditions, in the order in which they are asked.
const (
	IdleOK             IdleReason = "ok"
	IdleOff            IdleReason = "off"                   // idle.advance.after.ms is -1
	IdleNotInOrder     IdleReason = "not_in_stream_order"   // K1
	IdleOpen           IdleReason = "transaction_open"      // K2
	IdleOutstanding    IdleReason = "records_outstanding"   // K3, confirmed by the broker
	IdleNotStored      IdleReason = "commit_not_stored"     // K3, stored
	IdleNothingNew     IdleReason = "nothing_new"           // K4, not above the last position
	IdleNotSeen        IdleReason = "not_seen"              // K4, above what the session has seen
	IdleNotOffsetFirst IdleReason = "offset_not_first"      // K5
	IdleOtherHistory   IdleReason = "other_history"         // K6
	IdleNotPostgreSQL  IdleReason = "not_postgresql"        // K7
	IdleTooSoon        IdleReason = "too_soon_after_change" // K8
)

// IdleInput is everything that the decision rests on. No field's zero value permits anything.
type IdleInput struct {
	// WALEnd is the keepalive's ServerWALEnd.
	WALEnd LSN

	// InStreamOrder (K1): the keepalive is handled by the stream's own goroutine, after every frame
	// that came before it.
	InStreamOrder bool
	// Open (K2): a transaction is open in the stream.
	Open bool
	// Outstanding (K3): a record is unconfirmed, or a finished transaction is (Tracker.Outstanding).
	Outstanding bool
	// LastCommit (K3): the end of the last commit that this session has read; 0 when none yet.
	LastCommit LSN
	// Last (K4) is the last position: Tracker.Confirmed.
	Last LSN
	// Seen (K4) is the highest position that this session has seen in stream order, this keepalive
	// included: Tracker.Received.
	Seen LSN
	// Stored and Flushed (K5, K3): what the offsets topic has and what the slot was told. The
	// position that is returned goes through Tracker.Advance and the Store like any other; a slot
	// that was told more than is stored shows that somebody broke that order.
	Stored, Flushed LSN
	// SystemID and Timeline are the session's; the Stored ones are the record's (K6).
	SystemID, StoredSystemID string
	Timeline, StoredTimeline uint32
	// PostgreSQL (K7): the version string is PostgreSQL's own, not a fork's.
	PostgreSQL bool
	// SinceChange is the time since the last change came through the stream; After is the setting,
	// below zero is off (K8).
	SinceChange, After time.Duration
}

// From fills in what tracker and positions know, once they have received the keepalive.
func (in *IdleInput) From(t *Tracker, p *Positions) {
	at := p.Snapshot()
	in.Outstanding, in.Last, in.Seen = t.Outstanding(), t.Confirmed(), t.Received()
	in.Stored, in.Flushed = at.Stored, at.Flushed
}

// Idle decides whether a keepalive's ServerWALEnd may become a position, and returns the first
// condition that forbids it.
//
// Why it is safe when all hold: the server sends a keepalive only after every published commit up
// to it, in the same byte stream; K1 to K3 make all of those durable; a commit not yet received
// starts at or after it and is sent again after a restart. A transaction that is open elsewhere is
// protected by the slot's restart_lsn, not by our caution.
//
// The conditions are not settings: only K8's time is, which is policy and not safety. "Has seen
// data since the start" is not among them on purpose: it would disable the cure exactly when a
// connector restarts on an idle database.
func Idle(in IdleInput) (LSN, IdleReason) {
	switch {
	case in.After < 0:
		return 0, IdleOff
	case !in.InStreamOrder:
		return 0, IdleNotInOrder
	case in.Open:
		return 0, IdleOpen
	case in.Outstanding:
		return 0, IdleOutstanding
	case in.LastCommit > in.Stored:
		return 0, IdleNotStored
	case in.WALEnd <= in.Last:
		return 0, IdleNothingNew
	case in.WALEnd > in.Seen:
		return 0, IdleNotSeen
	case in.Stored == 0 || in.Flushed > in.Stored:
		return 0, IdleNotOffsetFirst
	case in.SystemID == "" || in.SystemID != in.StoredSystemID,
		in.Timeline == 0 || in.Timeline != in.StoredTimeline:
		return 0, IdleOtherHistory
	case !in.PostgreSQL:
		return 0, IdleNotPostgreSQL
	case in.SinceChange < in.After:
		return 0, IdleTooSoon
	}
	return in.WALEnd, IdleOK
}
