package deliver

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestQueueHoldsFramesAndRecordsToOneLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var paused time.Duration
		q := NewQueue(100, func(d time.Duration) { paused += d })
		ctx := t.Context()
		must(t, q.Reserve(ctx, 60))
		must(t, q.acquire(ctx, 40, nil))
		if q.Used() != 100 {
			t.Fatalf("used %d, want 100", q.Used())
		}
		admitted := make(chan error, 1)
		go func() { admitted <- q.Reserve(ctx, 30) }()
		synctest.Wait()
		if !q.Blocked() {
			t.Fatal("a frame that does not fit was admitted")
		}
		time.Sleep(3 * time.Second) // virtual
		q.Release(20)               // 80 are used: 30 do not fit
		synctest.Wait()
		if !q.Blocked() {
			t.Fatal("a frame was admitted above the limit")
		}
		q.free(40)
		must(t, <-admitted)
		if q.Used() != 70 || q.Blocked() || paused != 3*time.Second {
			t.Fatalf("used %d, blocked %v, paused %v", q.Used(), q.Blocked(), paused)
		}
	})
}

func TestQueueAdmitsWhatIsLargerThanItsLimitAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(100, nil)
		must(t, q.Reserve(t.Context(), 1000))
		done := make(chan error, 1)
		go func() { done <- q.Reserve(t.Context(), 1) }()
		synctest.Wait()
		if !q.Blocked() {
			t.Fatal("something was admitted beside a frame larger than the limit")
		}
		q.Release(1000)
		must(t, <-done)
	})
}

// A frame's bytes come back only when its records were sent: records must not wait for them.
func TestRecordsDoNotWaitForTheFramesTheyAreMadeOf(t *testing.T) {
	t.Parallel()
	q := NewQueue(100, nil)
	must(t, q.Reserve(t.Context(), 100))
	must(t, q.acquire(t.Context(), 50, nil))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := q.acquire(ctx, 1, nil); !errors.Is(err, context.Canceled) {
		t.Fatalf("a second record above the limit: %v", err)
	}
	q.free(50)
	must(t, q.acquire(t.Context(), 150, nil))
}

func TestQueueWaitEndsWithContextAndStop(t *testing.T) {
	t.Parallel()
	q := NewQueue(10, nil)
	must(t, q.acquire(t.Context(), 10, nil))
	stop := make(chan struct{})
	close(stop)
	if err := q.acquire(t.Context(), 1, stop); !errors.Is(err, errStopped) {
		t.Fatalf("stopped: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := q.Reserve(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled: %v", err)
	}
	if q.Used() != 10 || q.Blocked() {
		t.Fatalf("used %d, blocked %v after waits that failed", q.Used(), q.Blocked())
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
