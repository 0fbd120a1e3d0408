package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/offsets"
)

// slotRow is pg_replication_slots as JSON: the columns that a version does not have are absent,
// so that one query serves them all.
type slotRow struct {
	Plugin             *string `json:"plugin"`
	SlotType           string  `json:"slot_type"`
	Database           *string `json:"database"`
	Temporary          bool    `json:"temporary"`
	Active             bool    `json:"active"`
	ActivePID          *int32  `json:"active_pid"`
	XMin               *string `json:"xmin"`
	CatalogXMin        *string `json:"catalog_xmin"`
	RestartLSN         *string `json:"restart_lsn"`
	ConfirmedFlushLSN  *string `json:"confirmed_flush_lsn"`
	WALStatus          *string `json:"wal_status"`
	SafeWALSize        *int64  `json:"safe_wal_size"`
	TwoPhase           bool    `json:"two_phase"`
	Conflicting        *bool   `json:"conflicting"`
	InvalidationReason *string `json:"invalidation_reason"`
	InactiveSince      *string `json:"inactive_since"`
	Failover           bool    `json:"failover"`
	Synced             bool    `json:"synced"`
}

// Slot reads the slot's row; nil without an error when there is none.
func (s *Source) Slot(ctx context.Context, name string) (*offsets.SlotInfo, error) {
	var text string
	var standby bool
	err := s.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		err := conn.QueryRow(ctx, `SELECT to_jsonb(s)::text, pg_is_in_recovery()
			FROM pg_replication_slots s WHERE slot_name = $1`, name).Scan(&text, &standby)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	if err != nil || text == "" {
		return nil, err
	}
	var r slotRow
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return nil, fmt.Errorf("pg_replication_slots has a column of another type: %w", err)
	}
	r.Synced = r.Synced && standby // left over from before a promotion, it means nothing (manual)
	return r.info(name)
}

func (r *slotRow) info(name string) (*offsets.SlotInfo, error) {
	out := &offsets.SlotInfo{
		Name: name, Plugin: deref(r.Plugin), Type: r.SlotType, Database: deref(r.Database),
		Temporary: r.Temporary, Active: r.Active, ActivePID: deref(r.ActivePID),
		WALStatus: deref(r.WALStatus), SafeWALSize: r.SafeWALSize, TwoPhase: r.TwoPhase,
		Conflicting: deref(r.Conflicting), InvalidationReason: deref(r.InvalidationReason),
		Failover: r.Failover, Synced: r.Synced,
		XMin: xid(r.XMin), CatalogXMin: xid(r.CatalogXMin),
	}
	if r.InactiveSince != nil {
		out.InactiveSince, _ = time.Parse(time.RFC3339, *r.InactiveSince) // for people only
	}
	for text, lsn := range map[*string]*offsets.LSN{
		r.RestartLSN: &out.RestartLSN, r.ConfirmedFlushLSN: &out.ConfirmedFlush,
	} {
		if text == nil {
			continue
		}
		v, err := offsets.ParseLSN(*text)
		if err != nil {
			return nil, err
		}
		*lsn = v
	}
	return out, nil
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

func xid(s *string) uint32 {
	n, _ := strconv.ParseUint(deref(s), 10, 32) // NULL: 0, "no xid"
	return uint32(n)
}

// Session describes the backend with this PID as far as the role may see it; nil when there is
// none. own is what application_name begins with in sessions of this connector.
func (s *Source) Session(ctx context.Context, pid int32, own string) (*offsets.SessionInfo, error) {
	info := offsets.SessionInfo{PID: pid}
	var start *time.Time
	err := s.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `SELECT coalesce(host(client_addr), ''),
			coalesce(application_name, ''), backend_start FROM pg_stat_activity WHERE pid = $1`, pid).
			Scan(&info.ClientAddr, &info.ApplicationName, &start)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	info.BackendStart = deref(start)
	info.Own = own != "" && strings.HasPrefix(info.ApplicationName, own)
	return &info, nil
}

// Health is what metrics and /readyz show of the slot; nil is the server's NULL.
type Health struct {
	WALStatus, InvalidationReason string
	Active                        bool
	LagBytes, RetainedBytes       *int64
	SafeBytes, CatalogXminAge     *int64
	Timeline                      uint32 // 0 on a standby: not known
}

// SlotHealth reads lag, retained WAL and ages; nil when the slot does not exist.
func (s *Source) SlotHealth(ctx context.Context, name string) (*Health, error) {
	h := &Health{}
	err := s.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `
			WITH w AS (SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()
				ELSE pg_current_wal_lsn() END AS lsn)
			SELECT coalesce(wal_status, ''), coalesce(to_jsonb(s) ->> 'invalidation_reason', ''), active,
				(w.lsn - confirmed_flush_lsn)::bigint, (w.lsn - restart_lsn)::bigint,
				safe_wal_size, age(catalog_xmin)::bigint,
				CASE WHEN pg_is_in_recovery() THEN 0 ELSE
					('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint END
			FROM pg_replication_slots s, w WHERE slot_name = $1`, name).
			Scan(&h.WALStatus, &h.InvalidationReason, &h.Active, &h.LagBytes, &h.RetainedBytes,
				&h.SafeBytes, &h.CatalogXminAge, &h.Timeline)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return h, err
}

// EmitHeartbeat commits a transactional logical message, and returns the WAL insert position after
// it: a stream that has reached it without the message does not carry messages. On a standby it is
// emitted through the primary.
func (s *Source) EmitHeartbeat(ctx context.Context, prefix, content string) (offsets.LSN, error) {
	w, err := s.writable(ctx)
	if err != nil {
		return 0, err
	}
	var text string
	err = w.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "SELECT pg_logical_emit_message(true, $1::text, $2::text)",
			prefix, content); err != nil {
			return err
		}
		return conn.QueryRow(ctx, "SELECT pg_current_wal_insert_lsn()::text").Scan(&text)
	})
	if err != nil {
		return 0, err
	}
	return offsets.ParseLSN(text)
}

// OpenTransactions describes the transactions that the creation of a slot waits for: those with an
// xid, anywhere on the server, as far as the role may see them, oldest first, at most ten.
func (s *Source) OpenTransactions(ctx context.Context) ([]string, error) {
	var out []string
	err := s.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, `
			SELECT 'PID ' || pid || ' (database ' || coalesce(datname, '-') || ', ' ||
					coalesce(state, 'state not visible') || ', for ' ||
					coalesce(extract(epoch FROM now() - xact_start)::int::text, '?') || ' s)', xact_start
				FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid()
			UNION ALL
			SELECT 'prepared transaction ' || quote_literal(gid) || ' (database ' || database || ', for ' ||
					extract(epoch FROM now() - prepared)::int || ' s)', prepared FROM pg_prepared_xacts
			ORDER BY 2 LIMIT 10`)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (text string, err error) {
			var since *time.Time
			err = r.Scan(&text, &since)
			return text, err
		})
		return err
	})
	return out, err
}

// WALInsert returns the WAL insert position, the replay position on a standby.
func (s *Source) WALInsert(ctx context.Context) (offsets.LSN, error) {
	var text string
	err := s.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()
			ELSE pg_current_wal_insert_lsn() END::text`).Scan(&text)
	})
	if err != nil {
		return 0, err
	}
	return offsets.ParseLSN(text)
}

// DropSlot drops a slot, waiting for its walsender, which may take a moment to end.
func (s *Source) DropSlot(ctx context.Context, name string) error {
	for {
		err := s.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, "SELECT pg_drop_replication_slot($1)", name)
			return err
		})
		if !fault.Has(err, fault.SlotInUse) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
}
