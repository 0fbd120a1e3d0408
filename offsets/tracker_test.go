package offsets

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

func TestTrackerStartsConfirmedWhereTheStreamStarts(t *testing.T) {
	tr := NewTracker(100)
	if tr.Confirmed() != 100 || tr.Received() != 100 || tr.Outstanding() || tr.Open() {
		t.Fatalf("confirmed %s, received %s, outstanding %t, open %t",
			tr.Confirmed(), tr.Received(), tr.Outstanding(), tr.Open())
	}
}

func TestTrackerPositionIsTheCommitsEnd(t *testing.T) {
	tr := NewTracker(100)
	tx := tr.Begin(190)
	tx.XID, tx.CommitMicros = 7, 42
	tx.Add(2)
	tx.Done(nil)
	tx.Done(nil)
	if tr.Confirmed() != 100 {
		t.Fatalf("confirmed %s before Commit was read", tr.Confirmed())
	}
	if !tr.Open() || tr.Outstanding() {
		t.Fatalf("open %t, outstanding %t", tr.Open(), tr.Outstanding())
	}
	tr.Finish(tx, 200)
	if got := tr.ConfirmedMark(); got != (Mark{LSN: 200, XID: 7, CommitMicros: 42}) {
		t.Fatalf("mark %+v", got)
	}
	if tr.Received() != 200 || tr.Open() || tr.Outstanding() || tr.Finished() != 1 {
		t.Fatalf("received %s", tr.Received())
	}
}

func TestTrackerTransactionWithoutRecordsMovesThePosition(t *testing.T) {
	tr := NewTracker(100)
	tr.Finish(tr.Begin(190), 200)
	if tr.Confirmed() != 200 {
		t.Fatalf("confirmed %s", tr.Confirmed())
	}
}

func TestTrackerLaterTransactionWaitsForTheEarlier(t *testing.T) {
	tr := NewTracker(100)
	a := tr.Begin(190)
	a.Add(1)
	tr.Finish(a, 200)
	b := tr.Begin(290)
	b.Add(1)
	tr.Finish(b, 300)
	b.Done(nil)
	if tr.Confirmed() != 100 || tr.Waiting() != 2 {
		t.Fatalf("confirmed %s, waiting %d", tr.Confirmed(), tr.Waiting())
	}
	a.Done(nil)
	if tr.Confirmed() != 300 || tr.Waiting() != 0 {
		t.Fatalf("confirmed %s, waiting %d", tr.Confirmed(), tr.Waiting())
	}
}

func TestTrackerSingleMessageHoldsBackAndIsNoPosition(t *testing.T) {
	tr := NewTracker(100)
	m := tr.BeginSingle(1) // its LSN may lie above the transaction that follows
	tr.Finish(tr.Begin(190), 200)
	if tr.Confirmed() != 100 || !tr.Outstanding() {
		t.Fatalf("confirmed %s, outstanding %t", tr.Confirmed(), tr.Outstanding())
	}
	m.Done(nil)
	if tr.Confirmed() != 200 {
		t.Fatalf("confirmed %s", tr.Confirmed())
	}
	tr.BeginSingle(1).Done(nil)
	tr.BeginSingle(0)
	if tr.Confirmed() != 200 || tr.Outstanding() {
		t.Fatalf("confirmed %s, outstanding %t", tr.Confirmed(), tr.Outstanding())
	}
}

func TestTrackerNothingPassesAFailedRecord(t *testing.T) {
	tr := NewTracker(100)
	tr.Finish(tr.Begin(190), 200)
	bad := tr.Begin(290)
	bad.Add(2)
	tr.Finish(bad, 300)
	good := tr.Begin(390)
	good.Add(1)
	tr.Finish(good, 400)
	first := errors.New("record too large")
	bad.Done(first)
	bad.Done(nil)
	good.Done(nil)
	good2 := tr.Begin(490)
	good2.Add(1)
	good2.Done(errors.New("a later one"))
	if tr.Confirmed() != 200 || !errors.Is(tr.Err(), first) || !tr.Outstanding() {
		t.Fatalf("confirmed %s, err %v", tr.Confirmed(), tr.Err())
	}
	if tr.Advance(350) {
		t.Fatal("an idle position passed a failed record")
	}
}

func TestTrackerFailureOfAnOpenTransactionIsSignalled(t *testing.T) {
	tr := NewTracker(100)
	tx := tr.Begin(190)
	tx.Add(1)
	tx.Done(errors.New("no"))
	select {
	case <-tr.Changed():
	default:
		t.Fatal("no signal")
	}
	tr.Finish(tx, 200)
	if tr.Confirmed() != 100 {
		t.Fatalf("confirmed %s", tr.Confirmed())
	}
}

func TestTrackerSignalsAreCoalesced(t *testing.T) {
	tr := NewTracker(100)
	tr.Finish(tr.Begin(190), 200)
	tr.Finish(tr.Begin(290), 300)
	<-tr.Changed()
	select {
	case <-tr.Changed():
		t.Fatal("a second signal")
	default:
	}
	tx := tr.Begin(390)
	tx.Add(1)
	tr.Finish(tx, 400)
	select {
	case <-tr.Changed():
		t.Fatal("a signal though nothing moved")
	default:
	}
}

func TestTrackerAdvance(t *testing.T) {
	tr := NewTracker(100)
	tr.Finish(tr.Begin(190), 200)
	for _, c := range []struct {
		name    string
		prepare func()
		lsn     LSN
		want    bool
	}{
		{"not above the confirmed", func() { tr.Receive(250) }, 200, false},
		{"above the received", func() {}, 251, false},
		{"all confirmed", func() {}, 250, true},
		{"not twice", func() {}, 250, false},
		{"open", func() { tr.Receive(400); tr.Begin(290) }, 400, false},
		{"finished, not confirmed", func() {
			tr.open.Add(1)
			tr.Finish(tr.open, 300)
		}, 400, false},
	} {
		c.prepare()
		if got := tr.Advance(c.lsn); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
	if tr.Confirmed() != 250 {
		t.Errorf("confirmed %s", tr.Confirmed())
	}
}

func TestTrackerRefusesUseOutOfOrder(t *testing.T) {
	for name, misuse := range map[string]func(){
		"Begin in an open transaction": func() {
			tr := NewTracker(1)
			tr.Begin(2)
			tr.Begin(3)
		},
		"message in an open transaction": func() {
			tr := NewTracker(1)
			tr.Begin(2)
			tr.BeginSingle(1)
		},
		"Finish twice": func() {
			tr := NewTracker(1)
			tx := tr.Begin(2)
			tr.Finish(tx, 3)
			tr.Finish(tx, 3)
		},
		"more confirmations than records": func() {
			tr := NewTracker(1)
			tx := tr.Begin(2)
			tr.Finish(tx, 3)
			tx.Done(nil)
		},
		"Add to a message": func() { NewTracker(1).BeginSingle(1).Add(1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			misuse()
		}()
	}
}

// oracleTx is the dumb second implementation: everything is written down, nothing is removed.
type oracleTx struct {
	tx       *Tx
	end      LSN // 0: not finished
	single   bool
	records  int
	done     int
	failures int
}

func oracleConfirmed(start LSN, txs []*oracleTx, idle map[int]LSN) LSN {
	at := start
	for i, tx := range txs {
		at = max(at, idle[i])
		if tx.failures > 0 || tx.done < tx.records || tx.end == 0 && !tx.single {
			return at
		}
		if !tx.single {
			at = max(at, tx.end)
		}
	}
	return max(at, idle[len(txs)])
}

func TestTrackerAgreesWithAnOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := NewTracker(1000)
		var txs []*oracleTx
		idle := map[int]LSN{} // idle positions by how many transactions came before
		next := LSN(1000)
		open := func() *oracleTx {
			if n := len(txs); n > 0 && txs[n-1].end == 0 && !txs[n-1].single {
				return txs[n-1]
			}
			return nil
		}
		failed, highest := false, LSN(0)
		t.Repeat(map[string]func(*rapid.T){
			"begin": func(t *rapid.T) {
				if open() != nil {
					t.Skip("open")
				}
				next += LSN(rapid.IntRange(0, 5).Draw(t, "step"))
				txs = append(txs, &oracleTx{tx: tr.Begin(next)})
			},
			"single": func(t *rapid.T) {
				if open() != nil {
					t.Skip("open")
				}
				n := rapid.IntRange(1, 3).Draw(t, "n")
				txs = append(txs, &oracleTx{tx: tr.BeginSingle(n), single: true, records: n})
			},
			"add": func(t *rapid.T) {
				o := open()
				if o == nil {
					t.Skip("none open")
				}
				n := rapid.IntRange(1, 4).Draw(t, "n")
				o.records += n
				o.tx.Add(n)
			},
			"finish": func(t *rapid.T) {
				o := open()
				if o == nil {
					t.Skip("none open")
				}
				next += LSN(rapid.IntRange(1, 5).Draw(t, "step"))
				o.end = next
				tr.Finish(o.tx, next)
			},
			"done": func(t *rapid.T) {
				var can []*oracleTx
				for _, o := range txs {
					if o.done+o.failures < o.records {
						can = append(can, o)
					}
				}
				if len(can) == 0 {
					t.Skip("nothing outstanding")
				}
				o := rapid.SampledFrom(can).Draw(t, "tx")
				if rapid.IntRange(0, 40).Draw(t, "fail") == 40 {
					failed = true
					o.failures++
					o.tx.Done(errors.New("no"))
					return
				}
				o.done++
				o.tx.Done(nil)
			},
			"advance": func(t *rapid.T) {
				next += LSN(rapid.IntRange(0, 5).Draw(t, "step"))
				before := oracleConfirmed(1000, txs, idle)
				whole := open() == nil && !failed
				for _, o := range txs {
					whole = whole && o.done == o.records
				}
				tr.Receive(next)
				if got, want := tr.Advance(next), whole && next > before; got != want {
					t.Fatalf("Advance(%s) is %t, want %t", next, got, want)
				} else if got {
					idle[len(txs)] = next
				}
			},
			"": func(t *rapid.T) {
				want := oracleConfirmed(1000, txs, idle)
				if got := tr.Confirmed(); got != want {
					t.Fatalf("confirmed %s, want %s", got, want)
				}
				if want < highest || want > tr.Received() {
					t.Fatalf("confirmed %s after %s, received %s", want, highest, tr.Received())
				}
				highest = want
				outstanding := false
				for i, o := range txs {
					whole := o.done == o.records && o.failures == 0
					last := i == len(txs)-1 && o == open()
					outstanding = outstanding || !whole || !last && open() != nil &&
						o.end > want && !o.single
				}
				if tr.Outstanding() != outstanding || tr.Open() != (open() != nil) {
					t.Fatalf("outstanding %t want %t", tr.Outstanding(), outstanding)
				}
				if (tr.Err() != nil) != failed {
					t.Fatalf("err %v", tr.Err())
				}
			},
		})
	})
}

// Confirmations come from many goroutines in any order; the position only rises and never passes
// a transaction that a goroutine still holds.
func TestTrackerUnderConcurrentConfirmations(t *testing.T) {
	const transactions, workers = 5000, 4
	tr := NewTracker(1)
	type promise struct{ tx *Tx }
	lanes := make([]chan promise, workers)
	var wg sync.WaitGroup
	for i := range lanes {
		lanes[i] = make(chan promise, 64)
		wg.Go(func() {
			var held []promise
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			release := func(n int) {
				rng.Shuffle(len(held), func(a, b int) { held[a], held[b] = held[b], held[a] })
				for _, p := range held[:n] {
					if !p.tx.single && tr.Confirmed() >= p.tx.Final {
						t.Errorf("position %s passed the unconfirmed %s", tr.Confirmed(), p.tx.Final)
					}
					p.tx.Done(nil)
				}
				held = held[n:]
			}
			for p := range lanes[i] {
				if held = append(held, p); len(held) > 20 {
					release(10)
				}
			}
			release(len(held))
		})
	}
	stop := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		last := LSN(0)
		for {
			select {
			case <-stop:
				return
			case <-tr.Changed():
			}
			c := tr.Confirmed()
			if c < last || c > tr.Received() {
				t.Errorf("confirmed %s after %s", c, last)
			}
			last = c
		}
	}()
	for i := range transactions {
		final := LSN(10 + 10*i)
		if i%7 == 0 {
			lanes[i%workers] <- promise{tr.BeginSingle(1)}
		}
		tx := tr.Begin(final)
		for j := range i % 4 {
			tx.Add(1)
			lanes[(i+j)%workers] <- promise{tx}
		}
		tr.Finish(tx, final+5)
	}
	for _, lane := range lanes {
		close(lane)
	}
	wg.Wait()
	close(stop)
	<-watched
	if got, want := tr.Confirmed(), LSN(10+10*(transactions-1)+5); got != want || tr.Outstanding() {
		t.Fatalf("confirmed %s, want %s", got, want)
	}
	if cap(tr.queue) > 4096 {
		t.Errorf("queue of %d for a bounded number outstanding", cap(tr.queue))
	}
}

func BenchmarkTrackerDone(b *testing.B) {
	tr := NewTracker(1)
	tx := tr.Begin(2)
	tx.Add(b.N)
	for b.Loop() {
		tx.Done(nil)
	}
}
