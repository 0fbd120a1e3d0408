package offsets

import (
	"errors"
	"testing"

	"pgregory.net/rapid"
)

// oracleTx is the dumb second implementation: everything is written down, nothing is removed.
type oracleTx struct {
	tx       *Tx
	end      LSN // 0: not finished
	single   bool
	records  int
	done     int
	failures int
}

func (o *oracleTx) whole() bool { return o.done == o.records }

// oracle drives a Tracker and says what it should answer.
type oracle struct {
	tracker *Tracker
	txs     []*oracleTx
	idle    map[int]LSN // idle positions by how many transactions came before
	next    LSN         // the stream's position
	failed  bool
	highest LSN // the last confirmed position
}

const oracleStart = LSN(1000)

func (o *oracle) confirmed() LSN {
	at := oracleStart
	for i, tx := range o.txs {
		at = max(at, o.idle[i])
		if !tx.whole() || tx.end == 0 && !tx.single {
			return at
		}
		if !tx.single {
			at = max(at, tx.end)
		}
	}
	return max(at, o.idle[len(o.txs)])
}

func (o *oracle) open() *oracleTx {
	if n := len(o.txs); n > 0 && o.txs[n-1].end == 0 && !o.txs[n-1].single {
		return o.txs[n-1]
	}
	return nil
}

// outstanding: a record is unconfirmed, or a finished transaction is.
func (o *oracle) outstanding() bool {
	for _, tx := range o.txs {
		if !tx.whole() {
			return true
		}
	}
	return false
}

func (o *oracle) step(t *rapid.T, least int) LSN {
	o.next += LSN(rapid.IntRange(least, 5).Draw(t, "step"))
	return o.next
}

func (o *oracle) Begin(t *rapid.T) {
	if o.open() != nil {
		t.Skip("a transaction is open")
	}
	o.txs = append(o.txs, &oracleTx{tx: o.tracker.Begin(o.step(t, 0))})
}

func (o *oracle) Single(t *rapid.T) {
	if o.open() != nil {
		t.Skip("a transaction is open")
	}
	n := rapid.IntRange(1, 3).Draw(t, "n")
	o.txs = append(o.txs, &oracleTx{tx: o.tracker.BeginSingle(n), single: true, records: n})
}

func (o *oracle) Add(t *rapid.T) {
	tx := o.open()
	if tx == nil {
		t.Skip("no transaction is open")
	}
	n := rapid.IntRange(1, 4).Draw(t, "n")
	tx.records += n
	tx.tx.Add(n)
}

func (o *oracle) Finish(t *rapid.T) {
	tx := o.open()
	if tx == nil {
		t.Skip("no transaction is open")
	}
	tx.end = o.step(t, 1)
	o.tracker.Finish(tx.tx, tx.end)
}

func (o *oracle) Done(t *rapid.T) {
	var can []*oracleTx
	for _, tx := range o.txs {
		if tx.done+tx.failures < tx.records {
			can = append(can, tx)
		}
	}
	if len(can) == 0 {
		t.Skip("nothing is outstanding")
	}
	tx := rapid.SampledFrom(can).Draw(t, "tx")
	if rapid.IntRange(0, 40).Draw(t, "fail") == 40 {
		o.failed = true
		tx.failures++
		tx.tx.Done(errors.New("no"))
		return
	}
	tx.done++
	tx.tx.Done(nil)
}

func (o *oracle) Advance(t *rapid.T) {
	lsn, before := o.step(t, 0), o.confirmed()
	allowed := o.open() == nil && !o.failed && !o.outstanding()
	o.tracker.Receive(lsn)
	got := o.tracker.Advance(lsn)
	if want := allowed && lsn > before; got != want {
		t.Fatalf("Advance(%s) is %t, want %t", lsn, got, want)
	}
	if got {
		o.idle[len(o.txs)] = lsn
	}
}

func (o *oracle) Check(t *rapid.T) {
	want := o.confirmed()
	if got := o.tracker.Confirmed(); got != want || o.tracker.ConfirmedMark().LSN != want {
		t.Fatalf("confirmed %s, want %s", got, want)
	}
	if want < o.highest || want > o.tracker.Received() {
		t.Fatalf("confirmed %s after %s, received %s", want, o.highest, o.tracker.Received())
	}
	o.highest = want
	if got := o.tracker.Open(); got != (o.open() != nil) {
		t.Fatalf("open %t", got)
	}
	// A whole transaction behind an unconfirmed one is outstanding with that one; before the open
	// one everything whole was removed.
	if got := o.tracker.Outstanding(); got != o.outstanding() {
		t.Fatalf("outstanding %t, want %t", got, o.outstanding())
	}
	if (o.tracker.Err() != nil) != o.failed {
		t.Fatalf("err %v", o.tracker.Err())
	}
}

func TestTrackerAgreesWithAnOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := &oracle{tracker: NewTracker(oracleStart), idle: map[int]LSN{}, next: oracleStart}
		t.Repeat(map[string]func(*rapid.T){
			"begin": o.Begin, "single": o.Single, "add": o.Add, "finish": o.Finish, "done": o.Done,
			"advance": o.Advance, "": o.Check,
		})
	})
}
