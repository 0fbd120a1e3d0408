package source

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// A standby decodes (16 and later) and cannot write: heartbeats, publications, and the record of
// running transactions that the creation of a slot waits for are made on its primary. Which server
// that is, is asked anew each time: a session lives through the promotion of its standby, and from
// then on the standby itself is where writing belongs.

// SetPrimary names the primary of a server that is a standby. It is connected when it is needed.
// Call it before the Source is shared.
func (s *Source) SetPrimary(db config.Database) {
	s.primary = &Source{db: db, appName: s.appName, turn: make(chan struct{}, 1)}
}

// writable is s, or while its server is in recovery the primary.
func (s *Source) writable(ctx context.Context) (*Source, error) {
	standby, err := s.InRecovery(ctx)
	if err != nil || !standby {
		return s, err
	}
	if s.primary == nil {
		return nil, fault.New(fault.ConfigInvalid, "the server is a standby and cannot write").
			With("no primary.hostname", "the primary, for what a standby cannot do",
				"set primary.hostname, and primary.user and primary.password where they differ")
	}
	ours, err := s.systemID(ctx)
	if err != nil {
		return nil, err
	}
	theirs, err := s.primary.systemID(ctx)
	if err != nil {
		return nil, err
	}
	if ours != theirs {
		return nil, fault.New(fault.ConfigInvalid, "primary.hostname leads to another cluster").
			With("system identifier "+theirs, ours, "set primary.hostname to the standby's own primary")
	}
	return s.primary, nil
}

// systemID reads the cluster's identifier, which a standby shares with its primary.
func (s *Source) systemID(ctx context.Context) (id string, err error) {
	err = s.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT system_identifier::text FROM pg_control_system()").Scan(&id)
	})
	return id, err
}

// LogStandbySnapshot has the primary write a record of running transactions, without which a slot
// on an idle standby is not made (manual, "Logical Decoding on Standby"). On a server that is no
// standby it does nothing.
func (s *Source) LogStandbySnapshot(ctx context.Context) error {
	w, err := s.writable(ctx)
	if err != nil || w == s {
		return err
	}
	return w.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "SELECT pg_log_standby_snapshot()")
		return err
	})
}

// replayWait bounds the wait for a standby to have what was written on its primary.
const replayWait = 60 * time.Second

// replayed waits until the server has replayed all that the primary w has written by now.
func (s *Source) replayed(ctx context.Context, w *Source) error {
	written, err := w.WALInsert(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, replayWait, fault.New(fault.PostgresUnreachable,
		"the standby does not follow its primary").
		With("nothing replayed up to "+written.String(), "within "+replayWait.String(),
			"look at pg_stat_replication on the primary"))
	defer cancel()
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	for {
		at, err := s.WALInsert(ctx)
		if at >= written && err == nil {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		var standby bool
		if standby, err = s.InRecovery(ctx); err == nil && !standby {
			return nil // promoted meanwhile: what it has is the truth now
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
