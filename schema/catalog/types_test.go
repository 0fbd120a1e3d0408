package catalog_test

import (
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/big"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/linkedin/goavro/v2"

	"github.com/tidemark-cdc/tidemark/schema"
)

var update = flag.Bool("update", false, "write docs/types.md anew")

const typesPage = "../../docs/types.md"

// textual is a value of a type that is an Avro string: its text.
func textual(typ, sql, text string) value {
	length := len(text) << 1 // zig-zag; the texts are shorter than 64 bytes, or need two
	head := []byte{byte(length)}
	if length > 0x7f {
		head = []byte{byte(length) | 0x80, byte(length >> 7)}
	}
	return value{typ, sql, text, hex.EncodeToString(append(head, text...))}
}

// moreValues are values of the types that values has none of: with both, each type of the catalog
// has a row (TestEveryTypeOfTheCatalogHasARow).
var moreValues = []value{
	{"integer", "-2147483648", "-2147483648", "ffffffff0f"},
	textual("text", `'NULL'`, "NULL"), textual("text", `''`, ""),
	textual("varchar", `'é'`, "é"), textual("bpchar", `'ab  '`, "ab  "),
	textual("varbit", `'10101'`, "10101"),
	textual("interval", `'178000000 years'`, "P178000000Y"),
	textual("oidvector", `'1 2'`, "1 2"), textual("tid", `'(1,2)'`, "(1,2)"),
	textual("cid", `'5'`, "5"), textual("xid8", `'18446744073709551615'`, "18446744073709551615"),
	textual("pg_lsn", `'16/B374D848'`, "16/B374D848"),
	textual("pg_snapshot", `'10:20:10,14'`, "10:20:10,14"),
	textual("txid_snapshot", `'10:20:10,14'`, "10:20:10,14"),
	textual("lseg", `'[(0,0),(1,1)]'`, "[(0,0),(1,1)]"),
	textual("path", `'[(0,0),(1,1)]'`, "[(0,0),(1,1)]"),
	textual("path", `'((0,0),(1,1))'`, "((0,0),(1,1))"),
	textual("box", `'(3,4),(1,2)'`, "(3,4),(1,2)"),
	textual("polygon", `'((0,0),(1,0),(1,1))'`, "((0,0),(1,0),(1,1))"),
	textual("line", `'{1,-1,0}'`, "{1,-1,0}"), textual("circle", `'<(1,2),3>'`, "<(1,2),3>"),
	textual("cidr", `'10.0.0.0/8'`, "10.0.0.0/8"), textual("inet", `'::1'`, "::1"),
	textual("macaddr", `'08:00:2B:01:02:03'`, "08:00:2b:01:02:03"),
	textual("macaddr8", `'08:00:2b:01:02:03:04:05'`, "08:00:2b:01:02:03:04:05"),
	textual("tsvector", `'a:1 b'`, `'a':1 'b'`), textual("tsquery", `'a & b'`, `'a' & 'b'`),
	textual("jsonpath", `'$.a'`, `$."a"`), textual("jsonb", `'1.50'`, "1.50"),
	textual("refcursor", `'c'`, "c"), textual("regproc", `'now'`, "now"),
	textual("regprocedure", `'now()'`, "now()"), textual("regoper", `'||/'`, "||/"),
	textual("regoperator", `'+(int4,int4)'`, "+(integer,integer)"),
	textual("regtype", `'int4'`, "integer"), textual("regrole", `'pg_monitor'`, "pg_monitor"),
	textual("regnamespace", `'pg_catalog'`, "pg_catalog"),
	textual("regcollation", `'"C"'`, `"C"`), textual("regconfig", `'simple'`, "simple"),
	textual("regdictionary", `'simple'`, "simple"),
	textual("aclitem", `makeaclitem('pg_monitor'::regrole, 'pg_monitor'::regrole, 'SELECT', false)`,
		"pg_monitor=r/pg_monitor"),
	textual("int4range", `'empty'`, "empty"), textual("int8range", `'[1,5]'`, "[1,6)"),
	textual("numrange", `'[1.5,2.50)'`, "[1.5,2.50)"),
	textual("tsrange", `'[2020-01-01,infinity]'`, `["2020-01-01 00:00:00",infinity]`),
	textual("daterange", `'[2020-01-01,2020-01-31]'`, "[2020-01-01,2020-02-01)"),
	textual("int8multirange", `'{[1,2],[4,5]}'`, "{[1,3),[4,6)}"),
	textual("nummultirange", `'{[1,1.5]}'`, "{[1,1.5]}"), textual("datemultirange", `'{}'`, "{}"),
	textual("tsmultirange", `'{[2020-01-01,)}'`, `{["2020-01-01 00:00:00",)}`),
	textual("tstzmultirange", `'{[2020-01-01 00:00+00,)}'`, `{["2020-01-01 00:00:00+00",)}`),
}

// noColumns are types of the catalog of which no row is needed, and why.
var noColumns = map[string]string{
	"gtsvector":                    "it takes no value: the server has it for indexes only",
	"pg_node_tree":                 "it takes no value: the server's catalogs have it",
	"pg_ndistinct":                 "it takes no value: the server's statistics have it",
	"pg_dependencies":              "it takes no value: the server's statistics have it",
	"pg_mcv_list":                  "it takes no value: the server's statistics have it",
	"pg_brin_bloom_summary":        "it takes no value: the server's indexes have it",
	"pg_brin_minmax_multi_summary": "it takes no value: the server's indexes have it",
}

func allValues() []value { return slices.Concat(values, moreValues) }

// oneRow makes a table of one row with an expression in each column, and returns what the columns
// are and what the server prints.
func (d *database) oneRow(name string, columns, sql []string) (types []schema.Type, texts []string) {
	d.t.Helper()
	for i := range columns {
		columns[i] = fmt.Sprintf("c%d %s", i, columns[i])
	}
	d.run("SET search_path = public",
		"CREATE TABLE "+name+" ("+strings.Join(columns, ", ")+")",
		"INSERT INTO "+name+" VALUES ("+strings.Join(sql, ", ")+")")
	types = d.resolve(name)
	d.run("RESET search_path")
	return types, d.row("SELECT * FROM public." + name)
}

// Every type that a column can be of has a row among the golden values, or a reason that it has
// none.
func TestEveryTypeOfTheCatalogHasARow(t *testing.T) {
	db := newDatabase(t, "18")
	db.run(prepare...)
	var columns, sql []string
	for _, v := range allValues() {
		columns, sql = append(columns, v.Type), append(sql, v.SQL)
	}
	db.oneRow("v", columns, sql)
	missing := db.row(`SELECT typname FROM pg_type t JOIN pg_namespace n ON n.oid = typnamespace
		WHERE nspname = 'pg_catalog' AND typtype IN ('b', 'r', 'm')
			AND typsubscript <> 'array_subscript_handler'::regproc
			AND NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'public.v'::regclass
				AND atttypid = t.oid) ORDER BY 1`)
	if want := slices.Sorted(maps.Keys(noColumns)); !slices.Equal(missing, want) {
		t.Errorf("types without a row: %v\nwant those with a reason: %v", missing, want)
	}
}

// Around each value: an array of it, a domain, a domain over that, an array of the domain, a
// composite. The Avro body follows from the value's own.
func TestContainersOfEveryType(t *testing.T) {
	db := newDatabase(t, "18", hostile...)
	db.run(prepare...)
	all := slices.DeleteFunc(allValues(), func(v value) bool {
		// The server takes a vector of its own in ARRAY[] for a row of an array.
		return strings.HasSuffix(v.Type, "[]") || strings.HasSuffix(v.Type, "vector") && v.Type != "tsvector"
	})
	var columns, sql, want []string
	for i, v := range all {
		db.run(fmt.Sprintf("CREATE DOMAIN dom%d AS %s", i, v.Type),
			fmt.Sprintf("CREATE DOMAIN deep%d AS dom%d", i, i),
			fmt.Sprintf("CREATE TYPE comp%d AS (a %s)", i, v.Type))
		expr := fmt.Sprintf("(%s)::%s", v.SQL, v.Type)
		deep := fmt.Sprintf("deep%d", i)
		array := ""
		if v.Hex != "" {
			array = "0202" + v.Hex + "00"
		}
		columns = append(columns, v.Type+"[]", deep, deep+"[]", fmt.Sprintf("comp%d", i))
		sql = append(sql, "ARRAY["+expr+"]", expr, "ARRAY["+expr+"::"+deep+"]", "ROW("+expr+")")
		want = append(want, array, v.Hex, array, "composite")
	}
	const width = 150 // columns: a row must fit a page
	for from := 0; from < len(columns); from += width {
		to := min(from+width, len(columns))
		types, texts := db.oneRow(fmt.Sprintf("w%d", from), slices.Clone(columns[from:to]), sql[from:to])
		for i, typ := range types {
			if want[from+i] == "composite" {
				want[from+i] = textual("", "", texts[i]).Hex
			}
			checkBody(t, typ, texts[i], want[from+i])
		}
	}
}

// Ranges of subtypes that users make ranges of, and their multiranges, are text.
func TestRangesOfUsersTypes(t *testing.T) {
	db := newDatabase(t, "18", hostile...)
	db.run(prepare...)
	all := slices.DeleteFunc(allValues(), func(v value) bool { return v.Type == "text" })
	var columns, sql []string
	for i, typ := range []string{
		"text", "time", "timetz", "uuid", "inet", "real", "money", "varbit", "pg_lsn", "bytea", "oid",
		"interval", "boolean", "timestamptz", "citext", "mood", "amt", "numeric", "macaddr",
	} {
		db.run(fmt.Sprintf("CREATE TYPE ran%d AS RANGE (subtype = %s, multirange_type_name = multi%d)",
			i, typ, i))
		literal := "'x'"
		if at := slices.IndexFunc(all, func(v value) bool { return v.Type == typ }); at >= 0 {
			literal = all[at].SQL
		}
		expr := fmt.Sprintf("ran%d((%s)::%s, NULL)", i, literal, typ)
		columns = append(columns, fmt.Sprintf("ran%d", i), fmt.Sprintf("multi%d", i))
		sql = append(sql, expr, fmt.Sprintf("multi%d(%s)", i, expr))
	}
	types, texts := db.oneRow("r", columns, sql)
	for i, typ := range types {
		checkBody(t, typ, texts[i], textual("", "", texts[i]).Hex)
		if avroText(typ) != `"string"` || !strings.HasSuffix(strings.Trim(texts[i], "{}"), ",)") {
			t.Errorf("%s %s is %s", typ.PGName, texts[i], avroText(typ))
		}
	}
}

func avroText(typ schema.Type) string {
	raw, _ := typ.Avro.(json.RawMessage)
	return string(raw)
}

// The page is made of the golden values by a server, the resolver and another Avro library, so that
// it cannot be wrong.
func TestTypesPage(t *testing.T) {
	db := newDatabase(t, "18")
	db.run(prepare...)
	all := allValues()
	slices.SortStableFunc(all, func(a, b value) int { return strings.Compare(a.Type, b.Type) })
	var columns, sql []string
	for _, v := range all {
		columns, sql = append(columns, v.Type), append(sql, v.SQL)
	}
	types, texts := db.oneRow("v", columns, sql)
	var page strings.Builder
	page.WriteString(typesIntro)
	for i, v := range all {
		checkBody(t, types[i], texts[i], v.Hex)
		name, avro := "", ""
		if i == 0 || all[i-1].Type != v.Type {
			name, avro = code(v.Type), code(avroText(types[i]))
		}
		field := "null, UNREPRESENTABLE with the text"
		if v.Hex != "" {
			field = code(shown(decoded(t, types[i], texts[i])))
		}
		fmt.Fprintf(&page, "| %s | %s | %s | %s | %s |\n", name, avro, code(v.SQL), code(texts[i]), field)
	}
	page.WriteString(typesRest)
	for _, name := range slices.Sorted(maps.Keys(noColumns)) {
		fmt.Fprintf(&page, "| %s | %s |\n", code(name), noColumns[name])
	}
	if *update {
		if err := os.WriteFile(typesPage, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(typesPage)
	if err != nil {
		t.Fatal(err)
	}
	got, want := strings.Split(page.String(), "\n"), strings.Split(string(have), "\n")
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("docs/types.md differs from line %d on: go test ./schema/catalog -run TestTypesPage "+
				"-update, and look at the difference", i+1)
		}
	}
}

// code is Markdown's inline code in a cell of a table.
func code(text string) string {
	text = strings.ReplaceAll(text, "|", `\|`)
	switch {
	case text == "":
		return "(empty)"
	case strings.Contains(text, "`"):
		return "`` " + text + " ``"
	}
	return "`" + text + "`"
}

// decoded is what another Avro library reads, numbers that have a logical type as the numbers that
// they are on the wire; decimals as decimals.
func decoded(t *testing.T, typ schema.Type, text string) any {
	t.Helper()
	body, err := typ.Append(nil, []byte(text))
	if err != nil {
		t.Fatalf("%s %q: %v", typ.PGName, text, err)
	}
	avro := avroText(typ)
	for _, logical := range []string{
		"date", "time-micros", "timestamp-micros", "local-timestamp-micros", "uuid",
	} {
		avro = strings.ReplaceAll(avro, `,"logicalType":"`+logical+`"`, "")
	}
	codec, err := goavro.NewCodec(avro)
	if err != nil {
		t.Fatalf("%s: %v", typ.PGName, err)
	}
	native, rest, err := codec.NativeFromBinary(body)
	if err != nil || len(rest) != 0 {
		t.Fatalf("%s %q: %d bytes left, %v", typ.PGName, text, len(rest), err)
	}
	return native
}

// shown is a decoded value for a person.
func shown(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		var out strings.Builder
		plain := json.NewEncoder(&out)
		plain.SetEscapeHTML(false)
		if err := plain.Encode(v); err != nil {
			return err.Error()
		}
		return strings.TrimSuffix(out.String(), "\n")
	case []byte:
		return fmt.Sprintf("0x%x", v)
	case *big.Rat:
		digits, _ := v.FloatPrec()
		return v.FloatString(digits)
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = shown(unwrapped(v[i]))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		var parts []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, shown(key)+": "+shown(unwrapped(v[key])))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return fmt.Sprint(v)
}

// unwrapped takes a value out of goavro's form of a union.
func unwrapped(v any) any {
	if m, ok := v.(map[string]any); ok && len(m) == 1 {
		for _, inner := range m {
			return inner
		}
	}
	return v
}

const typesIntro = `# Types

Generated by ` + "`TestTypesPage`" + ` (schema/catalog) from the golden values: what PostgreSQL 18 prints, the
Avro type, and what another Avro library reads in the field. Do not edit.

A value is the same bytes whether it comes from the stream, from a snapshot or from the old row
(` + "`TestF57K02InfinityInDateAndTimestamps`" + ` and its neighbours hold that), under settings of the
database that print otherwise too (` + "`TestServersPrintWhatIsDecoded`" + `); random values of each kind come
back as the server's text (` + "`TestRandomValuesComeBackAsTheirText`" + `). Numbers with a logical type stand
here as they are on the wire: days, or microseconds, since 1970-01-01; microseconds since midnight.
What the Avro type cannot hold is null, with the state UNREPRESENTABLE and PostgreSQL's text in
` + "`column_states`" + ` (` + "`value.unrepresentable: fail`" + ` stops instead).

| PostgreSQL | Avro | value | its text | in the field |
|---|---|---|---|---|
`

const typesRest = `
` + "`mood`" + ` is an enum, ` + "`addr`" + ` a composite type, ` + "`amt`" + ` a domain over numeric(8,3) and ` + "`amt2`" + ` one over
` + "`amt`" + `, ` + "`ints`" + ` a domain over integer[], ` + "`boxes`" + ` over box. Around each type of the table
(` + "`TestContainersOfEveryType`" + `, ` + "`TestRangesOfUsersTypes`" + `): an array of it is an array of ["null", T]; a
domain is its base type, also over another domain; a composite, a range and a multirange are text. A
type of an extension that is not named here is text too; vector and halfvec (pgvector) are arrays of
float, geometry and geography (PostGIS) are bytes with their EWKB.

Types of the catalog without a row:

| type | why |
|---|---|
`
