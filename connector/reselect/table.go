package reselect

import (
	"context"

	"github.com/tidemark-cdc/tidemark/schema"
)

// table is what the catalog says of a relation: how a statement names it.
type table struct {
	relation *schema.Relation
	gone     bool
	name     string // quoted and qualified
	plain    bool   // not partitioned: rows of tables that inherit from it are not its own
	columns  map[string]column
	rowBytes int64 // about what a row of the last answer took; 0: not known
}

type column struct {
	typ    string // as a cast takes it
	equals string // the operator of its unique index
}

// tableSQL finds a relation by OID. What a unique index compares with is strategy 3 of the btree
// operator family of its column.
const tableSQL = `
SELECT pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname),
	c.relkind = 'r', a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod),
	coalesce(equals.operator, '=')
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_attribute a
	ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN LATERAL (
	SELECT 'OPERATOR(' || pg_catalog.quote_ident(s.nspname) || '.' || o.oprname || ')' AS operator
	FROM pg_catalog.pg_index i
	CROSS JOIN ROWS FROM (pg_catalog.unnest(i.indkey::pg_catalog.int2[]),
		pg_catalog.unnest(i.indclass::pg_catalog.oid[])) AS part(attnum, opclass)
	JOIN pg_catalog.pg_opclass class ON class.oid = part.opclass
	JOIN pg_catalog.pg_am am ON am.oid = class.opcmethod AND am.amname = 'btree'
	JOIN pg_catalog.pg_amop member ON member.amopfamily = class.opcfamily
		AND member.amoplefttype = class.opcintype AND member.amoprighttype = class.opcintype
		AND member.amopstrategy = 3
	JOIN pg_catalog.pg_operator o ON o.oid = member.amopopr
	JOIN pg_catalog.pg_namespace s ON s.oid = o.oprnamespace
	WHERE i.indrelid = c.oid AND i.indisunique AND part.attnum = a.attnum
	ORDER BY i.indisreplident DESC, i.indisprimary DESC LIMIT 1
) equals ON true
WHERE c.oid = $1`

// look asks the catalog for a relation.
func (r *Reader) look(ctx context.Context, rel *schema.Relation) (*table, error) {
	t := &table{relation: rel, gone: true, columns: map[string]column{}}
	res := r.conn.ExecParams(ctx, tableSQL, [][]byte{decimal(uint64(rel.OID))},
		[]uint32{oidOID}, nil, nil)
	for res.NextRow() {
		v := res.Values()
		t.gone, t.name, t.plain = false, string(v[0]), string(v[1]) == "t"
		if v[2] != nil {
			t.columns[string(v[2])] = column{typ: string(v[3]), equals: string(v[4])}
		}
	}
	_, err := res.Close()
	return t, err
}

// lacks says what the catalog no longer has of what a question asks for.
func (t *table) lacks(q Question) Reason {
	if t.gone {
		return TableGone
	}
	for _, list := range [][]int{q.Identity, q.Columns} {
		for _, i := range list {
			if _, ok := t.columns[q.Relation.Columns[i].Name]; !ok {
				return ColumnGone
			}
		}
	}
	return ""
}

// some is how many rows are asked for at once, so that their values take no more than budget.
func (t *table) some(rows int, budget int64) int {
	n := maxRows
	if t.rowBytes > 0 {
		n = int(min(maxRows, max(1, budget/t.rowBytes)))
	}
	return min(n, rows)
}
