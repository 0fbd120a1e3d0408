package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/schema"
)

// TableRow is an ordinary or partitioned table of the database, as the catalog has it now.
type TableRow struct {
	OID    uint32
	Schema string
	Name   string
	// Partitioned is a table that has partitions and no rows of its own; Partition one that is a
	// partition of another. RootOID is the topmost table's, its own OID for one that is none.
	Partitioned bool
	Partition   bool
	RootOID     uint32

	Identity schema.Identity
	// IdentityColumns are the columns that the old tuple of an UPDATE or DELETE is known by: the
	// primary key's under DEFAULT, the index's under INDEX, in table order. Empty under FULL, where
	// it is all columns, and when there is no such index or it is not valid or deferrable.
	IdentityColumns []string
	PrimaryKey      []string // in table order, whatever the identity
	NotNull         []string // columns that are NOT NULL
	ToastColumns    []string // columns whose values can be stored out of line
	Generated       string   // kinds of its generated columns: "", "s", "v" or "sv"

	Unlogged    bool // its changes are not in the log
	RowSecurity bool // its policies could hide rows from the connector's role
	Selectable  bool // the connector's role may SELECT from it
	Owned       bool // the connector's role is, or is a member of, its owner
	// Rows is the planner's estimate; a root's is the sum of its leaves'. 0 also means not known.
	Rows int64
}

// UsableIdentity says whether the server lets an UPDATE or DELETE of a published table pass, and
// says which row it was. For a root it is its leaves' that count.
func (t TableRow) UsableIdentity() bool {
	return t.Identity == schema.IdentityFull || len(t.IdentityColumns) > 0
}

var candidatesSQL = `
SELECT c.oid::pg_catalog.int8, n.nspname::text, c.relname::text, c.relkind = 'p', c.relispartition,
	coalesce(CASE WHEN c.relispartition THEN pg_catalog.pg_partition_root(c.oid) END, c.oid)
		::pg_catalog.oid::pg_catalog.int8,
	c.relreplident::text,
	` + indexColumns(identityIndex) + `,
	` + indexColumns(`i.indisprimary`) + `,
	` + columnsWhere(`a.attnotnull`) + `,
	` + columnsWhere(toastable) + `,
	(SELECT coalesce(string_agg(DISTINCT a.attgenerated::text, '' ORDER BY a.attgenerated::text), '')
		FROM pg_catalog.pg_attribute a
		WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
	c.relpersistence = 'u',
	c.relrowsecurity AND pg_catalog.row_security_active(c.oid),
	pg_catalog.has_table_privilege(c.oid, 'SELECT'),
	pg_catalog.pg_has_role(c.relowner, 'USAGE'),
	CASE WHEN c.relkind = 'r' AND c.reltuples > 0 THEN c.reltuples::pg_catalog.int8 ELSE 0 END
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't'
	AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
ORDER BY n.nspname, c.relname`

// toastable is an SQL condition: a's values can be stored out of line. A table whose rows cannot
// grow that long has no TOAST table; a root never has one, whatever its leaves have.
const toastable = `a.attlen = -1 AND a.attstorage <> 'p' AND
	(c.reltoastrelid <> 0 OR c.relkind = 'p')`

// columnsWhere is an SQL query for the names of c's columns that fulfil a condition.
func columnsWhere(condition string) string {
	return `(SELECT coalesce(array_agg(a.attname::text ORDER BY a.attnum), '{}')
		FROM pg_catalog.pg_attribute a
		WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND ` + condition + `)`
}

// Candidates returns every ordinary and partitioned table outside of the system's schemas, by
// schema and name: roots and leaves alike, temporary tables aside.
func (c *Catalog) Candidates(ctx context.Context) ([]TableRow, error) {
	var tables []TableRow
	rows := map[uint32]int64{}
	scan := func(r pgx.Rows) error {
		var t TableRow
		var oid, root int64
		var identity string
		err := r.Scan(&oid, &t.Schema, &t.Name, &t.Partitioned, &t.Partition, &root, &identity,
			&t.IdentityColumns, &t.PrimaryKey, &t.NotNull, &t.ToastColumns, &t.Generated,
			&t.Unlogged, &t.RowSecurity, &t.Selectable, &t.Owned, &t.Rows)
		if err != nil {
			return err
		}
		t.OID, t.RootOID, t.Identity = uint32(oid), uint32(root), schema.Identity(identity[0])
		rows[t.RootOID] += t.Rows
		tables = append(tables, t)
		return nil
	}
	if err := c.query(ctx, "list the tables of the database", candidatesSQL, scan); err != nil {
		return nil, err
	}
	for i, t := range tables {
		if t.Partitioned && !t.Partition {
			tables[i].Rows = rows[t.OID]
		}
	}
	return tables, nil
}

// ErrNoRelation says that the catalog has no such relation.
var ErrNoRelation = errors.New("there is no such relation")

// RootOf returns the OID of the topmost partitioned table that a relation is a partition of, or
// its own when it is no partition.
func (c *Catalog) RootOf(ctx context.Context, oid uint32) (uint32, error) {
	const sql = `
SELECT coalesce(CASE WHEN c.relispartition THEN pg_catalog.pg_partition_root(c.oid) END, c.oid)
	::pg_catalog.oid::pg_catalog.int8
FROM pg_catalog.pg_class c
WHERE c.oid = $1::pg_catalog.int8::pg_catalog.oid`
	what := fmt.Sprintf("look up the root of relation %d", oid)
	var root int64
	scan := func(r pgx.Rows) error { return r.Scan(&root) }
	if err := c.query(ctx, what, sql, scan, int64(oid)); err != nil {
		return 0, err
	}
	if root == 0 {
		return 0, fmt.Errorf("%s: %w", what, ErrNoRelation)
	}
	return uint32(root), nil
}
