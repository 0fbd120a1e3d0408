package connector

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tidemark-cdc/tidemark/connector/decode"
	"github.com/tidemark-cdc/tidemark/connector/reselect"
	"github.com/tidemark-cdc/tidemark/schema"
)

// reread has rows read again whose change left values out of the log (reselect.unavailable.values).
// From such a row on events are held, in order, as long as more are at hand without a wait; then
// the rows are asked for, by table, and the events go on. It belongs to the pump.
//
//	passing --an event lacks a value--> holding --no more at hand, or full--> passing
//
// A Relation message, a keepalive and a notice never wait behind a row: what is held goes first.
// All methods may be called on a nil receiver, which reads nothing.
type reread struct {
	s      *session
	hold   *reselect.Hold
	reader *reselect.Reader // connected at the first need

	// For Status.
	since atomic.Int64 // nanoseconds since the session began; 0: nothing is asked
	table atomic.Pointer[string]
}

func newReread(s *session) *reread {
	return &reread{s: s, hold: reselect.NewHold(s.cfg.MaxQueueBytes / 4)}
}

func (r *reread) close() {
	if r.reader != nil {
		r.reader.Close()
	}
}

// take handles an event that lacks a value, or comes behind one that does.
func (r *reread) take(ctx context.Context, ev *decode.Event) error {
	size := ev.Size()
	if ev.Kind == decode.KindRelation || !r.hold.Room(size) {
		if err := r.release(ctx); err != nil {
			return err
		}
	}
	want, err := r.want(ctx, ev)
	if err != nil {
		return err
	}
	if r.hold.Empty() {
		if want == nil {
			return r.s.event(ctx, ev, nil)
		}
		r.s.beforeWait()
	}
	// It counts as read and not confirmed. Nothing but records that are on their way is waited for
	// here: what is held is a quarter of the queue, or nothing.
	if err := r.s.queue.Reserve(ctx, size); err != nil {
		return err
	}
	r.hold.Add(ev, want, size)
	if r.s.stream.Buffered() {
		return nil
	}
	return r.release(ctx)
}

// want says what to read for an event, nil for nothing.
func (r *reread) want(ctx context.Context, ev *decode.Event) (*reselect.Want, error) {
	if ev.Kind != decode.KindUpdate || !ev.Unchanged || r.s.exact.sent(ev) {
		return nil, nil
	}
	t, err := r.s.tables.lookup(ctx, ev.Relation)
	if err != nil || t.compiled == nil {
		return nil, err
	}
	columns := r.s.enc.Missing(nil, t.compiled, ev)
	if len(columns) == 0 {
		return nil, nil
	}
	identity, ok := t.compiled.Identity(nil, ev)
	if !ok {
		t.counters.Unread(string(reselect.NoIdentity), len(columns))
		return nil, nil
	}
	return &reselect.Want{
		Question: reselect.Question{
			Relation: ev.Relation, Identity: t.compiled.IdentityColumns, Columns: columns,
		},
		Identity: identity,
	}, nil
}

// release has what is held go on, in order.
func (r *reread) release(ctx context.Context) error {
	if r == nil {
		return nil
	}
	for !r.hold.Empty() {
		held, err := r.next(ctx)
		if err != nil {
			return err
		}
		columns := held.Columns
		if held.Reason != "" {
			rel := held.Event.Relation
			r.s.metrics.Table(rel.Namespace+"."+rel.Name).Unread(string(held.Reason), len(columns))
			columns = nil
		}
		err = r.s.event(ctx, held.Event, columns)
		r.s.queue.Release(held.Size)
		if err != nil {
			return err
		}
	}
	return nil
}

// next returns the first event that is held, with its values.
func (r *reread) next(ctx context.Context) (*reselect.Held, error) {
	rel := r.hold.Asks()
	if rel == nil {
		return r.hold.Next(ctx, nil)
	}
	r.s.beforeWait()
	defer r.asking(rel)()
	if r.reader == nil {
		var err error
		r.reader, err = reselect.Open(ctx, reselect.Options{
			Database: r.s.cfg.Database, AppName: r.s.c.appName(), Logger: r.s.log,
		})
		if err != nil {
			return nil, err
		}
	}
	return r.hold.Next(ctx, r.reader)
}

// asking notes that a table is asked, until the returned function is called.
func (r *reread) asking(rel *schema.Relation) (answered func()) {
	name := rel.Namespace + "." + rel.Name
	r.table.Store(&name)
	r.since.Store(int64(time.Since(r.s.began)))
	return func() {
		r.since.Store(0)
		r.s.clock.waited()
	}
}

// waiting says that the stream waits for rows longer than it should, else "". Any goroutine may ask.
func (r *reread) waiting() string {
	if r == nil {
		return ""
	}
	since := r.since.Load()
	if since == 0 {
		return ""
	}
	waited := time.Since(r.s.began) - time.Duration(since)
	if waited < askingAfter {
		return ""
	}
	return fmt.Sprintf("the stream has waited %s to read rows of %s again, whose large values the "+
		"log did not carry", waited.Round(time.Second), *r.table.Load())
}
