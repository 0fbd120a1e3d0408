package offsets

import (
	"math/rand/v2"
	"sync"
	"testing"
)

const (
	raceTransactions = 5000
	raceLanes        = 4
)

// lane confirms what it is given in a random order, always holding some back.
func lane(t *testing.T, tr *Tracker, seed uint64, in <-chan *Tx) {
	rng := rand.New(rand.NewPCG(seed, 1))
	var held []*Tx
	release := func(n int) {
		rng.Shuffle(len(held), func(a, b int) { held[a], held[b] = held[b], held[a] })
		for _, tx := range held[:n] {
			if !tx.single && tr.Confirmed() >= tx.Final {
				t.Errorf("position %s passed the unconfirmed %s", tr.Confirmed(), tx.Final)
			}
			tx.Done(nil)
		}
		held = held[n:]
	}
	for tx := range in {
		if held = append(held, tx); len(held) > 20 {
			release(10)
		}
	}
	release(len(held))
}

// watch sees the position only rise.
func watch(t *testing.T, tr *Tracker, stop <-chan struct{}) {
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
}

// Confirmations come from many goroutines in any order; the position only rises, never passes a
// transaction that a goroutine still holds, and reaches the end.
func TestTrackerUnderConcurrentConfirmations(t *testing.T) {
	tr := NewTracker(1)
	lanes := make([]chan *Tx, raceLanes)
	var confirming, watching sync.WaitGroup
	for i := range lanes {
		lanes[i] = make(chan *Tx, 64)
		confirming.Go(func() { lane(t, tr, uint64(i), lanes[i]) })
	}
	stop := make(chan struct{})
	watching.Go(func() { watch(t, tr, stop) })
	for i := range raceTransactions {
		final := LSN(10 + 10*i)
		if i%7 == 0 {
			lanes[i%raceLanes] <- tr.BeginSingle(1)
		}
		tx := tr.Begin(final)
		for j := range i % 4 {
			tx.Add(1)
			lanes[(i+j)%raceLanes] <- tx
		}
		tr.Finish(tx, final+5)
	}
	for _, c := range lanes {
		close(c)
	}
	confirming.Wait()
	close(stop)
	watching.Wait()
	want := LSN(10 + 10*(raceTransactions-1) + 5)
	if got := tr.Confirmed(); got != want || tr.Outstanding() {
		t.Fatalf("confirmed %s, want %s", got, want)
	}
	if cap(tr.queue) > 4096 {
		t.Errorf("a queue of %d for few outstanding", cap(tr.queue))
	}
}

func BenchmarkTrackerDone(b *testing.B) {
	tr := NewTracker(1)
	tx := tr.Begin(2)
	tx.Add(b.N + 1)
	for b.Loop() {
		tx.Add(1)
		tx.Done(nil)
	}
}
