package deliver

import (
	"context"
	"errors"
	"sync"
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

	mu      sync.Mutex
	frames  int64         // bytes reserved
	records int64         // bytes acquired
	waiting int           // how many wait on freed
	freed   chan struct{} // closed and replaced when bytes are given back while somebody waits
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
	return q.take(ctx, nil, n, &q.frames, func() bool { return q.frames+q.records == 0 })
}

// Release gives n reserved bytes of frames back.
func (q *Queue) Release(n int64) { q.give(n, &q.frames) }

// Used returns the bytes that are queued now.
func (q *Queue) Used() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.frames + q.records
}

// Blocked reports whether somebody waits for room now: back-pressure, and no dead connection.
func (q *Queue) Blocked() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting > 0
}

// acquire is Reserve for records; it also ends, with errStopped, when stop is closed.
func (q *Queue) acquire(ctx context.Context, n int64, stop <-chan struct{}) error {
	return q.take(ctx, stop, n, &q.records, func() bool { return q.records == 0 })
}

var errStopped = errors.New("the producer stopped while records waited for room in the queue")

func (q *Queue) free(n int64) { q.give(n, &q.records) }

// take adds n to kind when it fits below the limit or alone (called with the lock held) says that
// nothing is ahead of it.
func (q *Queue) take(
	ctx context.Context, stop <-chan struct{}, n int64, kind *int64, alone func() bool,
) error {
	if n < 0 {
		panic("deliver: a negative number of bytes")
	}
	q.mu.Lock()
	if q.frames+q.records+n > q.limit && !alone() {
		began := time.Now()
		for q.frames+q.records+n > q.limit && !alone() {
			freed := q.freed
			q.waiting++
			q.mu.Unlock()
			var err error
			select {
			case <-freed:
			case <-ctx.Done():
				err = ctx.Err()
			case <-stop:
				err = errStopped
			}
			q.mu.Lock()
			q.waiting--
			if err != nil {
				q.mu.Unlock()
				q.paused(time.Since(began))
				return err
			}
		}
		defer func() { q.paused(time.Since(began)) }()
	}
	*kind += n
	q.mu.Unlock()
	return nil
}

func (q *Queue) give(n int64, kind *int64) {
	q.mu.Lock()
	*kind -= n
	if *kind < 0 {
		panic("deliver: more bytes given back than were taken")
	}
	if q.waiting > 0 && (q.frames+q.records <= q.low || q.records == 0) {
		close(q.freed)
		q.freed = make(chan struct{})
	}
	q.mu.Unlock()
}
