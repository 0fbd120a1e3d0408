package pgdial

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/schema"
)

// limits are further settings of every connection: limits of a role or database must not end a long
// snapshot, nor the creation of a slot, which waits for open transactions as for a lock. A policy
// must not hide rows in silence (row_security off makes that an error).
var limits = map[string]string{
	"statement_timeout":                   "0",
	"lock_timeout":                        "0",
	"idle_in_transaction_session_timeout": "0",
	"row_security":                        "off",
}

// Keepalive probes find a dead peer on an idle connection in about 30 + 3 * 10 seconds; the user
// timeout does on one with unacknowledged bytes. Both are of the order of a walsender's timeout.
const (
	keepAliveIdle     = 30 * time.Second
	keepAliveInterval = 10 * time.Second
	keepAliveCount    = 3
	tcpUserTimeout    = 60 * time.Second
)

// Config returns the settings of a connection to db. With replication it is one that speaks the
// replication commands for db's database; without it is an ordinary one that runs db's initial
// statements first. TLS follows libpq's sslmode, with libpq's default files in the home directory;
// hosts are tried in their order. Settings that cannot be used are a fault config_invalid.
func Config(db config.Database, appName string, replication bool) (*pgconn.Config, error) {
	cfg, err := SQLConfig(db, appName)
	if err != nil {
		return nil, err
	}
	if !replication {
		return &cfg.Config, nil
	}
	cfg.RuntimeParams["replication"] = "database"
	cfg.AfterConnect = initial(nil)
	return &cfg.Config, nil
}

// SQLConfig returns the settings of an ordinary connection in the form that pgx and its pool take.
// The search path is pg_catalog alone (schema.PinnedSettings), so statements qualify what they
// name.
func SQLConfig(db config.Database, appName string) (*pgx.ConnConfig, error) {
	cfg, err := pgx.ParseConfig(keywords(db))
	if err != nil {
		return nil, invalid(err)
	}
	if !db.Password.IsZero() {
		cfg.Password = db.Password.Reveal()
	}
	cfg.ConnectTimeout = db.ConnectTimeout
	cfg.DialFunc = dialer(db).dial
	// What the environment (PGTZ, PGOPTIONS and the like) says of settings gives way to ours.
	for _, setting := range schema.PinnedSettings() {
		cfg.RuntimeParams[setting.Name] = setting.Value
	}
	maps.Copy(cfg.RuntimeParams, limits)
	cfg.RuntimeParams["application_name"] = appName
	cfg.DefaultQueryExecMode = pgx.QueryExecModeDescribeExec
	cfg.StatementCacheCapacity = 0
	cfg.DescriptionCacheCapacity = 0
	cfg.AfterConnect = initial(db.InitialStatements)
	return cfg, nil
}

// keywords is the connection string without the password, which no error may then quote.
func keywords(db config.Database) string {
	mode := db.SSLMode
	if mode == "" {
		mode = "prefer"
	}
	var b strings.Builder
	set := func(key, value string) {
		value = strings.ReplaceAll(value, `\`, `\\`)
		value = strings.ReplaceAll(value, `'`, `\'`)
		fmt.Fprintf(&b, "%s='%s' ", key, value)
	}
	set("host", db.Host)
	if db.Port != 0 {
		set("port", strconv.Itoa(int(db.Port)))
	}
	set("user", db.User)
	set("dbname", db.Name)
	set("sslmode", mode)
	if db.SSLRootCert != "" {
		set("sslrootcert", db.SSLRootCert)
	}
	set("target_session_attrs", "any")
	return b.String()
}

// invalid turns an error of the parser into a fault without the connection string.
func invalid(err error) error {
	cause := err
	var parse *pgconn.ParseConfigError
	if errors.As(err, &parse) && parse.Unwrap() != nil {
		cause = parse.Unwrap()
	}
	return fault.Wrap(fault.ConfigInvalid,
		"the settings of the PostgreSQL connection cannot be used", cause).
		With("", "", "look at the database.* keys")
}

// initial returns the hook that makes a fresh connection ready: the encoding, limits of sessions,
// and then the statements of database.initial.statements.
//
// A database in SQL_ASCII holds bytes of no known encoding. With client_encoding UTF8 the server
// refuses the first value that is not UTF-8, in COPY and in the stream, for ever; so it is asked
// for the bytes as they are there, and whoever encodes them flags what is not UTF-8.
func initial(statements []string) pgconn.AfterConnectFunc {
	return func(ctx context.Context, conn *pgconn.PgConn) error {
		if conn.ParameterStatus("server_encoding") == "SQL_ASCII" {
			if _, err := conn.Exec(ctx, "SET client_encoding = 'SQL_ASCII'").ReadAll(); err != nil {
				return err
			}
		}
		if _, err := conn.Exec(ctx, noLimits).ReadAll(); err != nil {
			return err
		}
		for i, sql := range statements {
			if _, err := conn.Exec(ctx, sql).ReadAll(); err != nil {
				return fmt.Errorf("statement %d of database.initial.statements: %w", i+1, err)
			}
		}
		return nil
	}
}

// noLimits takes limits off that a role or database has for its sessions. A walsender decodes in a
// transaction: transaction_timeout (from 17 on) would end it at the same large transaction each
// time. It is in no startup packet because older servers refuse a setting that they do not know.
const noLimits = `SELECT pg_catalog.set_config(name, '0', false) FROM pg_catalog.pg_settings
	WHERE name IN ('transaction_timeout', 'idle_session_timeout',
		'idle_in_transaction_session_timeout')`

type netDialer struct{ net.Dialer }

func dialer(db config.Database) *netDialer {
	d := &netDialer{}
	d.Timeout = db.ConnectTimeout
	d.KeepAlive = -1
	if db.TCPKeepAlive {
		d.KeepAlive = 0
		d.KeepAliveConfig = net.KeepAliveConfig{
			Enable:   true,
			Idle:     keepAliveIdle,
			Interval: keepAliveInterval,
			Count:    keepAliveCount,
		}
	}
	d.Control = controlSocket
	return d
}

func (d *netDialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return d.DialContext(ctx, network, addr)
}
