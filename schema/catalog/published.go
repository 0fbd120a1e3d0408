package catalog

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/schema"
)

// Published is a table as a publication has it.
type Published struct {
	// Relation is what the stream would announce at the table's next change: the columns of the
	// publication's list, or all; without those that are generated, unless the list names them or
	// the publication has publish_generated_columns = stored (18 on); with the identity's marked.
	Relation *schema.Relation
	// RowFilter is the publication's WHERE for the table as SQL, in parentheses; empty for none.
	RowFilter string
}

// Which relations a publication has, and with which columns (null: all) and filter. The server's
// own function knows of FOR ALL TABLES, schemas, and publish_via_partition_root: it gives the root
// with it and the leaves without.
const (
	membersSQL14 = `
	SELECT m.relid, NULL::pg_catalog.int2vector AS attrs, NULL::text AS filter
	FROM pg_catalog.pg_publication p,
		LATERAL pg_catalog.pg_get_publication_tables(p.pubname::text) m(relid)
	WHERE p.pubname = $1::text`
	membersSQL = `
	SELECT m.relid, m.attrs, pg_catalog.pg_get_expr(m.qual, m.relid) AS filter
	FROM pg_catalog.pg_publication p,
		LATERAL pg_catalog.pg_get_publication_tables(p.pubname::text) m
	WHERE p.pubname = $1::text`
	// every table, for what a publication that is yet to be made would announce
	membersSQLNone = `
	SELECT c.oid AS relid, NULL::pg_catalog.int2vector AS attrs, NULL::text AS filter
	FROM pg_catalog.pg_class c
	WHERE c.relkind IN ('r', 'p') AND $1::text = ''`
)

// publishedSQL answers with a row for each relation. $2 is a relation's OID, or 0 for all.
//
// From 18 on the list has the generated columns that are published in it, and only those; before,
// no generated column is, though 15's function may list it.
func publishedSQL(members, generated string) string {
	return `
WITH members AS (` + members + `
)
SELECT c.oid::pg_catalog.int8, n.nspname::text, c.relname::text, c.relreplident::text,
	coalesce(m.filter, ''),
	coalesce(array_agg(a.attname::text ORDER BY a.attnum) FILTER (WHERE a.attnum > 0), '{}'),
	coalesce(array_agg(a.atttypid::pg_catalog.int8 ORDER BY a.attnum)
		FILTER (WHERE a.attnum > 0), '{}'),
	coalesce(array_agg(a.atttypmod ORDER BY a.attnum) FILTER (WHERE a.attnum > 0), '{}'),
	coalesce(array_agg(c.relreplident = 'f' OR EXISTS (
			SELECT FROM pg_catalog.pg_index i
			WHERE i.indrelid = c.oid
				AND a.attnum = ANY ((i.indkey::pg_catalog.int2[])[0:i.indnkeyatts - 1])
				AND ` + identityIndex + `
		) ORDER BY a.attnum) FILTER (WHERE a.attnum > 0), '{}')
FROM members m
JOIN pg_catalog.pg_class c ON c.oid = m.relid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
	AND a.attnum > 0 AND NOT a.attisdropped
	AND (m.attrs IS NULL OR a.attnum = ANY (m.attrs))
	AND ` + generated + `
WHERE $2::pg_catalog.int8 IN (0, c.oid::pg_catalog.int8)
GROUP BY c.oid, n.nspname, c.relname, c.relreplident, m.filter
ORDER BY n.nspname, c.relname`
}

// Published returns every table of a publication, by schema and name; none when there is no such
// publication. The name is taken as it is, without folding.
func (c *Catalog) Published(ctx context.Context, publication string) ([]Published, error) {
	return c.published(ctx, publication, 0)
}

// RelationOf returns one table of a publication; ErrNoRelation when the publication does not have
// it, as a root in one that publishes leaves, or a leaf in one that publishes roots. For an empty
// publication it is what one without lists and filters would have.
func (c *Catalog) RelationOf(
	ctx context.Context, oid uint32, publication string,
) (Published, error) {
	found, err := c.published(ctx, publication, oid)
	if err != nil {
		return Published{}, err
	}
	if len(found) == 0 {
		return Published{}, fmt.Errorf("look up relation %d in publication %q: %w",
			oid, publication, ErrNoRelation)
	}
	return found[0], nil
}

func (c *Catalog) published(
	ctx context.Context, publication string, oid uint32,
) ([]Published, error) {
	members, generated := membersSQL, `a.attgenerated = ''`
	switch major := c.major(); {
	case publication == "":
		members = membersSQLNone
	case major < 15:
		members = membersSQL14
	case major >= 18:
		generated = `(a.attgenerated = '' OR m.attrs IS NOT NULL AND a.attgenerated = 's')`
	}
	var tables []Published
	err := c.query(ctx, "list the tables of publication "+publication,
		publishedSQL(members, generated), func(rows pgx.Rows) error {
			p, err := scanPublished(rows)
			tables = append(tables, p)
			return err
		}, publication, int64(oid))
	return tables, err
}

func scanPublished(rows pgx.Rows) (Published, error) {
	rel := &schema.Relation{}
	p := Published{Relation: rel}
	var oid int64
	var identity string
	var names []string
	var types []int64
	var typmods []int32
	var keys []bool
	err := rows.Scan(&oid, &rel.Namespace, &rel.Name, &identity, &p.RowFilter,
		&names, &types, &typmods, &keys)
	if err != nil {
		return p, err
	}
	rel.OID, rel.Identity = uint32(oid), schema.Identity(identity[0])
	rel.Columns = make([]schema.Column, len(names))
	for i, name := range names {
		rel.Columns[i] = schema.Column{
			Name: name, TypeOID: uint32(types[i]), TypeMod: typmods[i], Key: keys[i],
		}
	}
	return p, nil
}
