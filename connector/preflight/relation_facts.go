package preflight

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/internal/pgdial"
	"github.com/tidemark-cdc/tidemark/schema"
)

// relation is what the catalog says of a table or of something that looks like one.
type relation struct {
	OID         uint32
	Schema      string
	Name        string
	Quoted      string // schema.name as SQL takes it
	QuotedIn    string // schema likewise
	Kind        byte   // pg_class.relkind: r, p, v, m, f, S
	Persistence byte   // relpersistence: p, u, t
	Identity    schema.Identity
	Partition   bool   // a partition of another table
	RootOID     uint32 // topmost ancestor; 0 when it is in no partition tree, its own OID when root
	Select      bool   // SELECT on the table, or on each of its columns
	Usage       bool   // USAGE on the schema
	RLS         bool   // policies apply to this role
	Owned       bool   // this role has the owner's rights
	Toast       bool   // has a TOAST table

	Columns []column
	Indexes []index
	root    *relation
	leaves  []*relation // of a root: every table below it that holds rows
}

// column is a live column.
type column struct {
	Name      string
	Quoted    string
	TypeOID   uint32
	Type      string // format_type with the typmod
	TypeName  string // pg_type.typname
	NotNull   bool
	Toastable bool // variable length and not storage PLAIN
	Generated bool
	Identity  bool // GENERATED ... AS IDENTITY
}

// index is an index that could identify rows.
type index struct {
	Name      string
	Quoted    string
	Primary   bool
	Identity  bool // pg_index.indisreplident
	Unique    bool
	Immediate bool // not deferrable
	Valid     bool
	Whole     bool // neither partial nor over expressions
	NotNull   bool // every column is NOT NULL
	Columns   []string
}

func (r *relation) name() string { return r.Schema + "." + r.Name }

func (r *relation) isTable() bool { return r.Kind == 'r' || r.Kind == 'p' }

// column returns the column with a name, or nil.
func (r *relation) column(name string) *column {
	for i := range r.Columns {
		if r.Columns[i].Name == name {
			return &r.Columns[i]
		}
	}
	return nil
}

// primaryKey returns the primary key, or nil.
func (r *relation) primaryKey() *index {
	for i := range r.Indexes {
		if r.Indexes[i].Primary {
			return &r.Indexes[i]
		}
	}
	return nil
}

// identityIndex returns the index by which the server identifies old rows: nil under FULL and
// NOTHING, and when the index that the identity names is gone or cannot serve.
func (r *relation) identityIndex() *index {
	for i := range r.Indexes {
		x := &r.Indexes[i]
		chosen := r.Identity == schema.IdentityDefault && x.Primary ||
			r.Identity == schema.IdentityIndex && x.Identity
		if chosen && x.usable() {
			return x
		}
	}
	return nil
}

// usable reports whether PostgreSQL takes the index as a replica identity.
func (x *index) usable() bool {
	return x.Unique && x.Immediate && x.Valid && x.Whole && x.NotNull
}

const relationsSQL = `
SELECT c.oid, n.nspname::text, c.relname::text, format('%I.%I', n.nspname, c.relname),
       quote_ident(n.nspname),
       ascii(c.relkind), ascii(c.relpersistence), ascii(c.relreplident), c.relispartition,
       coalesce(pg_partition_root(c.oid), 0)::oid,
       coalesce(has_table_privilege(c.oid, 'SELECT') OR (c.relkind IN ('r', 'p') AND NOT EXISTS (
         SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
           AND NOT has_column_privilege(c.oid, a.attnum, 'SELECT'))), false),
       coalesce(has_schema_privilege(n.oid, 'USAGE'), false),
       coalesce(row_security_active(c.oid), false),
       pg_has_role(c.relowner, 'USAGE'),
       c.reltoastrelid <> 0
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND c.relpersistence <> 't'
  AND n.nspname !~ '^pg_(toast|catalog|temp_|toast_temp_)' AND n.nspname <> 'information_schema'
ORDER BY n.nspname, c.relname`

const columnsSQL = `
SELECT a.attrelid, a.attname::text, quote_ident(a.attname), a.atttypid,
       format_type(a.atttypid, a.atttypmod), t.typname::text, a.attnotnull,
       a.attlen = -1 AND a.attstorage <> 'p', a.attgenerated <> '', a.attidentity <> ''
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = ANY($1) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attrelid, a.attnum`

const indexesSQL = `
SELECT i.indrelid, c.relname::text, quote_ident(c.relname), i.indisprimary, i.indisreplident,
       i.indisunique, i.indimmediate, i.indisvalid AND i.indislive,
       i.indpred IS NULL AND i.indexprs IS NULL,
       coalesce(k.notnull, false), coalesce(k.names, '{}')
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
CROSS JOIN LATERAL (
  SELECT array_agg(a.attname::text ORDER BY u.ord) AS names, bool_and(a.attnotnull) AS notnull
  FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS u(attnum, ord)
  JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = u.attnum
  WHERE u.ord <= i.indnkeyatts) k
WHERE i.indrelid = ANY($1) AND i.indisunique
ORDER BY i.indrelid, i.indisprimary DESC, c.relname`

// loadRelations reads every relation of the database, without columns and indexes.
func loadRelations(ctx context.Context, conn *pgx.Conn) ([]*relation, error) {
	rows, err := conn.Query(ctx, relationsSQL)
	if err != nil {
		return nil, pgdial.Wrap(err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (*relation, error) {
		var r relation
		var kind, persistence, identity int32
		err := row.Scan(&r.OID, &r.Schema, &r.Name, &r.Quoted, &r.QuotedIn, &kind,
			&persistence, &identity, &r.Partition, &r.RootOID, &r.Select, &r.Usage, &r.RLS, &r.Owned,
			&r.Toast)
		r.Kind, r.Persistence = byte(kind), byte(persistence)
		r.Identity = schema.Identity(identity)
		return &r, err
	})
	if err != nil {
		return nil, pgdial.Wrap(err)
	}
	linkPartitions(all)
	return all, nil
}

func linkPartitions(all []*relation) {
	byOID := make(map[uint32]*relation, len(all))
	for _, r := range all {
		byOID[r.OID] = r
	}
	for _, r := range all {
		if !r.Partition {
			continue
		}
		r.root = byOID[r.RootOID]
		if r.root != nil && r.Kind != 'p' {
			r.root.leaves = append(r.root.leaves, r)
		}
	}
}

// loadDetails reads columns and unique indexes of relations.
func loadDetails(ctx context.Context, conn *pgx.Conn, rels []*relation) error {
	byOID := make(map[uint32]*relation, len(rels))
	oids := make([]uint32, 0, len(rels))
	for _, r := range rels {
		byOID[r.OID] = r
		oids = append(oids, r.OID)
	}
	rows, err := conn.Query(ctx, columnsSQL, oids)
	if err != nil {
		return pgdial.Wrap(err)
	}
	var oid uint32
	var c column
	_, err = pgx.ForEachRow(rows, []any{
		&oid, &c.Name, &c.Quoted, &c.TypeOID, &c.Type, &c.TypeName, &c.NotNull, &c.Toastable,
		&c.Generated, &c.Identity,
	}, func() error {
		byOID[oid].Columns = append(byOID[oid].Columns, c)
		return nil
	})
	if err != nil {
		return pgdial.Wrap(err)
	}
	if rows, err = conn.Query(ctx, indexesSQL, oids); err != nil {
		return pgdial.Wrap(err)
	}
	var x index
	_, err = pgx.ForEachRow(rows, []any{
		&oid, &x.Name, &x.Quoted, &x.Primary, &x.Identity, &x.Unique, &x.Immediate, &x.Valid,
		&x.Whole, &x.NotNull, &x.Columns,
	}, func() error {
		byOID[oid].Indexes = append(byOID[oid].Indexes, x)
		x.Columns = nil // the next row gets a slice of its own
		return nil
	})
	return pgdial.Wrap(err)
}
