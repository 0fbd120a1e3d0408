package pgdial

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemark-cdc/tidemark/config"
)

// Connect opens an ordinary connection and runs db's initial statements on it. Errors are faults of
// Wrap. The connection describes each statement anew, so it lives through changes of tables.
func Connect(ctx context.Context, db config.Database, appName string) (*pgx.Conn, error) {
	cfg, err := SQLConfig(db, appName)
	if err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, Wrap(err)
	}
	return conn, nil
}

// ConnectReplication opens a connection that takes replication commands. Errors are faults of Wrap.
func ConnectReplication(
	ctx context.Context, db config.Database, appName string,
) (*pgconn.PgConn, error) {
	cfg, err := Config(db, appName, true)
	if err != nil {
		return nil, err
	}
	conn, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, Wrap(err)
	}
	return conn, nil
}
