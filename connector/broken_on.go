//go:build broken

package connector

import (
	"bytes"
	"context"
	"os"
	"time"

	"github.com/tidemark-cdc/tidemark/connector/decode"
	"github.com/tidemark-cdc/tidemark/envelope"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/offsets"
	"github.com/tidemark-cdc/tidemark/schema"
)

// The faults, by the value of TIDEMARK_FAULT: one build has them all.
const (
	faultEarlyAck      = "early_ack"       // positions are stored before the brokers have confirmed
	faultDrop          = "drop"            // one row in 97 is not sent
	faultSwap          = "swap"            // two events of a key in one transaction change places
	faultSkipOnRestart = "skip_on_restart" // a resumed session leaves its first rows out
	faultAbsentNull    = "absent_null"     // a value that the log did not carry is shown as null
	faultTwice         = "twice"           // one change in 97 is sent twice
	faultSkipMore      = "skip_one_more"   // behind a cut, the first row that was not sent is left out
	faultSkipLess      = "skip_one_less"   // behind a cut, the last row that was sent comes again
	faultNoK3          = "no_k3"           // a keepalive's position is taken over unconfirmed records
	faultNoFence       = "no_fence"        // a writer that was fenced fences in turn, and stores
	faultNoSecondLook  = "no_second_look"  // what was read before the slot was ours is believed
)

// skippedRows is more than a session repeats, so that rows are left out that were never sent.
const skippedRows = 500

// saboteur does wrong.
type saboteur struct {
	rows int
	held []envelope.Record
	idle offsets.LSN
}

func is(fault string) bool { return os.Getenv("TIDEMARK_FAULT") == fault }

// decoded sees each event before anything else does.
func (*saboteur) decoded(ev *decode.Event) {
	if !is(faultAbsentNull) {
		return
	}
	for i := range ev.New {
		if ev.New[i].Kind == schema.DatumUnchanged {
			ev.New[i] = schema.Datum{Kind: schema.DatumNull}
		}
	}
}

// row sees each row of a captured table, and says whether it is left out.
func (b *saboteur) row(s *session, _ *decode.Event) (drop bool) {
	b.rows++
	switch {
	case is(faultDrop):
		return b.rows%97 == 0
	case is(faultSkipOnRestart):
		return s.record.Epoch > 1 && b.rows <= skippedRows
	}
	return false
}

// records holds each change back until the next one, and lets that one go first when it is of the
// same key.
func (b *saboteur) records(_ *session, in []envelope.Record) []envelope.Record {
	if is(faultTwice) && b.rows%97 == 0 && len(in) > 0 {
		again := in[0]
		again.Buffer = nil
		again.Key, again.Value = bytes.Clone(again.Key), bytes.Clone(again.Value)
		return append(append([]envelope.Record(nil), in...), again)
	}
	if !is(faultSwap) {
		return in
	}
	out := append([]envelope.Record(nil), b.held...)
	if len(out) > 0 && len(in) > 0 && bytes.Equal(in[0].Key, out[0].Key) {
		b.held = nil
		return append(append([]envelope.Record(nil), in...), out...)
	}
	b.held = append([]envelope.Record(nil), in...)
	return out
}

// commit lets go of what is held back.
func (b *saboteur) commit(s *session) {
	if held := b.held; len(held) > 0 {
		b.held = nil
		_ = s.producer.Send(context.Background(), held, s.tx) // a failure ends the session
	}
}

// mark is the position that is stored.
func (b *saboteur) mark(s *session, m offsets.Mark) offsets.Mark {
	if is(faultEarlyAck) {
		m.LSN = s.positions.Snapshot().Received
	}
	m.LSN = max(m.LSN, b.idle)
	return m
}

// keepalive sees the server's end. The Tracker would refuse it too: this goes past both guards.
func (b *saboteur) keepalive(s *session, end offsets.LSN) {
	if is(faultNoK3) && s.tx == nil && end > b.idle {
		b.idle = end
		_ = s.store(context.Background()) // a failure ends the session
	}
}

// cut is the record that the skipping of row messages follows.
func (b *saboteur) cut(r *offsets.Record) *offsets.Record {
	changed := *r
	switch {
	case r.LSNCommit == 0:
	case is(faultSkipMore):
		changed.EventIndex++
	case is(faultSkipLess):
		changed.EventIndex--
	}
	return &changed
}

// save stores a record.
func (b *saboteur) save(ctx context.Context, s *session, r offsets.Record) error {
	err := s.offsets.Save(ctx, r)
	if is(faultNoFence) && fault.Has(err, fault.Fenced) {
		if err := s.offsets.Fence(ctx); err != nil {
			return err
		}
		return s.offsets.Save(ctx, r)
	}
	return err
}

// claim waits before the stream begins, until the file that TIDEMARK_HOLD names is gone; it makes
// the file itself when it gets there. Without the second look the first one is believed.
func (b *saboteur) claim(
	ctx context.Context, c offsets.Claim, d *offsets.Decision, in *offsets.StartInput,
) offsets.Claim {
	if file := os.Getenv("TIDEMARK_HOLD"); file != "" {
		start := c.Start
		c.Start = func(at offsets.LSN) (int32, error) {
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				return 0, err
			}
			for _, err := os.Stat(file); err == nil && sleep(ctx, 20*time.Millisecond); {
				_, err = os.Stat(file)
			}
			return start(at)
		}
	}
	if is(faultNoSecondLook) {
		first, seen := *d, *in
		c.Look = func(int32) (offsets.Decision, offsets.StartInput, error) { return first, seen, nil }
	}
	return c
}
