package offsets

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// Tracker turns acknowledgements that come in any order into one position that only rises.
//
// The task. The stream hands over transactions in commit order. The records of a transaction go to
// many partitions of many topics, and the broker confirms them in whatever order it likes, from
// several goroutines. PostgreSQL wants one number: everything before it is safe. What is told once
// cannot be taken back, because the server throws the WAL away.
//
// What makes it hard. LSNs of rows are no order (COPY gives one LSN to many rows, a BEGIN's LSN can
// equal the commit before it, a message outside a transaction can lie above a later BEGIN), so no
// comparison of LSNs says whether a row is covered. A transaction may have no records at all (all
// its tables are filtered) and must still move the position. And a transaction's last promise may
// come before its Commit has been read, or long after.
//
// The invariants:
//
//	T1  a position is the end of a finished transaction or an idle position, never a row's LSN
//	T2  it is confirmed only when every record of every transaction up to it is confirmed
//	T3  it never falls
//	T4  after the first failed record it never rises past that record's transaction, whatever
//	    comes later
//	T5  an idle position is taken only when nothing is open or outstanding
//
// The outline. Each transaction has a counter of records that are not confirmed, which starts at
// one: that one is the open transaction itself, and Finish takes it off. So the counter reaches
// zero exactly once, after Finish and after the last record, whichever is later, and whoever takes
// it to zero locks the tracker and removes the complete transactions at the head of the queue. In
// the ordinary case a confirmation is one atomic subtraction.
//
// A failed record is never subtracted: its transaction stays at the head of the queue for ever,
// which is T4 without any rule of its own.
//
// Rejected: a heap of LSNs with "lowest unconfirmed row" (rows have no usable order, see above), a
// map of LSN to counter (equal LSNs), and waiting for all records at each commit (the stream would
// stop once a transaction).
//
// Begin, BeginSingle, Tx.Add, Finish, Receive and Advance belong to the one goroutine that reads
// the stream. Tx.Done and the getters may be called from any goroutine.
type Tracker struct {
	// confirmed is the position of T2: it starts at the position that the stream starts from.
	confirmed atomic.Uint64
	// received is the highest position that the stream has shown: confirmed <= received.
	received atomic.Uint64

	mu       sync.Mutex
	queue    []*Tx // in stream order; the open transaction, if any, is the last
	head     int   // queue[:head] is complete and only waits for compaction
	open     *Tx   // Begin seen, Finish not
	mark     Mark
	err      error
	changed  chan struct{}
	finished uint64 // transactions finished, for metrics
}

// Mark is a confirmed position with what the offsets record says beside it.
type Mark struct {
	// LSN is the confirmed position.
	LSN LSN
	// XID and CommitMicros are the last transaction's in front of it; 0 when there was none yet.
	XID          uint32
	CommitMicros int64
}

// Tx is one transaction of the stream, or one message outside a transaction.
type Tx struct {
	// Final is the LSN of the commit record, from Begin: the transaction's name in positions.
	Final LSN
	// XID and CommitMicros may be set by the reader between Begin and Finish.
	XID          uint32
	CommitMicros int64

	tracker *Tracker
	pending atomic.Int64 // records not confirmed, plus one until Finish
	end     LSN          // written before pending can reach zero; 0 for a single message
	single  bool
	done    bool // under tracker.mu
}

// NewTracker returns a tracker whose confirmed position is where the stream starts.
func NewTracker(start LSN) *Tracker {
	t := &Tracker{changed: make(chan struct{}, 1), mark: Mark{LSN: start}}
	t.confirmed.Store(uint64(start))
	t.received.Store(uint64(start))
	return t
}

// Begin opens the next transaction of the stream. final is Begin's final LSN.
func (t *Tracker) Begin(final LSN) *Tx {
	tx := &Tx{Final: final, tracker: t}
	tx.pending.Store(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open != nil {
		panic(fmt.Sprintf("offsets: Begin %s inside the open transaction %s", final, t.open.Final))
	}
	t.open = tx
	t.queue = append(t.queue, tx)
	return tx
}

// BeginSingle admits n records that belong to no transaction (a logical message outside of one).
// They hold back every later position and are none themselves: such a message can lie above a
// transaction that comes after it.
func (t *Tracker) BeginSingle(n int) *Tx {
	tx := &Tx{tracker: t, single: true}
	if n <= 0 {
		tx.done = true
		return tx
	}
	tx.pending.Store(int64(n))
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open != nil {
		panic(fmt.Sprintf("offsets: message inside the open transaction %s", t.open.Final))
	}
	t.queue = append(t.queue, tx)
	return tx
}

// Add says that n records of the transaction are about to be handed to the producer. It comes
// before they are, and before Finish.
func (tx *Tx) Add(n int) {
	if n < 0 || tx.single {
		panic(fmt.Sprintf("offsets: Add(%d) on transaction %s", n, tx.Final))
	}
	tx.pending.Add(int64(n))
}

// Done says that one record was confirmed, or that it failed. Safe from any goroutine.
func (tx *Tx) Done(err error) {
	if err != nil {
		tx.tracker.fail(err)
		return
	}
	left := tx.pending.Add(-1)
	if left < 0 {
		panic(fmt.Sprintf("offsets: transaction %s has more confirmations than records", tx.Final))
	}
	if left == 0 {
		tx.tracker.complete(tx)
	}
}

// Finish says that the transaction's Commit was read. end is Commit's end LSN, never its commit
// LSN: a start at that one has the transaction sent again.
func (t *Tracker) Finish(tx *Tx, end LSN) {
	t.mu.Lock()
	if t.open != tx {
		t.mu.Unlock()
		panic(fmt.Sprintf("offsets: Finish of transaction %s, which is not open", tx.Final))
	}
	t.open = nil
	tx.end = end
	t.finished++
	t.mu.Unlock()
	t.Receive(end)
	if tx.pending.Add(-1) == 0 {
		t.complete(tx)
	}
}

// Receive raises the received position: the end of a commit, or a keepalive's WAL end, in stream
// order. A lower one changes nothing.
func (t *Tracker) Receive(lsn LSN) {
	for {
		old := t.received.Load()
		if uint64(lsn) <= old || t.received.CompareAndSwap(old, uint64(lsn)) {
			return
		}
	}
}

// Received returns the highest position that the stream has shown.
func (t *Tracker) Received() LSN { return LSN(t.received.Load()) }

// Confirmed returns the position up to which everything is confirmed by the broker.
func (t *Tracker) Confirmed() LSN { return LSN(t.confirmed.Load()) }

// ConfirmedMark returns the confirmed position with the transaction in front of it.
func (t *Tracker) ConfirmedMark() Mark {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mark
}

// Outstanding reports whether any record is unconfirmed or any finished transaction is: the first
// half of K3. An open transaction without records is not outstanding (that is K2's business).
func (t *Tracker) Outstanding() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(t.queue) - t.head
	if n == 1 && t.open != nil {
		return t.open.pending.Load() > 1
	}
	return n > 0
}

// Open reports whether a transaction is open in the stream: Begin read, Commit not.
func (t *Tracker) Open() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open != nil
}

// Finished returns the number of transactions whose Commit was read.
func (t *Tracker) Finished() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.finished
}

// Waiting returns the number of transactions and single messages that are not confirmed.
func (t *Tracker) Waiting() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.queue) - t.head
}

// Changed returns a channel that has a value after the confirmed position moved or a record
// failed. Several changes may give one value.
func (t *Tracker) Changed() <-chan struct{} { return t.changed }

// Err returns the first failure of a record. The confirmed position does not pass that record.
func (t *Tracker) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// Advance takes an idle position (see Idle). It reports false, and changes nothing, when a
// transaction is open, something is outstanding or failed, or lsn is not above the confirmed
// position and within the received one.
func (t *Tracker) Advance(lsn LSN) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open != nil || len(t.queue) > t.head || t.err != nil {
		return false
	}
	if lsn <= t.mark.LSN || lsn > t.Received() {
		return false
	}
	t.moveLocked(Mark{LSN: lsn, XID: t.mark.XID, CommitMicros: t.mark.CommitMicros})
	return true
}

func (t *Tracker) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = err
	}
	t.signal()
}

// complete marks tx and releases every complete transaction at the head of the queue.
func (t *Tracker) complete(tx *Tx) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tx.done = true
	mark := t.mark
	for t.head < len(t.queue) && t.queue[t.head].done {
		first := t.queue[t.head]
		t.queue[t.head] = nil
		t.head++
		if first.end > mark.LSN { // a single message has no end: it is no position
			mark = Mark{LSN: first.end, XID: first.XID, CommitMicros: first.CommitMicros}
		}
	}
	t.compactLocked()
	if mark.LSN > t.mark.LSN {
		t.moveLocked(mark)
	}
}

// compactLocked moves the queue to the front of its array once half of it is behind the head, so
// that the array stays as large as what is outstanding and each element moves once on average.
func (t *Tracker) compactLocked() {
	if t.head == len(t.queue) {
		t.queue, t.head = t.queue[:0], 0
		return
	}
	if t.head < len(t.queue)/2 {
		return
	}
	n := copy(t.queue, t.queue[t.head:])
	clear(t.queue[n:])
	t.queue, t.head = t.queue[:n], 0
}

func (t *Tracker) moveLocked(m Mark) {
	t.mark = m
	t.confirmed.Store(uint64(m.LSN))
	t.signal()
}

func (t *Tracker) signal() {
	select {
	case t.changed <- struct{}{}:
	default:
	}
}
