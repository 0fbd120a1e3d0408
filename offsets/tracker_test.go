package offsets

import (
	"errors"
	"testing"
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
