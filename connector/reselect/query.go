package reselect

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/schema"
)

// Question is what to read of a table. All columns are indices of the relation's.
type Question struct {
	Relation *schema.Relation
	Identity []int // the columns that name a row
	Columns  []int // the columns to read
}

// OIDs of the parameters' types.
const (
	oidText      = 25
	oidOID       = 26
	oidInt4Array = 1007
	oidTextArray = 1009
	oidOIDArray  = 1028
)

// Columns of an answer in front of the values.
const (
	colNumber   = iota // of the row, from 1
	colSnapshot        // of the statement; with number 1 only
	colSame            // the name still is that of the OID
	colFits            // how many columns have the types that the stream announced
	colFound           // null: no such row
	colValues
)

// statement is one question with its rows, as the server takes it.
type statement struct {
	sql    string
	values [][]byte
	types  []uint32
}

// build makes the statement. Each row is looked up by a subquery of its own (OFFSET keeps it one),
// so that a table is never read as a whole because the planner thinks it small.
func build(q Question, t *table, rows [][][]byte) statement {
	var s statement
	param := func(oid uint32, value []byte) string {
		s.values, s.types = append(s.values, value), append(s.types, oid)
		return "$" + strconv.Itoa(len(s.values))
	}
	name, oid := param(oidText, []byte(t.name)), param(oidOID, decimal(uint64(q.Relation.OID)))
	names, types, mods := columnArrays(q)
	var b strings.Builder
	fmt.Fprintf(&b, `SELECT k.n, CASE WHEN k.n = 1 THEN pg_catalog.pg_current_snapshot()::text END,
	pg_catalog.to_regclass(%s)::pg_catalog.oid = %s,
	(SELECT pg_catalog.count(*) FROM pg_catalog.pg_attribute a
		JOIN ROWS FROM (pg_catalog.unnest(%s), pg_catalog.unnest(%s), pg_catalog.unnest(%s))
			AS w(name, type, mod)
		ON a.attname = w.name AND a.atttypid = w.type AND a.atttypmod = w.mod
		WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped), r.found`,
		name, oid, param(oidTextArray, names), param(oidOIDArray, types), param(oidInt4Array, mods), oid)
	for i := range q.Columns {
		fmt.Fprintf(&b, ", r.v%d", i)
	}
	b.WriteString("\nFROM ROWS FROM (")
	for i := range q.Identity {
		fmt.Fprintf(&b, "%spg_catalog.unnest(%s)", comma(i), param(oidTextArray, identities(rows, i)))
	}
	b.WriteString(") WITH ORDINALITY AS k(")
	for i := range q.Identity {
		fmt.Fprintf(&b, "k%d, ", i)
	}
	b.WriteString("n)\nLEFT JOIN LATERAL (SELECT true AS found")
	for i, c := range q.Columns {
		fmt.Fprintf(&b, ", t.%s AS v%d", quote(q.Relation.Columns[c].Name), i)
	}
	only := ""
	if t.plain {
		only = "ONLY "
	}
	fmt.Fprintf(&b, "\n\tFROM %s%s AS t WHERE ", only, t.name)
	for i, c := range q.Identity {
		column := q.Relation.Columns[c].Name
		known := t.columns[column]
		if i > 0 {
			b.WriteString(" AND ")
		}
		fmt.Fprintf(&b, "t.%s %s k.k%d::%s", quote(column), known.equals, i, known.typ)
	}
	b.WriteString(" OFFSET 0) AS r ON true")
	s.sql = b.String()
	return s
}

// columnArrays are the names, types and type modifiers of the question's columns.
func columnArrays(q Question) (names, types, mods []byte) {
	for _, list := range [][]int{q.Identity, q.Columns} {
		for _, i := range list {
			c := q.Relation.Columns[i]
			names = appendElement(names, []byte(c.Name))
			types = appendElement(types, decimal(uint64(c.TypeOID)))
			mods = appendElement(mods, strconv.AppendInt(nil, int64(c.TypeMod), 10))
		}
	}
	return closeArray(names), closeArray(types), closeArray(mods)
}

// identities is the array of all rows' texts of identity column i.
func identities(rows [][][]byte, i int) (array []byte) {
	for _, r := range rows {
		array = appendElement(array, r[i])
	}
	return closeArray(array)
}

// appendElement writes an element of an array's text form, always quoted, the opening brace in
// front of the first.
func appendElement(dst, element []byte) []byte {
	if len(dst) == 0 {
		dst = append(dst, '{')
	} else {
		dst = append(dst, ',')
	}
	dst = append(dst, '"')
	for _, c := range element {
		if c == '"' || c == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, c)
	}
	return append(dst, '"')
}

func closeArray(dst []byte) []byte {
	if len(dst) == 0 {
		dst = append(dst, '{')
	}
	return append(dst, '}')
}

func decimal(n uint64) []byte { return strconv.AppendUint(nil, n, 10) }

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

func comma(i int) string {
	if i == 0 {
		return ""
	}
	return ", "
}
