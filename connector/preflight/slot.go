package preflight

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/internal/pgdial"
)

// checkSlot reads the slot for this and later checks.
func checkSlot(ctx context.Context, p *probe, o *outcome) error {
	slot, err := loadSlot(ctx, p.conn, p.cfg.SlotName)
	if err != nil {
		p.away[needSlot] = "the slot could not be read"
		return err
	}
	p.slot = slot
	if slot == nil {
		o.ok("slot %s does not exist; the first start makes it", p.cfg.SlotName)
		return nil
	}
	object := "slot " + slot.Name
	drop := fmt.Sprintf("set slot.name to another name; or, when nobody needs this slot: "+
		"SELECT pg_drop_replication_slot('%s');", strings.ReplaceAll(slot.Name, "'", "''"))
	switch {
	case slot.Type != "logical":
		o.fail(object, slot.Type, "logical", drop)
	case text(slot.Plugin) != "pgoutput":
		o.fail(object, "plugin "+text(slot.Plugin), "pgoutput", drop)
	case text(slot.Database) != p.cfg.Database.Name:
		o.fail(object, "database "+text(slot.Database), p.cfg.Database.Name, drop)
	case slot.Temporary:
		o.fail(object, "temporary: it goes with the session that made it", "permanent", drop)
	default:
		o.ok("slot %s, confirmed up to %s", slot.Name, text(slot.ConfirmedFlush))
	}
	return nil
}

func checkSlotLost(_ context.Context, p *probe, o *outcome) error {
	slot := p.slot
	if slot == nil {
		o.ok("no slot yet")
		return nil
	}
	status, why := text(slot.WALStatus), ""
	if slot.Invalidation != nil {
		why = ", " + *slot.Invalidation
	}
	if status == "lost" || slot.Conflicting || slot.Invalidation != nil {
		o.fail("slot "+slot.Name, "wal_status "+status+why, "reserved",
			"drop the slot and begin again: SELECT pg_drop_replication_slot('"+slot.Name+
				"'); then tidemark offsets reset; and raise "+slot.guard())
		return nil
	}
	o.ok("wal_status %s", status)
	return nil
}

// guard names the setting that invalidated the slot.
func (s *slotFacts) guard() string {
	switch text(s.Invalidation) {
	case "idle_timeout":
		return "idle_replication_slot_timeout"
	case "rows_removed":
		return "hot_standby_feedback (turn it on)"
	case "wal_level_insufficient":
		return "wal_level on the primary"
	}
	return "max_slot_wal_keep_size"
}

func checkSlotRunsOut(_ context.Context, p *probe, o *outcome) error {
	slot := p.slot
	switch {
	case slot == nil:
		o.ok("no slot yet")
	case text(slot.WALStatus) == "unreserved":
		o.fail("slot "+slot.Name, "wal_status unreserved: the next checkpoint may remove its WAL",
			"reserved", "start the connector now, or raise max_slot_wal_keep_size")
	case slot.RetainedBytes == nil:
		o.ok("retained WAL is not known")
	default:
		o.ok("%s of WAL retained", size(*slot.RetainedBytes))
	}
	return nil
}

func checkSlotActive(_ context.Context, p *probe, o *outcome) error {
	slot := p.slot
	switch {
	case slot == nil:
		o.ok("no slot yet")
	case !slot.Active:
		o.ok("nobody uses the slot")
	default:
		pid := int32(0)
		if slot.ActivePID != nil {
			pid = *slot.ActivePID
		}
		o.fail("slot "+slot.Name, fmt.Sprintf("in use by PID %d, application %s, client %s, since %s",
			pid, text(slot.Application), text(slot.Client), text(slot.Since)),
			"nobody, unless it is this connector that runs already",
			"stop the other process; a connector waits slot.takeover.timeout.ms for it")
	}
	return nil
}

func checkSlotGuards(_ context.Context, p *probe, o *outcome) error {
	s := &p.server
	size := s.SlotKeepSize
	idle := "0"
	if s.SlotIdleTimeout != nil {
		idle = *s.SlotIdleTimeout
	}
	if size != "-1" || idle != "0" {
		o.ok("max_slot_wal_keep_size %s, idle_replication_slot_timeout %s", size, idle)
		return nil
	}
	found := "max_slot_wal_keep_size is -1"
	if s.SlotIdleTimeout != nil {
		found += " and idle_replication_slot_timeout is 0"
	}
	o.fail("", found+": a slot that nobody reads keeps WAL until the disk is full",
		"a bound that the disk can hold, and an alarm on tidemark_slot_safe_wal_bytes",
		"ALTER SYSTEM SET max_slot_wal_keep_size = '50GB'; SELECT pg_reload_conf();")
	return nil
}

// publicationAgeSQL compares ages, since transaction ids wrap: the younger has the smaller age. A
// new slot begins with the catalog_xmin of the slot that holds back the most, so that its own says
// when it was made only if no other is as old.
const publicationAgeSQL = `
SELECT age(p.xmin)::bigint, age(s.catalog_xmin)::bigint,
       coalesce((SELECT max(age(o.catalog_xmin)) FROM pg_replication_slots o
                 WHERE o.slot_name <> s.slot_name), -1)::bigint
FROM pg_publication p, pg_replication_slots s
WHERE p.pubname = $1 AND s.slot_name = $2 AND s.catalog_xmin IS NOT NULL`

func checkPublicationAge(ctx context.Context, p *probe, o *outcome) error {
	if p.slot == nil || p.publication == nil {
		o.ok("the first start makes the publication before the slot")
		return nil
	}
	var publication, slot, others int64
	err := p.conn.QueryRow(ctx, publicationAgeSQL, p.cfg.Publication, p.cfg.SlotName).
		Scan(&publication, &slot, &others)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		o.ok("the slot has no catalog_xmin")
	case err != nil:
		return pgdial.Wrap(err)
	case publication > slot:
		o.ok("the publication is older than the slot")
	case others >= slot:
		o.ok("not known: another slot holds catalog_xmin back as far")
	default:
		effect := "up to 17 the server then refuses changes from before it for ever"
		if p.server.major() >= 18 {
			effect = "the server then skips changes from before it with nothing but a warning"
		}
		o.fail("publication "+p.server.Publication,
			"made or altered after the oldest change that slot "+p.slot.Name+" may still give",
			"a publication that is older than the slot; "+effect,
			"none when the connector itself has altered it; else begin again with a new slot")
	}
	return nil
}

func checkXminAge(ctx context.Context, p *probe, o *outcome) error {
	rows, err := p.conn.Query(ctx, `SELECT slot_name::text, age(catalog_xmin)::bigint
		FROM pg_replication_slots WHERE catalog_xmin IS NOT NULL ORDER BY 1`)
	if err != nil {
		return pgdial.Wrap(err)
	}
	type slotAge struct {
		Name string
		Age  int64
	}
	ages, err := pgx.CollectRows(rows, pgx.RowToStructByPos[slotAge])
	if err != nil {
		return pgdial.Wrap(err)
	}
	limit, oldest := p.server.FreezeMaxAge/2, int64(0)
	for _, s := range ages {
		oldest = max(oldest, s.Age)
		if s.Age > limit {
			o.fail("slot "+s.Name, fmt.Sprintf("catalog_xmin is %d transactions old", s.Age),
				fmt.Sprintf("less than %d (half of autovacuum_freeze_max_age): catalogs cannot be "+
					"vacuumed beyond it", limit),
				"let its reader catch up, or drop the slot when it has none")
		}
	}
	o.ok("oldest is %d transactions old", oldest)
	return nil
}

// openMin is how old a transaction is before it is worth a line: younger ones are a busy server.
const openMin = 5 * time.Second

// openSQL lists transactions that have an id: a new slot waits for each of them, in all databases.
// pg_locks shows the id's lock to everybody; the rest may be hidden from this role.
const openSQL = `
SELECT l.pid, coalesce(extract(epoch FROM clock_timestamp() - a.xact_start), -1)::float8,
       a.datname, a.usename, a.application_name, a.state
FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'transactionid' AND l.mode = 'ExclusiveLock' AND l.granted
  AND l.pid IS NOT NULL AND l.pid <> pg_backend_pid()
ORDER BY a.xact_start, l.pid`

const preparedSQL = `
SELECT gid, extract(epoch FROM clock_timestamp() - prepared)::float8, database, owner
FROM pg_prepared_xacts ORDER BY prepared`

func checkOpenTransactions(ctx context.Context, p *probe, o *outcome) error {
	if p.slot != nil {
		o.ok("the slot exists")
		return nil
	}
	rows, err := p.conn.Query(ctx, openSQL)
	if err != nil {
		return pgdial.Wrap(err)
	}
	var pid int32
	var age float64
	var database, user, application, state *string
	_, err = pgx.ForEachRow(rows, []any{&pid, &age, &database, &user, &application, &state},
		func() error {
			if age >= 0 && age < openMin.Seconds() {
				return nil
			}
			o.fail(fmt.Sprintf("PID %d", pid), fmt.Sprintf(
				"a transaction %s, database %s, user %s, application %s, %s", seconds(age),
				text(database), text(user), text(application), text(state)),
				"none: making the slot waits for its end",
				fmt.Sprintf("end it; or SELECT pg_terminate_backend(%d);", pid))
			return nil
		})
	if err != nil {
		return pgdial.Wrap(err)
	}
	if rows, err = p.conn.Query(ctx, preparedSQL); err != nil {
		return pgdial.Wrap(err)
	}
	var gid string
	_, err = pgx.ForEachRow(rows, []any{&gid, &age, &database, &user}, func() error {
		quoted := "'" + strings.ReplaceAll(gid, "'", "''") + "'"
		o.fail("prepared transaction "+gid, fmt.Sprintf("%s, database %s, owner %s", seconds(age),
			text(database), text(user)), "none: making the slot waits for its end",
			"in that database: COMMIT PREPARED "+quoted+"; or ROLLBACK PREPARED "+quoted+";")
		return nil
	})
	o.ok("none that making the slot would wait for")
	return pgdial.Wrap(err)
}

func checkStandby(_ context.Context, p *probe, o *outcome) error {
	s := &p.server
	switch {
	case !s.Recovery:
		o.ok("a primary")
	case s.StandbyFeedback != "on":
		o.fail("hot_standby_feedback", s.StandbyFeedback,
			"on: the primary may otherwise remove catalog rows that the slot needs",
			"ALTER SYSTEM SET hot_standby_feedback = on; SELECT pg_reload_conf();")
	case p.cfg.Primary == nil:
		o.fail("primary.hostname", "none given",
			"the primary, where heartbeats are made and what the making of a slot on an idle standby needs",
			"in the configuration: primary.hostname; on the primary: GRANT EXECUTE ON FUNCTION "+
				"pg_log_standby_snapshot() TO the connector's role;")
	default:
		o.ok("a standby with hot_standby_feedback, its primary known")
	}
	return nil
}

// seconds prints an age; a negative one is not visible to this role.
func seconds(age float64) string {
	if age < 0 {
		return "whose age this role may not see"
	}
	return "open for " + (time.Duration(age) * time.Second).String()
}

// size prints bytes with a binary unit.
func size(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	f, i := float64(n), 0
	for f >= 1024 && i < len(units)-1 {
		f, i = f/1024, i+1
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}
