// Package catalog asks PostgreSQL's system catalogs for what the stream does not say: primary
// keys, partitions, types, which tables there are, what a publication makes of each, and how many
// fractional digits the currency has.
//
// It reads names and shapes and never a row of a table. Every statement names its relations and
// functions with their schema, so that no search_path changes what it finds, and runs in one
// round trip (extended protocol, nothing prepared), so that it works behind a connection pooler.
//
//	table.go       Table: primary key, leaves and types of a relation that the stream announced
//	candidates.go  Candidates, RootOf: every table that could be captured, with its identity
//	published.go   Published, RelationOf: what a publication will announce of its tables
//	money.go       MoneyDigits
package catalog

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/schema"
)

// Catalog asks over one connection. Like the connection, it is used by one goroutine at a time.
//
// Its errors are the connection's, wrapped with what was asked; pgconn.PgError has the server's
// SQLSTATE. The caller knows whether to connect again.
type Catalog struct {
	conn *pgx.Conn
	// types are all types seen so far. An answer replaces what was known; a type that has been
	// dropped since is kept, for rows that were written before it was.
	types typeMap
	limit time.Duration // of one statement; 0 is none
}

// New returns a Catalog on an ordinary connection (not one that speaks the replication commands).
// The connection stays the caller's.
func New(conn *pgx.Conn) *Catalog { return &Catalog{conn: conn, types: typeMap{}} }

// Limit bounds each statement from now on; 0 is no bound. A statement that takes longer costs the
// connection.
func (c *Catalog) Limit(d time.Duration) *Catalog {
	c.limit = d
	return c
}

// query runs a statement in one round trip and hands each row to scan.
func (c *Catalog) query(
	ctx context.Context, what, sql string, scan func(pgx.Rows) error, args ...any,
) error {
	if c.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.limit)
		defer cancel()
	}
	rows, err := c.conn.Query(ctx, sql, append([]any{pgx.QueryExecModeExec}, args...)...)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// major is the server's major version, from the parameter that it reports when one connects:
// "18.4", "18.4 (Debian 18.4-1)", "19beta1".
func (c *Catalog) major() int {
	version := c.conn.PgConn().ParameterStatus("server_version")
	end := strings.IndexFunc(version, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(version)
	}
	n, _ := strconv.Atoi(version[:end]) // 0, the oldest, when there is none
	return n
}

// identityIndex is an SQL condition: index i of relation c is the one whose columns the server
// marks as identity (RelationGetIndexList: valid, and, for a primary key, not deferrable).
const identityIndex = `i.indisvalid AND i.indimmediate AND
	CASE c.relreplident WHEN 'd' THEN i.indisprimary WHEN 'i' THEN i.indisreplident END`

// indexColumns is an SQL query for the names of c's columns in indexes i that fulfil a condition,
// in table order; columns of INCLUDE are not among them.
func indexColumns(condition string) string {
	return `(SELECT coalesce(array_agg(a.attname::text ORDER BY a.attnum), '{}')
		FROM pg_catalog.pg_index i
		JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid
			AND a.attnum = ANY ((i.indkey::pg_catalog.int2[])[0:i.indnkeyatts - 1])
		WHERE i.indrelid = c.oid AND ` + condition + `)`
}

// typeMap is an immutable answer, or the cache.
type typeMap map[uint32]schema.TypeInfo

func (m typeMap) Type(oid uint32) (schema.TypeInfo, bool) {
	info, ok := m[oid]
	return info, ok
}
