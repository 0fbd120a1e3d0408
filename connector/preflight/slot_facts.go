package preflight

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/internal/pgdial"
)

// slotFacts is the row of pg_replication_slots and who uses it.
type slotFacts struct {
	Name           string
	Plugin         *string // nil: physical
	Type           string
	Database       *string
	Temporary      bool
	Active         bool
	ActivePID      *int32
	WALStatus      *string
	SafeWALSize    *int64
	ConfirmedFlush *string // nil until the slot is consistent, and in a physical one
	RestartLSN     *string
	RetainedBytes  *int64
	CatalogXminAge *int64
	Conflicting    bool    // 16
	Invalidation   *string // 17
	Application    *string
	Client         *string
	Since          *string
}

// slotSQL reads columns that only some versions have through the row's JSON form.
const slotSQL = `
SELECT s.slot_name, s.plugin, s.slot_type, s.database, s.temporary, s.active, s.active_pid,
       s.wal_status, s.safe_wal_size, s.confirmed_flush_lsn::text, s.restart_lsn::text,
       pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn()
                            ELSE pg_current_wal_lsn() END, s.restart_lsn)::bigint,
       age(s.catalog_xmin)::bigint,
       coalesce((to_jsonb(s)->>'conflicting')::boolean, false),
       to_jsonb(s)->>'invalidation_reason',
       a.application_name, a.client_addr::text,
       to_char(a.backend_start, 'YYYY-MM-DD"T"HH24:MI:SSOF')
FROM pg_replication_slots s LEFT JOIN pg_stat_activity a ON a.pid = s.active_pid
WHERE s.slot_name = $1`

// loadSlot returns nil when no slot has the name.
func loadSlot(ctx context.Context, conn *pgx.Conn, name string) (*slotFacts, error) {
	var s slotFacts
	err := conn.QueryRow(ctx, slotSQL, name).Scan(
		&s.Name, &s.Plugin, &s.Type, &s.Database, &s.Temporary, &s.Active, &s.ActivePID,
		&s.WALStatus, &s.SafeWALSize, &s.ConfirmedFlush, &s.RestartLSN, &s.RetainedBytes,
		&s.CatalogXminAge, &s.Conflicting, &s.Invalidation, &s.Application, &s.Client, &s.Since)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, pgdial.Wrap(err)
	}
	return &s, nil
}

// text returns the value of an optional text, or "unknown".
func text(s *string) string {
	if s == nil || *s == "" {
		return "unknown"
	}
	return *s
}
