package testenv

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
)

// StartStandby makes a physical standby of a running server and starts it; it returns when it takes
// connections. Version is the primary's whatever o says. It streams through a physical
// replication slot on the primary, named StandbySlot and its port. The caller closes both servers.
//
// The binaries have no pg_basebackup; as both servers are on one machine the files are copied,
// between the functions that begin and end a backup (manual, "Making a Base Backup Using the Low
// Level API").
func StartStandby(ctx context.Context, primary *Postgres, o PostgresOptions) (*Postgres, error) {
	p, err := newPostgres(primary.Version, primary.binDir)
	if err != nil {
		return nil, err
	}
	err = p.backUp(ctx, primary)
	if err == nil {
		o.Settings = maps.Clone(o.Settings)
		if o.Settings == nil {
			o.Settings = map[string]string{}
		}
		maps.Copy(o.Settings, map[string]string{
			// A database is named for the synchronisation of slots, which takes it from here.
			"primary_conninfo":     primary.URL("postgres"),
			"primary_slot_name":    p.standbySlot(),
			"hot_standby_feedback": "on",
		})
		err = p.configure(o)
	}
	if err == nil {
		err = p.Start(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start a standby: %w", err), p.Close())
	}
	return p, nil
}

// StandbySlot begins the name of a standby's slot on its primary.
const StandbySlot = "standby_"

func (p *Postgres) standbySlot() string { return fmt.Sprintf("%s%d", StandbySlot, p.Port) }

// backUp fills the data directory from a running server.
func (p *Postgres) backUp(ctx context.Context, primary *Postgres) error {
	conn, err := primary.Connect(ctx, "postgres")
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	begin, end := "SELECT pg_backup_start('standby', true)", "SELECT labelfile FROM pg_backup_stop(false)"
	if primary.Version == "14" {
		begin = "SELECT pg_start_backup('standby', true, false)"
		end = "SELECT labelfile FROM pg_stop_backup(false, false)"
	}
	if err := run(ctx, conn, begin); err != nil {
		return err
	}
	err = run(ctx, conn, fmt.Sprintf("SELECT pg_create_physical_replication_slot('%s', true)",
		p.standbySlot()))
	if err != nil {
		return err
	}
	cred := serverUser()
	if err := copyTree(primary.DataDir, p.DataDir, cred, ofOneServer); err != nil {
		return err
	}
	var label string
	if err := conn.QueryRow(ctx, end).Scan(&label); err != nil {
		return err
	}
	return errors.Join(
		writeAs(cred, filepath.Join(p.DataDir, "backup_label"), label, os.O_EXCL),
		writeAs(cred, filepath.Join(p.DataDir, "standby.signal"), "", os.O_EXCL))
}

// ofOneServer reports whether a path of a data directory is not part of a backup: what belongs to
// the running process, and its slots.
func ofOneServer(rel string) bool {
	for _, name := range []string{"pg_replslot", "pg_dynshmem", "pg_notify", "pg_stat_tmp"} {
		if strings.HasPrefix(rel, name+"/") {
			return true
		}
	}
	return rel == "postmaster.pid" || rel == "postmaster.opts"
}

func run(ctx context.Context, conn *pgx.Conn, sql string) error {
	_, err := conn.Exec(ctx, sql)
	return err
}
