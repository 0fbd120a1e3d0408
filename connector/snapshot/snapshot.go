// Package snapshot reads the rows that existed before the stream: each table through COPY, in one
// MVCC snapshot, with the output settings that the stream has, so that the same functions turn
// its text into Avro.
//
// Not everything is MVCC-safe. After a TRUNCATE or an ALTER TABLE that rewrites, an older snapshot
// reads zero rows without an error, and a rewrite sends nothing to the stream: the table would be
// lost with "snapshot done". So a reader locks a leaf first (ACCESS SHARE, kept to the end of its
// transaction) and then compares pg_class.relfilenode as its snapshot sees it with
// pg_relation_filenode, which reads the present catalog. They differ: ErrRewritten, and the caller
// begins the table again in a new snapshot. The lock keeps later rewrites away.
package snapshot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/internal/pgdial"
	"github.com/tidemark-cdc/tidemark/offsets"
	"github.com/tidemark-cdc/tidemark/schema"
)

// ErrRewritten says that a leaf was truncated or rewritten after the reader's snapshot was taken:
// the snapshot cannot see its rows; or that a column was dropped or renamed since it was looked up.
// Nothing of that leaf was handed on.
var ErrRewritten = errors.New("the table was truncated or altered after the snapshot was taken")

// ErrGone says that a table or leaf was dropped after the snapshot was taken.
var ErrGone = errors.New("the table was dropped after the snapshot was taken")

// Table is what one reader needs to know of a table: its shape, in the column order of the
// stream, and the publication's row filter ("" for none).
type Table struct {
	Relation *schema.Relation
	Filter   string // SQL condition, as pg_publication_tables prints it
	// Omits says of a column, by its index, that nobody wants it: it is not read, and null. nil
	// omits none.
	Omits func(i int) bool
}

// Reader is one REPEATABLE READ transaction on a connection of its own. It is not safe for
// concurrent use.
type Reader struct {
	conn        *pgx.Conn
	lockTimeout time.Duration

	// Descriptor is pg_current_snapshot() of the transaction: "xmin:xmax:xip,...".
	Descriptor string
}

// Options are what Open needs.
type Options struct {
	Database    config.Database
	AppName     string
	Exported    string // name of an exported snapshot; "" takes a new one
	LockTimeout time.Duration
}

// Open connects and begins the transaction, in the exported snapshot when one is named. The
// exporting session must still be idle behind its CREATE_REPLICATION_SLOT while Open runs; once it
// has returned, the snapshot lives in this transaction and the exporter may go on.
func Open(ctx context.Context, o Options) (*Reader, error) {
	conn, err := pgdial.Connect(ctx, o.Database, o.AppName)
	if err != nil {
		return nil, err
	}
	r := &Reader{conn: conn, lockTimeout: o.LockTimeout}
	if err := r.begin(ctx, o.Exported); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func (r *Reader) begin(ctx context.Context, exported string) error {
	sql := "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
	if exported != "" {
		sql += "; SET TRANSACTION SNAPSHOT " + quoteLiteral(exported)
	}
	sql += "; SET LOCAL lock_timeout = " + fmt.Sprint(r.lockTimeout.Milliseconds())
	if _, err := r.conn.PgConn().Exec(ctx, sql).ReadAll(); err != nil {
		return pgdial.Wrap(err)
	}
	err := r.conn.QueryRow(ctx, "SELECT pg_current_snapshot()::text").Scan(&r.Descriptor)
	if err != nil {
		return pgdial.Wrap(err)
	}
	return nil
}

// Close ends the transaction and the connection, with a deadline of its own.
func (r *Reader) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = r.conn.Close(ctx) // the server rolls back; there is nothing to lose in a reader
}

// Read hands every row of the table to fn, in no particular order, and returns how many there
// were. The tuple is borrowed: it is valid until fn returns. An error of fn ends the read and
// comes back as it is. ErrRewritten and ErrGone come before the first row of a leaf.
func (r *Reader) Read(ctx context.Context, t Table, fn func(schema.Tuple) error) (int64, error) {
	leaves, err := r.leaves(ctx, t.Relation.OID)
	if err != nil {
		return 0, err
	}
	// Every leaf is locked and compared before the first row, so that a rewrite of the last leaf
	// does not come to light after the first has been sent.
	for _, l := range leaves {
		if err := r.lock(ctx, l); err != nil {
			return 0, err
		}
	}
	var rows int64
	for _, l := range leaves {
		n, err := r.copy(ctx, l, t, fn)
		rows += n
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// Estimate returns the planner's estimate of the table's rows, -1 when it has none.
func (r *Reader) Estimate(ctx context.Context, oid uint32) int64 {
	var n float64
	err := r.conn.QueryRow(ctx, `SELECT coalesce(sum(c.reltuples) FILTER (WHERE c.reltuples >= 0), -1)
		FROM (SELECT $1::oid AS relid UNION SELECT relid FROM pg_partition_tree($1::oid) WHERE isleaf) t
		JOIN pg_class c ON c.oid = t.relid AND c.relkind = 'r'`, oid).Scan(&n)
	if err != nil {
		return -1
	}
	return int64(n)
}

type leaf struct {
	oid  uint32
	name string // quoted and qualified, as the snapshot sees it
	node uint32 // pg_class.relfilenode, as the snapshot sees it
}

const leavesSQL = `
SELECT c.oid, quote_ident(n.nspname) || '.' || quote_ident(c.relname), c.relfilenode
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND c.oid IN (
	WITH RECURSIVE tree AS (
		SELECT $1::oid AS oid
		UNION ALL
		SELECT i.inhrelid FROM tree JOIN pg_class p ON p.oid = tree.oid AND p.relkind = 'p'
		JOIN pg_inherits i ON i.inhparent = tree.oid AND NOT coalesce(
			(to_jsonb(i) ->> 'inhdetachpending')::bool, false)
	) SELECT oid FROM tree)
ORDER BY c.oid`

// leaves lists the tables with storage behind oid, by the snapshot's own catalog.
func (r *Reader) leaves(ctx context.Context, oid uint32) ([]leaf, error) {
	rows, err := r.conn.Query(ctx, leavesSQL, oid)
	if err != nil {
		return nil, pgdial.Wrap(err)
	}
	leaves, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (l leaf, err error) {
		err = row.Scan(&l.oid, &l.name, &l.node)
		return l, err
	})
	if err != nil {
		return nil, pgdial.Wrap(err)
	}
	return leaves, nil
}

// lock takes ACCESS SHARE on the leaf and checks that its storage is what the snapshot sees. The
// name is the snapshot's; a table that was renamed or replaced since has another OID or none.
func (r *Reader) lock(ctx context.Context, l leaf) error {
	_, err := r.conn.PgConn().Exec(ctx,
		"SAVEPOINT before; LOCK TABLE ONLY "+l.name+" IN ACCESS SHARE MODE").ReadAll()
	var pg *pgconn.PgError
	if errors.As(err, &pg) { // the other tables of this snapshot can still be read
		if _, undo := r.conn.Exec(ctx, "ROLLBACK TO SAVEPOINT before"); undo != nil {
			return pgdial.Wrap(undo)
		}
	}
	switch {
	case errors.As(err, &pg) && pg.Code == "42P01": // undefined_table
		return ErrGone
	case errors.As(err, &pg) && pg.Code == "55P03": // lock_not_available
		return fault.Wrap(fault.SnapshotBlocked,
			"the lock on "+l.name+" for its snapshot could not be had", pgdial.Wrap(err)).
			With("another session's lock", "ACCESS SHARE within "+r.lockTimeout.String(),
				"see pg_locks for the holder, or raise snapshot.lock.timeout.ms")
	case err != nil:
		return pgdial.Wrap(err)
	}
	var same bool
	err = r.conn.QueryRow(ctx, `SELECT coalesce(pg_relation_filenode($1::oid) = $2::oid, false)
		AND coalesce(to_regclass($3::text)::oid = $1::oid, false)`, l.oid, l.node, l.name).Scan(&same)
	if err != nil {
		return pgdial.Wrap(err)
	}
	if !same {
		return ErrRewritten
	}
	return nil
}

// copy reads one leaf, with the columns in the relation's order: a leaf's own order can differ.
func (r *Reader) copy(
	ctx context.Context, l leaf, t Table, fn func(schema.Tuple) error,
) (int64, error) {
	var sql strings.Builder
	sql.WriteString("COPY (SELECT ")
	for i, c := range t.Relation.Columns {
		if i > 0 {
			sql.WriteString(", ")
		}
		if t.Omits != nil && t.Omits(i) {
			sql.WriteString("NULL")
			continue
		}
		sql.WriteString(pgx.Identifier{c.Name}.Sanitize())
	}
	sql.WriteString(" FROM ONLY " + l.name)
	if t.Filter != "" {
		sql.WriteString(" WHERE " + t.Filter)
	}
	sql.WriteString(") TO STDOUT (FORMAT text)")
	w := &rowWriter{
		columns: len(t.Relation.Columns), fn: fn,
		tuple: schema.Tuple{}, // nil is "no row", even where a table has no columns
	}
	_, err := r.conn.PgConn().CopyTo(ctx, w, sql.String())
	var pg *pgconn.PgError
	switch {
	case w.err != nil:
		return w.rows, w.err
	case errors.As(err, &pg) && pg.Code == "42703": // undefined_column
		// Dropped or renamed after the relation was looked up and before the lock: the storage is the
		// same and the columns are not. The other tables of this snapshot can still be read.
		if _, undo := r.conn.Exec(ctx, "ROLLBACK TO SAVEPOINT before"); undo != nil {
			return w.rows, pgdial.Wrap(undo)
		}
		return w.rows, ErrRewritten
	case err != nil:
		return w.rows, pgdial.Wrap(err)
	case len(w.partial) > 0:
		return w.rows, fault.New(fault.ProtocolError, "COPY of "+l.name+" ended within a row")
	}
	return w.rows, nil
}

// WALInsert returns the server's WAL insert position (the replay position on a standby).
func (r *Reader) WALInsert(ctx context.Context) (offsets.LSN, error) {
	return walInsert(ctx, r.conn)
}

func walInsert(ctx context.Context, conn *pgx.Conn) (offsets.LSN, error) {
	var s string
	err := conn.QueryRow(ctx, `SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()
		ELSE pg_current_wal_insert_lsn() END::text`).Scan(&s)
	if err != nil {
		return 0, pgdial.Wrap(err)
	}
	return offsets.ParseLSN(s)
}

func quoteLiteral(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
