package catalog

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/schema"
)

// tableSQL answers with a row for each type that the relation's columns need, directly or as
// element, as base of a domain, and so on; what it says of the relation is in each, and in a row
// of its own when no type is known. $1 is the relation's OID, $2 those of its columns' types.
//
// Foreign tables among a root's leaves are left out: their changes are not in the log. leaves_full
// is only false for a root.
//
// int2vector and oidvector have the array's subscript handler but are not arrays; what tells them
// apart is that they are never stored out of line (format_type.c does the same).
var tableSQL = `
WITH RECURSIVE needed(oid) AS (
	SELECT pg_catalog.unnest($2::pg_catalog.int8[])::pg_catalog.oid
	UNION
	SELECT next.oid
	FROM needed
	JOIN pg_catalog.pg_type t ON t.oid = needed.oid
	CROSS JOIN LATERAL (VALUES (t.typelem), (t.typbasetype)) AS next(oid)
	WHERE next.oid <> 0
), types AS (
	SELECT t.oid, n.nspname, t.typname, t.typtype, t.typcategory,
		CASE WHEN t.typsubscript = 'pg_catalog.array_subscript_handler'::pg_catalog.regproc
				AND t.typstorage <> 'p'
			THEN t.typelem ELSE 0 END AS elem,
		coalesce(e.typdelim, ',') AS delim,
		t.typbasetype, t.typtypmod
	FROM needed
	JOIN pg_catalog.pg_type t ON t.oid = needed.oid
	JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
	LEFT JOIN pg_catalog.pg_type e ON e.oid = t.typelem
), relation AS MATERIALIZED (
	SELECT c.relkind = 'p' AS root,
		` + indexColumns(`i.indisprimary AND i.indisvalid AND i.indimmediate`) + ` AS primary_key,
		c.relkind <> 'p' OR (
			SELECT coalesce(bool_and(leaf.relreplident = 'f'), true)
			FROM pg_catalog.pg_partition_tree(c.oid) p
			JOIN pg_catalog.pg_class leaf ON leaf.oid = p.relid
			WHERE p.isleaf AND leaf.relkind = 'r'
		) AS leaves_full
	FROM pg_catalog.pg_class c
	WHERE c.oid = $1::pg_catalog.int8::pg_catalog.oid
)
SELECT root IS NULL, coalesce(root, false), coalesce(primary_key, '{}'),
	coalesce(leaves_full, false),
	coalesce(t.oid::pg_catalog.int8, 0), coalesce(nspname::text, ''), coalesce(typname::text, ''),
	coalesce(typtype::text, ''), coalesce(typcategory::text, ''), coalesce(elem::pg_catalog.int8, 0),
	coalesce(delim::text, ''), coalesce(typbasetype::pg_catalog.int8, 0), coalesce(typtypmod, -1)
FROM (VALUES (1)) AS always
LEFT JOIN relation ON true
LEFT JOIN types t ON true`

// Table returns what the catalog says today of a relation that the stream announced, found by its
// OID since its name may be of another time, and of its columns' types. A relation that is gone is
// Missing, not an error; types are looked up all the same. Of a primary key whose columns have
// been renamed since, today's names are given.
func (c *Catalog) Table(ctx context.Context, rel *schema.Relation) (schema.TableInfo, error) {
	oids := make([]int64, len(rel.Columns))
	for i, col := range rel.Columns {
		oids[i] = int64(col.TypeOID)
	}
	var info schema.TableInfo
	err := c.query(ctx, "look up "+rel.Namespace+"."+rel.Name+" in the catalog", tableSQL,
		func(rows pgx.Rows) error {
			t, err := scanTable(rows, &info)
			if err == nil && t.OID != 0 {
				c.types[t.OID] = t
			}
			return err
		}, int64(rel.OID), oids)
	if err != nil {
		return schema.TableInfo{}, err
	}
	info.Types = c.typesOf(rel)
	return info, nil
}

func scanTable(rows pgx.Rows, info *schema.TableInfo) (schema.TypeInfo, error) {
	var t schema.TypeInfo
	var kind, category, delim string
	var oid, elem, base int64
	err := rows.Scan(&info.Missing, &info.IsRoot, &info.PrimaryKey, &info.LeavesFull,
		&oid, &t.Schema, &t.Name, &kind, &category, &elem, &delim, &base, &t.BaseMod)
	if err != nil || oid == 0 {
		return t, err
	}
	t.OID, t.Elem, t.Base = uint32(oid), uint32(elem), uint32(base)
	t.Kind, t.Category, t.Delim = kind[0], category[0], delim[0]
	return t, nil
}

// typesOf is the part of the cache that a relation needs, as a map that later lookups leave alone.
func (c *Catalog) typesOf(rel *schema.Relation) typeMap {
	part := typeMap{}
	var add func(oid uint32)
	add = func(oid uint32) {
		info, ok := c.types[oid]
		if _, done := part[oid]; !ok || done {
			return
		}
		part[oid] = info
		add(info.Elem)
		add(info.Base)
	}
	for _, col := range rel.Columns {
		add(col.TypeOID)
	}
	return part
}
