package preflight

import (
	"context"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/internal/pgdial"
)

// serverFacts is what one query says of server, database and role.
type serverFacts struct {
	Version    string // version(): the whole line
	VersionNum int    // server_version_num: 180004
	Recovery   bool

	WALLevel      string
	MaxSlots      int
	Slots         int
	MaxSenders    int
	Senders       int
	MaxConns      int // without those reserved for superusers
	Conns         int
	RoleConnLimit int // -1: none
	Encoding      string

	SlotKeepSize    string  // max_slot_wal_keep_size
	SlotIdleTimeout *string // idle_replication_slot_timeout, 18
	PluginLibraries *string // output_plugin_libraries, minors from August 2026 on
	StandbyFeedback string  // hot_standby_feedback
	FreezeMaxAge    int64   // autovacuum_freeze_max_age

	Role          string // quoted as an identifier where it needs to be
	Database      string // quoted likewise
	Publication   string // the configured name, quoted likewise
	Superuser     bool
	Replication   bool
	RDS           bool // a member of the role that gives replication on Amazon RDS
	SeesAll       bool // sees other roles' sessions
	CanCreate     bool // CREATE on the database
	EmitMessage   bool // EXECUTE on pg_logical_emit_message
	EmitSignature string
}

// major returns the major version.
func (s *serverFacts) major() int { return s.VersionNum / 10000 }

// minor returns the minor version.
func (s *serverFacts) minor() int { return s.VersionNum % 10000 }

// dotted returns "18.4".
func (s *serverFacts) dotted() string {
	if m := versionLine.FindStringSubmatch(s.Version); m != nil {
		return m[1]
	}
	return s.Version
}

// versionLine is what PostgreSQL's own version() begins with; packagers add a note in parentheses:
// "PostgreSQL 15.18 (Debian 15.18-0+deb12u1) on x86_64-pc-linux-gnu, compiled by ...".
var versionLine = regexp.MustCompile(
	`^PostgreSQL (\d+(?:\.\d+|devel|beta\d+|rc\d+)+)( \([^)]*\))? on `)

// forkWords appear in the version line of servers that speak PostgreSQL's protocol and keep their
// log in another way.
var forkWords = []string{
	"greenplum", "redshift", "yugabyte", "-yb-", "cockroach", "enterprisedb", "materialize",
	"risingwave", "cloudberry", "polardb", "opengauss", "gaussdb",
}

// fork reports whether the version line is not PostgreSQL's own.
func (s *serverFacts) fork() bool {
	if !versionLine.MatchString(s.Version) {
		return true
	}
	line := strings.ToLower(s.Version)
	for _, word := range forkWords {
		if strings.Contains(line, word) {
			return true
		}
	}
	return false
}

const versionSQL = `SELECT version(), current_setting('server_version_num')::int`

// serverSQL runs on 14 and later. Settings and functions that only some versions have are asked
// for in ways that do not fail without them.
const serverSQL = `
SELECT pg_is_in_recovery(),
       current_setting('wal_level'),
       current_setting('max_replication_slots')::int,
       (SELECT count(*)::int FROM pg_replication_slots),
       current_setting('max_wal_senders')::int,
       (SELECT count(*)::int FROM pg_stat_replication),
       current_setting('max_connections')::int
         - current_setting('superuser_reserved_connections')::int
         - coalesce(current_setting('reserved_connections', true), '0')::int,
       (SELECT coalesce(sum(numbackends), 0)::int FROM pg_stat_database),
       r.rolconnlimit,
       pg_encoding_to_char(d.encoding),
       current_setting('max_slot_wal_keep_size'),
       current_setting('idle_replication_slot_timeout', true),
       current_setting('output_plugin_libraries', true),
       current_setting('hot_standby_feedback'),
       current_setting('autovacuum_freeze_max_age')::bigint,
       quote_ident(r.rolname), quote_ident(d.datname), quote_ident($1::text),
       r.rolsuper, r.rolreplication,
       EXISTS (SELECT FROM pg_roles g WHERE g.rolname IN ('rds_replication', 'rds_superuser')
                 AND pg_has_role(r.oid, g.oid, 'member')),
       r.rolsuper OR pg_has_role(r.oid, 'pg_read_all_stats', 'usage'),
       has_database_privilege(r.oid, d.oid, 'CREATE'),
       has_function_privilege(r.oid, f.oid, 'EXECUTE'),
       'pg_logical_emit_message(' || pg_get_function_identity_arguments(f.oid) || ')'
FROM pg_roles r, pg_database d, pg_proc f
WHERE r.rolname = session_user AND d.datname = current_database()
  AND f.proname = 'pg_logical_emit_message' AND f.pronamespace = 'pg_catalog'::regnamespace
  AND f.proargtypes[2] = 'text'::regtype`

func (s *serverFacts) load(ctx context.Context, conn *pgx.Conn, publication string) error {
	err := conn.QueryRow(ctx, serverSQL, publication).Scan(
		&s.Recovery, &s.WALLevel, &s.MaxSlots, &s.Slots, &s.MaxSenders, &s.Senders,
		&s.MaxConns, &s.Conns, &s.RoleConnLimit, &s.Encoding, &s.SlotKeepSize, &s.SlotIdleTimeout,
		&s.PluginLibraries, &s.StandbyFeedback, &s.FreezeMaxAge, &s.Role, &s.Database,
		&s.Publication, &s.Superuser, &s.Replication, &s.RDS, &s.SeesAll, &s.CanCreate,
		&s.EmitMessage, &s.EmitSignature)
	return pgdial.Wrap(err)
}
