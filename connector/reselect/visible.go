package reselect

import (
	"context"
	"slices"
	"time"

	"github.com/tidemark-cdc/tidemark/connector/snapshot"
)

// visible reports whether a snapshot sees transactions, each named by the lower half of its id.
func visible(descriptor string, xids []uint32) (bool, error) {
	_, xmax, running, err := snapshot.ParseDescriptor(descriptor)
	if err != nil {
		return false, err
	}
	for _, xid := range xids {
		full := xmax&^0xffffffff | uint64(xid)
		switch { // ids that live at one time are less than half of the numbers apart
		case full > xmax+1<<31 && full >= 1<<32:
			full -= 1 << 32
		case full+1<<31 < xmax:
			full += 1 << 32
		}
		if full >= xmax || slices.Contains(running, full) {
			return false, nil
		}
	}
	return true, nil
}

// waitVisible waits until a new snapshot sees transactions.
func (r *Reader) waitVisible(ctx context.Context, xids []uint32) (bool, Reason, error) {
	for deadline := time.Now().Add(r.o.VisibleTimeout); ; {
		descriptor, err := r.snapshot(ctx)
		if err != nil {
			reason, err := r.failed(err)
			return false, reason, err
		}
		if seen, err := visible(descriptor, xids); seen || err != nil {
			return seen, "", err
		}
		if time.Now().After(deadline) {
			return false, "", nil
		}
		select {
		case <-ctx.Done():
			return false, "", ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (r *Reader) snapshot(ctx context.Context) (descriptor string, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.replyTimeout())
	defer cancel()
	res := r.conn.ExecParams(ctx, "SELECT pg_catalog.pg_current_snapshot()::text", nil, nil, nil, nil)
	for res.NextRow() {
		descriptor = string(res.Values()[0])
	}
	_, err = res.Close()
	return descriptor, err
}
