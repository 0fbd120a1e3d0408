package deliver

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Queue is max.queue.bytes: a semaphore of bytes that everything of a connector counts against
// which was read but is not yet confirmed. Two kinds share it: frames that were read and not yet
// handed on (Reserve), and records on their way to the broker (the Producer's own acquire).
//
// The two wait on different conditions, and must. A frame waits while anything at all is queued
// that leaves no room. Records wait only while other *records* are queued: frames become free by
// being turned into records, so a record that waited for a frame would wait for itself. So what is
// held is at most the limit, plus one frame or one event's records; one that is larger than the
// limit is admitted when nothing of its kind is ahead of it.
type Queue struct {
	limit  int64
	low    int64 // waiters are woken when no more than this is used: not for every record
	paused func(time.Duration)

	// The three are changed without the lock while there is room, which is nearly always. Whoever
	// waits has raised waiting before it looks again, and whoever gives back looks at waiting after
	// that, so that no wake is lost.
	used    atomic.Int64 // frames and records
	records atomic.Int64 // of those, the bytes acquired
	waiting atomic.Int64 // how many wait on freed

	mu    sync.Mutex
	freed chan struct{} // closed and replaced when bytes are given back while somebody waits
}

// NewQueue returns a queue of limit bytes. paused, when it is not nil, is told how long each wait
// for room took, also one that failed.
func NewQueue(limit int64, paused func(time.Duration)) *Queue {
	if paused == nil {
		paused = func(time.Duration) {}
	}
	return &Queue{
		limit: limit, low: limit - limit/4, paused: paused, freed: make(chan struct{}),
	}
}

// Reserve waits until n bytes of frames fit, or nothing is queued, and takes them. It returns
// ctx's error when ctx ends first; nothing is then taken. Give them back with Release.
func (q *Queue) Reserve(ctx context.Context, n int64) error {
	return q.take(ctx, nil, n, false)
}

// Release gives n reserved bytes of frames back.
func (q *Queue) Release(n int64) { q.gave(q.used.Add(-n)) }

// Used returns the bytes that are queued now.
func (q *Queue) Used() int64 { return q.used.Load() }

// Blocked reports whether somebody waits for room now: back-pressure, and no dead connection.
func (q *Queue) Blocked() bool { return q.waiting.Load() > 0 }

// acquire is Reserve for records; it also ends, with errStopped, when stop is closed.
func (q *Queue) acquire(ctx context.Context, n int64, stop <-chan struct{}) error {
	return q.take(ctx, stop, n, true)
}

var errStopped = errors.New("the producer stopped while records waited for room in the queue")

// free gives n acquired bytes of records back.
func (q *Queue) free(n int64) {
	if q.records.Add(-n) < 0 {
		panic("deliver: more bytes of records given back than were taken")
	}
	q.gave(q.used.Add(-n))
}

// tryAcquire is acquire when there is room, and false when there is not.
func (q *Queue) tryAcquire(n int64) bool {
	if !q.try(n) {
		return false
	}
	q.records.Add(n)
	return true
}

// take takes n bytes as soon as they fit below the limit, or nothing is queued that they would
// have to wait for.
func (q *Queue) take(ctx context.Context, stop <-chan struct{}, n int64, records bool) error {
	if !q.try(n) {
		return q.wait(ctx, stop, n, records)
	}
	if records {
		q.records.Add(n)
	}
	return nil
}

func (q *Queue) try(n int64) bool {
	if n < 0 {
		panic("deliver: a negative number of bytes")
	}
	for {
		used := q.used.Load()
		if used+n > q.limit {
			return false
		}
		if q.used.CompareAndSwap(used, used+n) {
			return true
		}
	}
}

// wait is take when there is no room.
func (q *Queue) wait(ctx context.Context, stop <-chan struct{}, n int64, records bool) error {
	var began time.Time
	q.waiting.Add(1)
	defer func() {
		q.waiting.Add(-1)
		if !began.IsZero() {
			q.paused(time.Since(began))
		}
	}()
	for {
		freed, ok := q.admit(n, records)
		if ok {
			return nil
		}
		if began.IsZero() {
			began = time.Now()
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return ctx.Err()
		case <-stop:
			return errStopped
		}
	}
}

// admit takes n bytes if it may now, under the lock, so that only one is admitted because nothing
// is ahead of it. Else it returns what is closed when bytes are given back.
func (q *Queue) admit(n int64, records bool) (freed <-chan struct{}, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	used := q.used.Load()
	ahead := used
	if records {
		ahead = q.records.Load()
	}
	if used+n > q.limit && ahead != 0 {
		return q.freed, false
	}
	q.used.Add(n)
	if records {
		q.records.Add(n)
	}
	return nil, true
}

// gave wakes who waits, when few enough bytes are left.
func (q *Queue) gave(used int64) {
	if used < 0 {
		panic("deliver: more bytes given back than were taken")
	}
	if q.waiting.Load() == 0 || used > q.low && q.records.Load() != 0 {
		return
	}
	q.mu.Lock()
	close(q.freed)
	q.freed = make(chan struct{})
	q.mu.Unlock()
}
