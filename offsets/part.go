package offsets

import "time"

// Part is what the open Kafka transaction holds of the stream, and what the record in it says of
// how far it goes (exactly-once only): whole source transactions, and the beginning of one when that
// is split.
//
//	empty --row message, or end of a source transaction--> filling --Committed--> empty
//
// It decides nothing by itself and asks nobody; whoever owns it holds a lock over every step that
// must not be torn: that the events of a row message are produced and that it counts as done is one
// step, and nothing is produced between Write and Committed.
//
// What confirms a source transaction to the Tracker is the commit, not the brokers' answers to its
// records: each is held by one count from Begin on.
type Part struct {
	// Cut is the source transaction that an earlier Kafka transaction ended in; nil for none.
	Cut *Cut

	since time.Time // when the first content came; zero: empty
	bytes int64
	held  []*Tx // finished source transactions and single messages in it

	// What the next record says: the end of the last source transaction that is in, and how far into
	// the open one.
	end   LSN
	xid   uint32
	final LSN // of the open source transaction; 0: none is open
	rows  int64
	row   LSN
	own   int64     // bytes of the open source transaction in this Kafka transaction
	begun time.Time // when it was begun

	message LSN // the last message outside of transactions
}

// PartLimits say when a Kafka transaction is large or old enough.
type PartLimits struct {
	Bytes int64
	Age   time.Duration
}

// Adopt takes over what the stored record says of the transaction that was cut.
func (p *Part) Adopt(r *Record) { p.Cut, p.message = CutOf(r), r.MessageLSN }

// Begin takes a source transaction that was just opened, and holds its position back. The Cut was
// asked before.
func (p *Part) Begin(tx *Tx, now time.Time) {
	tx.Add(1)
	p.final, p.rows, p.row, p.own, p.begun = tx.Final, 0, 0, 0, now
}

// Skip reports whether a row message of the open source transaction was sent by an earlier session.
func (p *Part) Skip(index int64, lsn LSN) (bool, error) {
	skip, err := p.Cut.Skip(index, lsn)
	if skip && !p.Cut.Pending() {
		p.Row(index, lsn)
	}
	return skip, err
}

// SkipSingle reports whether a message outside of transactions was sent by an earlier session.
func (p *Part) SkipSingle(lsn LSN) bool { return lsn <= p.message }

// Content takes note of events of so many bytes, in the open source transaction if there is one.
func (p *Part) Content(bytes int64, now time.Time) {
	p.filled(now)
	p.bytes += bytes
	p.own += bytes
}

func (p *Part) filled(now time.Time) {
	if p.since.IsZero() {
		p.since = now
	}
}

// Row takes note that row message number index (from 0) of the open source transaction is done, also
// one that gave no events.
func (p *Part) Row(index int64, lsn LSN) { p.rows, p.row = index+1, lsn }

// Finish takes the end of the open source transaction.
func (p *Part) Finish(tx *Tx, end LSN, now time.Time) {
	p.filled(now)
	p.held = append(p.held, tx)
	p.end, p.xid, p.final, p.rows, p.own = end, tx.XID, 0, 0, 0
}

// Single takes a message outside of transactions, which holds later positions back.
func (p *Part) Single(tx *Tx, at LSN) {
	p.held = append(p.held, tx)
	p.message = at
}

// Empty reports whether the Kafka transaction holds nothing.
func (p *Part) Empty() bool { return p.since.IsZero() }

// Due reports whether it is to be committed: whole source transactions as many as fit; one is split
// only for its own size or age. quiet says that the stream has nothing more just now.
func (p *Part) Due(limits PartLimits, quiet bool, now time.Time) bool {
	switch {
	case p.Empty(), p.Unsplittable():
		return false
	case p.final == 0:
		return quiet || p.bytes >= limits.Bytes || now.Sub(p.since) >= limits.Age
	}
	from := p.since
	if p.begun.After(from) {
		from = p.begun
	}
	return p.own >= limits.Bytes || now.Sub(from) >= limits.Age
}

// Unsplittable: while the record must go on naming a transaction that was cut earlier, it cannot
// name another one.
func (p *Part) Unsplittable() bool {
	return p.Cut.Pending() && p.final != 0 && p.final != p.Cut.Final && p.own > 0
}

// Open returns the final LSN of the source transaction that is open, 0 for none.
func (p *Part) Open() LSN { return p.final }

// Write says in the record how far the events of this Kafka transaction go. confirmed is the
// Tracker's position, which is past them when an idle position was taken.
func (p *Part) Write(rec *Record, confirmed LSN) {
	rec.LSN = max(p.end, confirmed)
	rec.MessageLSN = p.message
	if p.xid != 0 {
		rec.TxID = p.xid
	}
	if p.Cut.Pending() {
		return // the record still names it
	}
	rec.LSNCommit, rec.EventIndex, rec.RowLSN = 0, 0, 0
	if p.final != 0 && p.rows > 0 {
		rec.LSNCommit, rec.EventIndex, rec.RowLSN = p.final, p.rows, p.row
	}
}

// Committed says that the Kafka transaction was committed: everything in it is confirmed.
func (p *Part) Committed() {
	for i, tx := range p.held {
		tx.Done(nil)
		p.held[i] = nil
	}
	p.held, p.bytes, p.own, p.since = p.held[:0], 0, 0, time.Time{}
}
