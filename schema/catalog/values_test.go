package catalog_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"strings"
	"testing"

	"github.com/linkedin/goavro/v2"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/connector/reselect"
	"github.com/tidemark-cdc/tidemark/schema"
	"github.com/tidemark-cdc/tidemark/schema/catalog"
)

// value is what a server makes of an SQL expression in a column of a type: the text it prints
// under the pinned settings, and the Avro body of that; none when the type cannot hold it.
type value struct{ Type, SQL, Text, Hex string }

// values has the values that cases K01 to K06 are about, and each family's ends.
var values = []value{
	{"boolean", `true`, "t", "01"},
	{"smallint", `-32768`, "-32768", "ff ff 03"},
	{"bigint", `9223372036854775807`, "9223372036854775807", "fe ff ff ff ff ff ff ff ff 01"},
	{"oid", `4294967295`, "4294967295", "fe ff ff ff 1f"},
	{"xid", `'4294967295'`, "4294967295", "fe ff ff ff 1f"},
	{"real", `'3.4028235e38'`, "3.4028235e+38", "ff ff 7f 7f"},
	{"real", `'-0'`, "-0", "00 00 00 80"},
	{
		"double precision", `0.1::float8 + 0.2::float8`, "0.30000000000000004",
		"34 33 33 33 33 33 d3 3f",
	},
	{"double precision", `'-infinity'`, "-Infinity", "00 00 00 00 00 00 f0 ff"},
	{"double precision", `'nan'`, "NaN", "01 00 00 00 00 00 f8 7f"},
	{"double precision", `'1e23'`, "9.999999999999999e+22", "f6 4a e1 c7 02 2d b5 44"},
	{"double precision", `'5e-324'`, "5e-324", "01 00 00 00 00 00 00 00"},
	{"numeric(10,2)", `-99999999.99`, "-99999999.99", "0a fd ab f4 1c 01"},
	{"numeric(6,2)", `'NaN'`, "NaN", ""},
	{"numeric", `'Infinity'`, "Infinity", "10 49 6e 66 69 6e 69 74 79"},
	{"numeric", `1.50`, "1.50", "08 31 2e 35 30"},
	{
		"money", `'-92233720368547758.08'`, "-$92,233,720,368,547,758.08",
		"10 80 00 00 00 00 00 00 00",
	},
	{"money", `'1234.5'`, "$1,234.50", "06 01 e2 3a"},
	{
		"uuid", `'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'`, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
		"48 61306565626339392d396330622d346566382d626236642d366262396264333830613131",
	},
	{"bytea", `'\xDEADBEEF00'`, `\xdeadbeef00`, "0a de ad be ef 00"},
	{"date", `'4714-11-24 BC'`, "4714-11-24 BC", "97 f6 a9 02"},
	{"date", `'5874897-12-31'`, "5874897-12-31", "b2 87 d6 fd 0f"},
	{"date", `'infinity'`, "infinity", ""},
	{"time", `'04:05:06.7'`, "04:05:06.7", "c0 bb b3 c9 6d"},
	{"time", `'24:00'`, "24:00:00", ""},
	{"timetz", `'24:00:00+05:30'`, "24:00:00+05:30", "1c 32343a30303a30302b30353a3330"},
	{"timestamp", `'1969-12-31 23:59:59.999999'`, "1969-12-31 23:59:59.999999", "01"},
	{
		"timestamp", `'294247-01-10 04:00:54.775807'`, "294247-01-10 04:00:54.775807",
		"fe ff ff ff ff ff ff ff ff 01",
	},
	{"timestamp", `'294276-12-31 23:59:59.999999'`, "294276-12-31 23:59:59.999999", ""},
	{"timestamp", `'-infinity'`, "-infinity", ""},
	{"timestamptz", `'1970-01-01 05:30+05:30'`, "1970-01-01 00:00:00+00", "00"},
	{
		"timestamptz", `'0044-03-15 12:00:00+00 BC'`, "0044-03-15 12:00:00+00 BC",
		"ff bf 8a 98 b9 c5 d4 e1 01",
	},
	{
		"interval", `'-1 year -2 mons +3 days -04:05:06.000007'`, "P-1Y-2M3DT-4H-5M-6.000007S",
		"34 502d31592d324d3344542d34482d354d2d362e30303030303753",
	},
	{"interval", `'1 day -1 sec'`, "P1DT-1S", "0e 50 31 44 54 2d 31 53"},
	{"interval", `'0'`, "PT0S", "08 50 54 30 53"},
	{"char(5)", `'ab'`, "ab   ", "0a 61 62 20 20 20"},
	{"varchar(3)", `'é'`, "é", "04 c3 a9"},
	{`"char"`, `'x'`, "x", "02 78"},
	{"name", `'n'`, "n", "02 6e"},
	{
		"jsonb", `'{"b":1, "a":null}'`, `{"a": null, "b": 1}`,
		"26 7b2261223a206e756c6c2c202262223a20317d",
	},
	{"json", `'{"b":1}'`, `{"b":1}`, "0e 7b 22 62 22 3a 31 7d"},
	{"xml", `'<a/>'`, "<a/>", "08 3c 61 2f 3e"},
	{"bit(3)", `'101'`, "101", "06 31 30 31"},
	{"inet", `'10.0.0.1/8'`, "10.0.0.1/8", "14 31 30 2e 30 2e 30 2e 31 2f 38"},
	{"point", `'(1.5,-2)'`, "(1.5,-2)", "10 28 31 2e 35 2c 2d 32 29"},
	{"int4range", `'(0,5]'`, "[1,6)", "0a 5b 31 2c 36 29"},
	{
		"int4multirange", `'{[1,3),[5,7)}'`, "{[1,3),[5,7)}",
		"1a 7b 5b 31 2c 33 29 2c 5b 35 2c 37 29 7d",
	},
	{
		"tstzrange", `'[2020-01-01,infinity)'`, `["2020-01-01 00:00:00+00",infinity)`,
		"46 5b22323032302d30312d30312030303a30303a30302b3030222c696e66696e69747929",
	},
	{"regclass", `'plain'`, "public.plain", "18 7075626c69632e706c61696e"},
	{"int2vector", `'1 2'`, "1 2", "06 31 20 32"},
	{
		"text[]", `ARRAY['a,b','q"x','NULL',NULL,'','back\slash',' sp ','{}']`,
		`{"a,b","q\"x","NULL",NULL,"","back\\slash"," sp ","{}"}`,
		"10 02 06 612c62 02 06 712278 02 08 4e554c4c 00 02 00 02 14 6261636b5c736c617368" +
			"02 08 20737020 02 04 7b7d 00",
	},
	{"text[]", `'{}'`, "{}", "00"},
	{"text[]", `ARRAY['']`, `{""}`, "02 02 00 00"},
	{"int[]", `'{1,NULL,3}'`, "{1,NULL,3}", "06 02 02 00 02 06 00"},
	{"int[]", `'[1:2]={7,8}'`, "{7,8}", "04 02 0e 02 10 00"},
	{"int[]", `'[0:2]={7,8,9}'`, "[0:2]={7,8,9}", ""},
	{"int[]", `'{{1,2},{NULL,4}}'`, "{{1,2},{NULL,4}}", ""},
	{
		"box[]", `ARRAY['(3,4),(1,2)'::box,'(7,8),(5,6)'::box]`, "{(3,4),(1,2);(7,8),(5,6)}",
		"04 02 16 28332c34292c28312c3229 02 16 28372c38292c28352c3629 00",
	},
	{
		"jsonb[]", `ARRAY['{"k":"v,\"x"}'::jsonb,'null'::jsonb,NULL]`,
		`{"{\"k\": \"v,\\\"x\"}","null",NULL}`,
		"06 02 1c 7b226b223a2022762c5c2278227d 02 08 6e756c6c 00 00",
	},
	{
		"bytea[]", `ARRAY['\x00'::bytea,'\xff22'::bytea]`, `{"\\x00","\\xff22"}`,
		"04 02 02 00 02 04 ff 22 00",
	},
	{"numeric(10,2)[]", `'{1.5,NULL}'`, "{1.50,NULL}", "04 02 04 00 96 00 00"},
	{"timestamp[]", `'{1970-01-01}'`, `{"1970-01-01 00:00:00"}`, "02 02 00 00"},
	{
		"hstore", `'a=>1,b=>NULL,"c d"=>"x\"y"'`, `"a"=>"1", "b"=>NULL, "c d"=>"x\"y"`,
		"06 02 61 02 02 31 02 62 00 06 632064 02 06 782279 00",
	},
	{"hstore", `''`, "", "00"},
	{"hstore[]", `ARRAY['a=>1'::hstore]`, `{"\"a\"=>\"1\""}`, "02 02 02 02 61 02 02 31 00 00"},
	{"citext[]", `'{Ab,NULL}'`, "{Ab,NULL}", "04 02 04 41 62 00 00"},
	{"isbn", `'0-393-04002-X'`, "0-393-04002-X", "1a 30 2d 33 39 33 2d 30 34 30 30 32 2d 58"},
	{"issn", `'1436-4522'`, "1436-4522", "12 31 34 33 36 2d 34 35 32 32"},
	{"ltree", `'Top.Sci'`, "Top.Sci", "0e 54 6f 70 2e 53 63 69"},
	{"mood", `'sad'`, "sad", "06 73 61 64"},
	{"mood[]", `'{sad}'`, "{sad}", "02 02 06 73 61 64 00"},
	{
		"addr", `ROW('1 "Q" st, x',NULL)`, `("1 ""Q"" st, x",)`,
		"24 2822312022225122222073742c2078222c29",
	},
	{"d2", `7`, "7", "0e"},
	{"amt", `1.5`, "1.500", "04 05 dc"},
	{"amt2", `'NaN'`, "NaN", ""},
	{"amt2[]", `'{1.5,NULL}'`, "{1.500,NULL}", "04 02 04 05 dc 00 00"},
	{"ints", `'{1,2}'`, "{1,2}", "04 02 02 02 04 00"},
	{"ints[]", `ARRAY['{1}'::ints]`, `{"{1}"}`, "02 02 02 02 02 00 00"},
	{"boxes", `'(3,4),(1,2)'`, "(3,4),(1,2)", "16 28332c34292c28312c3229"},
	{
		"boxes[]", `ARRAY['(3,4),(1,2)'::boxes,NULL]`, `{(3,4),(1,2);NULL}`,
		"04 02 16 28332c34292c28312c3229 00 00",
	},
}

// prepare makes the types that values are of.
var prepare = []string{
	"SET search_path = public",
	"CREATE EXTENSION hstore", "CREATE EXTENSION ltree", "CREATE EXTENSION citext",
	"CREATE EXTENSION isn",
	"CREATE TABLE plain ()",
	"CREATE TYPE mood AS ENUM ('sad', 'ok')", "CREATE TYPE addr AS (street text, zip int)",
	"CREATE DOMAIN d1 AS int CHECK (VALUE > 0)", "CREATE DOMAIN d2 AS d1",
	"CREATE DOMAIN amt AS numeric(8,3)", "CREATE DOMAIN amt2 AS amt",
	"CREATE DOMAIN ints AS int[]", "CREATE DOMAIN boxes AS box",
}

// hostile are settings of a database that change what it prints (case K04).
var hostile = []string{
	"SET datestyle = 'German, DMY'", "SET intervalstyle = 'postgres_verbose'",
	"SET bytea_output = 'escape'", "SET extra_float_digits = -5",
	"SET timezone = 'America/New_York'", "SET lc_monetary = 'C.utf8'",
	"SET quote_all_identifiers = on", "SET search_path = public",
}

func TestServersPrintWhatIsDecoded(t *testing.T) {
	for _, version := range []string{"14", "18"} {
		t.Run(version, func(t *testing.T) {
			db := newDatabase(t, version, hostile...)
			db.run(prepare...)
			values := allValues()
			columns, inserted := make([]string, len(values)), make([]string, len(values))
			for i, v := range values {
				columns[i], inserted[i] = fmt.Sprintf("c%d %s", i, v.Type), v.SQL
			}
			db.run("CREATE TABLE v ("+strings.Join(columns, ", ")+")",
				"INSERT INTO v VALUES ("+strings.Join(inserted, ", ")+")")
			types := db.resolve("v")
			formats := db.row(`SELECT format_type(atttypid, atttypmod) FROM pg_attribute
				WHERE attrelid = 'v'::regclass AND attnum > 0 ORDER BY attnum`)
			db.run("RESET search_path")
			texts := db.row("SELECT * FROM public.v")
			db.readAgain(texts)
			for i, v := range values {
				if texts[i] != v.Text {
					t.Errorf("%s of %s: the server prints %q, want %q", v.Type, v.SQL, texts[i], v.Text)
				}
				checkBody(t, types[i], texts[i], v.Hex)
				if types[i].PGName != formats[i] {
					t.Errorf("%s: its name is %q, the server's is %q", v.Type, types[i].PGName, formats[i])
				}
			}
		})
	}
}

// unkeyed are types of values that no row can be named by: they have no operator for equality, or
// one that means something else.
var unkeyed = map[string]bool{
	"json": true, "xml": true, "point": true, "box": true, "boxes": true, "xid": true,
	"int2vector": true,
}

// readAgain reads the row of v again: by a key of its own all columns, which must have these texts,
// and by each column of values that can be a key.
func (d *database) readAgain(texts []string) {
	d.t.Helper()
	d.run("ALTER TABLE public.v ADD id int PRIMARY KEY DEFAULT 1")
	var indexed []int
	for i, v := range values {
		if typ := strings.TrimSuffix(v.Type, "[]"); !unkeyed[typ] {
			indexed = append(indexed, i)
			d.run(fmt.Sprintf("CREATE UNIQUE INDEX ON public.v (c%d)", i))
		}
	}
	published, err := catalog.New(d.Conn).RelationOf(d.ctx, d.oid("public.v"), "")
	if err != nil {
		d.t.Fatal(err)
	}
	c := d.Config()
	r, err := reselect.Open(d.ctx, reselect.Options{
		Database: config.Database{
			Host: c.Host, Port: c.Port, User: c.User, Password: config.NewSecret(c.Password),
			Name: c.Database, SSLMode: "disable",
		},
		AppName: "test", Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		d.t.Fatal(err)
	}
	defer r.Close()
	ask := func(identity int, text string, columns []int) schema.Tuple {
		d.t.Helper()
		answers, err := r.Ask(d.ctx, reselect.Question{
			Relation: published.Relation, Identity: []int{identity}, Columns: columns,
		}, [][][]byte{{[]byte(text)}}, nil, 1<<20)
		if err != nil {
			d.t.Fatal(err)
		}
		if answers[0].Reason != "" {
			d.t.Errorf("by %s %q: %s", published.Relation.Columns[identity].Name, text, answers[0].Reason)
		}
		return answers[0].Values
	}
	var all []int
	for i := range texts {
		all = append(all, i)
	}
	got := ask(len(texts), "1", all)
	if len(got) != len(texts) {
		d.t.Fatalf("%d values, want %d", len(got), len(texts))
	}
	for i, got := range got {
		if string(got.Text) != texts[i] {
			d.t.Errorf("%s: read again as %q, want %q", allValues()[i].Type, got.Text, texts[i])
		}
	}
	for _, i := range indexed {
		if got := ask(i, texts[i], []int{len(texts)}); len(got) != 1 || string(got[0].Text) != "1" {
			d.t.Errorf("%s %q names no row", values[i].Type, texts[i])
		}
	}
}

func checkBody(t *testing.T, typ schema.Type, text, want string) {
	t.Helper()
	got, err := typ.Append(nil, []byte(text))
	switch {
	case want == "" && !errors.Is(err, schema.ErrUnrepresentable):
		t.Errorf("%s %q: got % x, %v; want unrepresentable", typ.PGName, text, got, err)
	case want != "" && (err != nil || hex.EncodeToString(got) != strings.ReplaceAll(want, " ", "")):
		t.Errorf("%s %q: got %x, %v; want %s", typ.PGName, text, got, err, want)
	}
}

// resolve gives the types of a table's columns, all the way from the catalog.
func (d *database) resolve(table string) []schema.Type {
	d.t.Helper()
	c := catalog.New(d.Conn)
	published, err := c.RelationOf(d.ctx, d.oid(table), "")
	if err != nil {
		d.t.Fatal(err)
	}
	info, err := c.Table(d.ctx, published.Relation)
	if err != nil {
		d.t.Fatal(err)
	}
	var types []schema.Type
	for _, col := range published.Relation.Columns {
		types = append(types, schema.Resolve(col, info.Types, schema.Options{MoneyDigits: 2}))
	}
	return types
}

// The server itself is the oracle for many random values: it computes from the value, by other
// code, what the decoded text has to be.
func TestServersAgreeOnRandomValues(t *testing.T) {
	const rows = " FROM generate_series(1, 3000)"
	db := newDatabase(t, "18")
	db.run(seeded())
	for _, c := range []struct {
		column schema.Column
		sql    string // the value, and the Avro number it is to be
	}{
		{schema.Column{TypeOID: 1114, TypeMod: -1}, `SELECT v, (extract(epoch FROM v) * 1000000)::int8
			FROM (SELECT timestamp '4714-11-24 BC' + random() * interval '298000 years'
				+ random() * interval '1 second' AS v` + rows + `)`},
		{schema.Column{TypeOID: 1184, TypeMod: -1}, `SELECT v, (extract(epoch FROM v) * 1000000)::int8
			FROM (SELECT timestamptz '1850-01-01' + random() * interval '300 years' AS v` + rows + `)`},
		{schema.Column{TypeOID: 1082, TypeMod: -1}, `SELECT v, v - date '1970-01-01'
			FROM (SELECT date '4714-11-24 BC' + (random() * 2147483000)::int AS v` + rows + `)`},
		{schema.Column{TypeOID: 1083, TypeMod: -1}, `SELECT v, (extract(epoch FROM v) * 1000000)::int8
			FROM (SELECT time '00:00' + random() * interval '86399 seconds' AS v` + rows + `)`},
		{schema.Column{TypeOID: 1700, TypeMod: 30<<16 | 7 + 4}, `SELECT v, (v * 10000000)::numeric(40,0)
			FROM (SELECT ((random() - 0.5) * 10 ^ (random() * 22)::int)::numeric(30,7) AS v` + rows + `)`},
		{schema.Column{TypeOID: 790, TypeMod: -1}, `SELECT v, (v::numeric * 100)::numeric(40,0)
			FROM (SELECT ((random() - 0.5) * 10 ^ (random() * 16)::int)::numeric::money AS v` + rows + `)`},
	} {
		typ := schema.Resolve(c.column, nil, schema.Options{MoneyDigits: 2})
		results, err := db.PgConn().Exec(db.ctx, c.sql).ReadAll()
		if err != nil {
			t.Fatalf("%s: %v", typ.PGName, err)
		}
		for _, row := range results[0].Rows {
			body, err := typ.Append(nil, row[0])
			if got := number(t, typ, body); err != nil || got != string(row[1]) {
				t.Errorf("%s %s: got %s, %v; want %s", typ.PGName, row[0], got, err, row[1])
			}
		}
		if len(results[0].Rows) != 3000 {
			t.Errorf("%s: %d rows", typ.PGName, len(results[0].Rows))
		}
	}
}

// number reads an Avro long, int, or decimal as a whole number.
func number(t *testing.T, typ schema.Type, body []byte) string {
	t.Helper()
	avro := `"long"`
	if typ.PGName == "money" || strings.HasPrefix(typ.PGName, "numeric") {
		avro = `{"type":"bytes","logicalType":"decimal","precision":40,"scale":0}`
	}
	codec, err := goavro.NewCodec(avro)
	if err != nil {
		t.Fatal(err)
	}
	native, _, err := codec.NativeFromBinary(body)
	if err != nil {
		return err.Error()
	}
	if r, ok := native.(*big.Rat); ok {
		return r.Num().String()
	}
	return big.NewInt(native.(int64)).String()
}

// internalTypes are built-in types that no column of a user's table has.
const internalTypes = `pg_node_tree pg_ndistinct pg_dependencies pg_mcv_list
	pg_brin_bloom_summary pg_brin_minmax_multi_summary pg_ddl_command`

func TestBuiltinTypesAreTheServers(t *testing.T) {
	onVersions(t, func(t *testing.T, _ string, db *database) {
		results, err := db.PgConn().Exec(db.ctx, `SELECT oid, format_type(oid, -1) FROM pg_type
			WHERE oid < 10000 AND typtype IN ('b', 'r', 'm') AND typname !~ '^_?pg_(type|class)'
				AND typcategory <> 'P' AND NOT (typelem <> 0 AND typelem IN (SELECT oid FROM pg_type
					WHERE typtype IN ('c', 'p')))`).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range results[0].Rows {
			oid, ok := new(big.Int).SetString(string(row[0]), 10)
			if !ok {
				t.Fatalf("%s is no OID", row[0])
			}
			typ := schema.Resolve(schema.Column{TypeOID: uint32(oid.Uint64()), TypeMod: -1}, nil,
				schema.Options{})
			if strings.Contains(internalTypes, string(row[1])) {
				continue
			}
			if typ.PGName != string(row[1]) {
				t.Errorf("type %s is %q, the server's is %q", row[0], typ.PGName, row[1])
			}
		}
	})
}
