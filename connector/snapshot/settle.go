package snapshot

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/internal/pgdial"
)

// A commit in flight: its record is in the WAL, below the point where the stream begins, and its
// effects are not yet visible, so that a snapshot taken now misses what the stream will not send.
// Under synchronous replication such a state lasts for seconds. The slot's own exported snapshot
// has no such hole; a snapshot that is taken later has.
//
// Only a transaction that is running in the new snapshot can be such. One that is seen idle in
// transaction, or in a statement (COMMIT too) that began after we started to look, had not written
// its commit record when the stream's point was made: its rows come by the stream. One that has ended
// meanwhile makes the snapshot doubtful: it is taken again. All others are waited for.
//
// The design narrows the set to transactions that existed at the slot's point. We look at all
// that run: the set is larger, the answer the same, and no further state has to be stored.

// settled is what settle found.
type settled int

const (
	goOn      settled = iota // nothing in flight
	takeAgain                // a transaction ended meanwhile
)

// OpenSettled is Open for a snapshot taken now, which is certain to see every transaction that
// committed before since (the stream's start): it waits, at most o.LockTimeout, for transactions
// that may be in the act of committing, then stops with snapshot_blocked naming their PIDs.
// progress is called before each wait with a sentence for the log.
func OpenSettled(ctx context.Context, o Options, progress func(string)) (*Reader, error) {
	ctx, cancel := context.WithTimeout(ctx, o.LockTimeout+10*time.Second)
	defer cancel()
	watch, err := pgdial.Connect(ctx, o.Database, o.AppName)
	if err != nil {
		return nil, err
	}
	defer func() { _ = watch.Close(context.WithoutCancel(ctx)) }()
	var began time.Time
	if err := watch.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&began); err != nil {
		return nil, pgdial.Wrap(err)
	}
	deadline := time.Now().Add(o.LockTimeout)
	for {
		r, err := Open(ctx, o)
		if err != nil {
			return nil, err
		}
		state, err := settle(ctx, watch, r.Descriptor, began, deadline, progress)
		if err == nil && state == goOn {
			return r, nil
		}
		r.Close()
		if err != nil {
			return nil, err
		}
	}
}

// settle looks at the transactions that run in the snapshot until each is known not to be in the
// act of committing.
func settle(
	ctx context.Context, watch *pgx.Conn, descriptor string, began, deadline time.Time,
	progress func(string),
) (settled, error) {
	_, _, running, err := ParseDescriptor(descriptor)
	if err != nil {
		return goOn, err
	}
	for said := false; ; {
		state, blockers, err := inFlight(ctx, watch, running, began)
		if err != nil || (state == goOn && len(blockers) == 0) || state == takeAgain {
			return state, err
		}
		text := "transactions that may be in the act of committing: " + strings.Join(blockers, ", ")
		if time.Now().After(deadline) {
			return goOn, fault.New(fault.SnapshotBlocked,
				"the snapshot cannot be proved to hold every commit").With(text,
				"that they end", "end them, or raise snapshot.lock.timeout.ms")
		}
		if !said {
			progress("waiting for " + text)
			said = true
		}
		select {
		case <-ctx.Done():
			return goOn, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// inFlight returns whether one of the transactions has ended, and the sessions that may commit.
func inFlight(
	ctx context.Context, watch *pgx.Conn, running []uint64, began time.Time,
) (settled, []string, error) {
	rows, err := watch.Query(ctx, `
		SELECT x.xid::text, a.pid, coalesce(a.state, ''),
			coalesce(a.query_start > $2, false),
			p.gid IS NOT NULL AND NOT EXISTS (SELECT FROM pg_stat_activity c
				WHERE c.state = 'active' AND c.query ~* '^\s*commit\s+prepared' AND c.query_start <= $2),
			coalesce(pg_xact_status(x.xid::text::xid8) = 'in progress', false)
		FROM unnest($1::text[]) AS x(xid)
		LEFT JOIN pg_stat_activity a ON a.backend_xid::text = (x.xid::numeric % 4294967296)::text
		LEFT JOIN pg_prepared_xacts p ON p.transaction::text = (x.xid::numeric % 4294967296)::text`,
		xidTexts(running), began)
	if err != nil {
		return goOn, nil, pgdial.Wrap(err)
	}
	defer rows.Close()
	var blockers []string
	for rows.Next() {
		var xid, state string
		var pid *int32
		var later, prepared, progress bool
		if err := rows.Scan(&xid, &pid, &state, &later, &prepared, &progress); err != nil {
			return goOn, nil, pgdial.Wrap(err)
		}
		switch {
		case !progress:
			return takeAgain, nil, nil
		case pid == nil && !prepared: // ending just now, or a COMMIT PREPARED that began earlier
			blockers = append(blockers, "xid "+xid)
		case pid == nil: // prepared: its COMMIT PREPARED writes the commit record later
			continue
		case strings.HasPrefix(state, "idle in transaction"), later:
			continue
		default:
			blockers = append(blockers, fmt.Sprintf("PID %d (xid %s, %s)", *pid, xid, state))
		}
	}
	if err := rows.Err(); err != nil {
		return goOn, nil, pgdial.Wrap(err)
	}
	return goOn, blockers, nil
}

func xidTexts(xids []uint64) []string {
	out := make([]string, len(xids))
	for i, x := range xids {
		out[i] = strconv.FormatUint(x, 10)
	}
	return out
}

// ParseDescriptor reads a pg_snapshot's text, "xmin:xmax:xip,xip": every transaction below xmin has
// ended, none at or above xmax had begun to be visible, and running are those in between that
// were running. Subtransactions are not listed.
func ParseDescriptor(text string) (xmin, xmax uint64, running []uint64, err error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return 0, 0, nil, fault.New(fault.ProtocolError, "a pg_snapshot is not xmin:xmax:xip")
	}
	if xmin, err = strconv.ParseUint(parts[0], 10, 64); err == nil {
		xmax, err = strconv.ParseUint(parts[1], 10, 64)
	}
	for s := range strings.SplitSeq(parts[2], ",") {
		if err != nil || s == "" {
			break
		}
		var x uint64
		x, err = strconv.ParseUint(s, 10, 64)
		running = append(running, x)
	}
	if err != nil {
		return 0, 0, nil, fault.Wrap(fault.ProtocolError, "a pg_snapshot holds no number", err)
	}
	return xmin, xmax, running, nil
}
