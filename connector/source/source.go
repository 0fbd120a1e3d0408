// Package source is the connector's ordinary connection to PostgreSQL, beside the replication
// connection: it reads the slot's row, the publication's fingerprint and the server's facts, makes
// publications, and emits heartbeats. Nothing of the stream's way waits for it.
package source

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/internal/pgdial"
)

// MinVersion is the oldest server that slot mode works with: logical messages in pgoutput, which
// heartbeats are, came with 14.
const MinVersion = 140000

// Source is one ordinary connection that is made again when it is lost. It is safe for concurrent
// use; calls take turns, and one whose context ends does not wait for another's to end.
type Source struct {
	db      config.Database
	appName string

	turn chan struct{} // capacity 1: filled by who has the connection
	conn *pgx.Conn

	version    int
	postgreSQL bool

	primary *Source // of a server that is a standby; nil: not configured
}

// Connect connects and reads the server's version. A server older than 14 is server_too_old.
func Connect(ctx context.Context, db config.Database, appName string) (*Source, error) {
	s := &Source{db: db, appName: appName, turn: make(chan struct{}, 1)}
	err := s.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		var text string
		err := conn.QueryRow(ctx,
			"SELECT current_setting('server_version_num')::int, version()").Scan(&s.version, &text)
		s.postgreSQL = strings.HasPrefix(text, "PostgreSQL ")
		return err
	})
	if err != nil {
		s.Close()
		return nil, err
	}
	if s.version < MinVersion {
		s.Close()
		return nil, fault.New(fault.ServerTooOld, "the server is too old for a replication slot").
			With(fmt.Sprintf("version %d.%d", s.version/10000, s.version%10000),
				"PostgreSQL 14 or later", "upgrade the server")
	}
	return s, nil
}

// Version is server_version_num, 180004 for 18.4.
func (s *Source) Version() int { return s.version }

// PostgreSQL reports whether the server is PostgreSQL itself and not a fork with another version
// string: the meaning of a keepalive's position is known for PostgreSQL only.
func (s *Source) PostgreSQL() bool { return s.postgreSQL }

// Close closes the connection, with a deadline of its own.
func (s *Source) Close() {
	if s.primary != nil {
		s.primary.Close()
	}
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	s.drop()
}

func (s *Source) drop() {
	if s.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = s.conn.Close(ctx) // nothing is in flight that could be lost
	s.conn = nil
}

// with runs f on the connection, which is made when there is none, and gives f's error as a fault.
func (s *Source) with(ctx context.Context, f func(context.Context, *pgx.Conn) error) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return pgdial.Wrap(ctx.Err())
	}
	if s.conn != nil && s.conn.IsClosed() {
		s.conn = nil
	}
	if s.conn == nil {
		conn, err := pgdial.Connect(ctx, s.db, s.appName)
		if err != nil {
			return err
		}
		s.conn = conn
	}
	if s.db.QueryTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.db.QueryTimeout)
		defer cancel()
	}
	if err := f(ctx, s.conn); err != nil {
		return pgdial.Wrap(err)
	}
	return nil
}

// Setting returns current_setting(name), "" for one that the server does not have.
func (s *Source) Setting(ctx context.Context, name string) (value string, err error) {
	err = s.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT coalesce(current_setting($1, true), '')", name).Scan(&value)
	})
	return value, err
}

// Requirements checks what the server must have before anything is created: wal_level and the
// right to use replication. The commands behind `tidemark check` say more; this stops a start.
func (s *Source) Requirements(ctx context.Context) error {
	var level, role string
	var allowed bool
	err := s.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `
			SELECT current_setting('wal_level'), current_user::text,
				coalesce((SELECT rolreplication OR rolsuper FROM pg_roles WHERE rolname = current_user),
					false)
				OR EXISTS (SELECT FROM pg_roles r WHERE r.rolname IN
						('rds_replication', 'rdsrepladmin', 'cloudsqlsuperuser', 'azure_pg_admin')
					AND pg_has_role(current_user, r.oid, 'MEMBER'))`).
			Scan(&level, &role, &allowed)
	})
	switch {
	case err != nil:
		return err
	case level != "logical":
		return fault.New(fault.WALLevel, "the server does not write what logical decoding needs").
			With("wal_level = "+level, "wal_level = logical",
				"ALTER SYSTEM SET wal_level = 'logical'; then restart the server")
	case !allowed:
		return fault.New(fault.NotAReplicationRole, "the role may not use replication").
			With("role "+role+" without REPLICATION", "the REPLICATION attribute",
				"ALTER ROLE "+pgx.Identifier{role}.Sanitize()+" REPLICATION")
	}
	return nil
}

// InRecovery reports whether the server is a standby.
func (s *Source) InRecovery(ctx context.Context) (standby bool, err error) {
	err = s.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT pg_is_in_recovery()").Scan(&standby)
	})
	return standby, err
}
