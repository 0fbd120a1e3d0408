package capture

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/internal/pgdial"
	"github.com/tidemark-cdc/tidemark/offsets"
)

// Created is a new slot.
type Created struct {
	// ConsistentPoint is where the slot begins: every transaction that commits after it will come
	// through the stream, every one before it is visible in Snapshot.
	ConsistentPoint offsets.LSN
	// Snapshot is the name to SET TRANSACTION SNAPSHOT to. The next command on this Conn, and its
	// Close, end it.
	Snapshot string
}

// Bounds of giving up on a slot that is being created.
const (
	cancelAgain  = time.Second      // a cancel request can come too early to be heard
	cancelGiveUp = 10 * time.Second // then the connection is cut
	dropTimeout  = 10 * time.Second
)

// CreateSlot creates a logical slot with pgoutput and exports its snapshot. It waits for every
// transaction that is open on the server. When ctx ends, the wait is cancelled on the server, and a
// slot that was made all the same is dropped, so none is left behind. failover needs PostgreSQL 17.
func (c *Conn) CreateSlot(ctx context.Context, name string, failover bool) (Created, error) {
	options := "EXPORT_SNAPSHOT"
	if failover {
		if c.ServerVersion() < 170000 {
			return Created{}, fault.New(fault.ConfigInvalid,
				"a failover slot needs PostgreSQL 17 or later").
				With(c.pg.ParameterStatus("server_version"), "17 or later", "set slot.failover: false")
		}
		options = "(SNAPSHOT 'export', FAILOVER)"
	}
	sql := fmt.Sprintf("CREATE_REPLICATION_SLOT %s LOGICAL pgoutput %s", quoteIdent(name), options)

	work, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	stop := c.cancelWith(ctx, cut)
	result, err := pglogrepl.ParseCreateReplicationSlot(c.pg.Exec(work, sql))
	stop()
	if ctx.Err() != nil {
		return Created{}, c.abandon(ctx, name, err)
	}
	if err != nil {
		return Created{}, slotFault(name, err)
	}
	point, err := offsets.ParseLSN(result.ConsistentPoint)
	if err != nil {
		return Created{}, fault.Wrap(fault.ProtocolError, "the new slot's consistent point", err)
	}
	return Created{ConsistentPoint: point, Snapshot: result.SnapshotName}, nil
}

// cancelWith asks the server to cancel the running command once ctx ends, again until the command
// is over, and cuts the connection when that does not help. The returned function must be called
// when the command is over; it waits for the goroutine.
func (c *Conn) cancelWith(ctx context.Context, cut func()) (stop func()) {
	over := make(chan struct{})
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		select {
		case <-over:
			return
		case <-ctx.Done():
		}
		own, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelGiveUp)
		defer cancel()
		again := time.NewTicker(cancelAgain)
		defer again.Stop()
		for {
			// A request that fails is made again; the deadline bounds it all.
			_ = c.pg.CancelRequest(own)
			select {
			case <-over:
				return
			case <-again.C:
			case <-own.Done():
				cut()
				return
			}
		}
	}()
	return func() {
		close(over)
		<-gone
	}
}

// abandon ends a CreateSlot whose context has ended: created is the command's error. A command that
// won the race with the cancel request made a slot, which is dropped.
func (c *Conn) abandon(ctx context.Context, name string, created error) error {
	if created == nil {
		own, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropTimeout)
		defer cancel()
		if err := c.drop(own, name); err != nil {
			return fault.Wrap(fault.Internal, fmt.Sprintf(
				"slot %q was made while the wait for it was cancelled, and could not be dropped", name),
				pgdial.Wrap(err)).
				With("", "", fmt.Sprintf("SELECT pg_drop_replication_slot(%s)", quoteLiteral(name)))
		}
	}
	return fmt.Errorf("creating slot %q was cancelled: %w", name, context.Cause(ctx))
}

// drop drops the slot; a late cancel request may hit the first attempt.
func (c *Conn) drop(ctx context.Context, name string) error {
	sql := "DROP_REPLICATION_SLOT " + quoteIdent(name)
	_, err := c.pg.Exec(ctx, sql).ReadAll()
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "57014" {
		_, err = c.pg.Exec(ctx, sql).ReadAll()
	}
	return err
}
