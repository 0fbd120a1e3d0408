package envelope

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hamba/avro/v2"

	"github.com/tidemark-cdc/tidemark/connector/decode"
	"github.com/tidemark-cdc/tidemark/offsets"
	"github.com/tidemark-cdc/tidemark/schema"
)

// The golden files are the contract with consumers: a difference breaks somebody. `go test
// ./envelope -update` writes them; read what changed before committing it.
var updateGolden = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *updateGolden {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-want +got):\n%s", path, d)
	}
}

// goldenSchema compares a schema's text, indented: order and content count. hamba/avro takes it
// too, enum defaults included.
func goldenSchema(t *testing.T, name, text string) {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(text), "", "  "); err != nil {
		t.Fatal(err)
	}
	b.WriteByte('\n')
	golden(t, name, b.Bytes())
	if _, err := avro.ParseWithCache(text, "", &avro.SchemaCache{}); err != nil {
		t.Errorf("hamba/avro refuses %s: %v", name, err)
	}
}

// goldenRecord is a record in a golden file.
type goldenRecord struct {
	Op      string
	Route   string
	Key     string `json:",omitempty"`
	HashKey string `json:",omitempty"`
	Headers []string
	Value   string         `json:",omitempty"`
	Decoded map[string]any `json:",omitempty"`
}

func goldenRecords(t *testing.T, name string, table *Table, recs []Record) {
	t.Helper()
	var out []goldenRecord
	for _, r := range recs {
		g := goldenRecord{
			Op: string(r.Op), Route: [...]string{"key", "one", "each"}[r.Route],
			Key: hex.EncodeToString(r.Key), HashKey: hex.EncodeToString(r.HashKey),
			Value: hex.EncodeToString(r.Value),
		}
		for _, h := range r.Headers {
			g.Headers = append(g.Headers, fmt.Sprintf("%s=%q", h.Key, h.Value))
		}
		if r.Value != nil {
			g.Decoded = readable(native(t, table.ValueSchema, valueID, r.Value)).(map[string]any)
			var v any
			reader := avro.NewReader(bytes.NewReader(r.Value[5:]), 512)
			reader.ReadVal(avro.MustParse(table.ValueSchema), &v)
			if reader.Error != nil {
				t.Errorf("hamba/avro cannot read %s: %v", name, reader.Error)
			}
		}
		out = append(out, g)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(out); err != nil {
		t.Fatal(err)
	}
	golden(t, name, b.Bytes())
}

// readable turns what goavro decodes into what JSON can say without loss.
func readable(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, f := range v {
			out[name] = readable(f)
		}
		return out
	case []any:
		out := []any{}
		for _, f := range v {
			out = append(out, readable(f))
		}
		return out
	case []byte:
		return "0x" + hex.EncodeToString(v)
	case *big.Rat:
		return v.FloatString(6)
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	case time.Duration:
		return v.String()
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) || v == 0 {
			return fmt.Sprint(v)
		}
	case float32:
		return fmt.Sprint(v)
	}
	return v
}

// typeSource is the catalog of a database with a domain, an enum, a composite and extensions.
type typeSource map[uint32]schema.TypeInfo

func (s typeSource) Type(oid uint32) (schema.TypeInfo, bool) {
	info, ok := s[oid]
	return info, ok
}

var userTypes = typeSource{
	90000: {
		OID: 90000, Schema: "public", Name: "price", Kind: 'd', Base: 1700, BaseMod: 8<<16 | 3 + 4,
	},
	90001: {OID: 90001, Schema: "public", Name: "mood", Kind: 'e', BaseMod: -1},
	90002: {OID: 90002, Schema: "public", Name: "pair", Kind: 'c', BaseMod: -1},
	90003: {OID: 90003, Schema: "public", Name: "hstore", Kind: 'b', BaseMod: -1},
	90004: {OID: 90004, Schema: "public", Name: "vector", Kind: 'b', BaseMod: -1},
	90005: {OID: 90005, Schema: "public", Name: "halfvec", Kind: 'b', BaseMod: -1},
	90006: {OID: 90006, Schema: "public", Name: "geometry", Kind: 'b', BaseMod: -1},
	90007: {OID: 90007, Schema: "public", Name: "citext", Kind: 'b', BaseMod: -1},
	90008: {OID: 90008, Schema: "public", Name: "ltree", Kind: 'b', BaseMod: -1},
	90009: {OID: 90009, Schema: "public", Name: "_mood", Kind: 'b', Elem: 90001, Delim: ','},
}

// allTypes has a column and a value of each line of the contract's table of types. The OIDs are
// pg_type.dat's.
var allTypes = []struct {
	name   string
	oid    uint32
	typmod int32
	value  string
}{
	{"id", 23, -1, "1"},
	{"bool", 16, -1, "t"},
	{"int2", 21, -1, "-32768"},
	{"int8", 20, -1, "-9223372036854775808"},
	{"oid", 26, -1, "4000000000"},
	{"xid", 28, -1, "4294967295"},
	{"real", 700, -1, "3.3"},
	{"double", 701, -1, "NaN"},
	{"numeric_p_s", 1700, 10<<16 | 2 + 4, "-12.34"},
	{"numeric", 1700, -1, "1.2300"},
	{"money", 790, -1, "-$1,234.11"},
	{"bpchar", 1042, 5 + 4, "ab   "},
	{"varchar", 1043, 20 + 4, "é"},
	{"text", 25, -1, ""},
	{"char", 18, -1, "x"},
	{"name", 19, -1, "n"},
	{"citext", 90007, -1, "Aa"},
	{"xml", 142, -1, "<a/>"},
	{"json", 114, -1, `{"b": 1,"a":2}`},
	{"jsonb", 3802, -1, `{"a": 2}`},
	{"mood", 90001, -1, "sad"},
	{"pair", 90002, -1, `(1,"a b")`},
	{"int4range", 3904, -1, "[1,10)"},
	{"int4multirange", 4451, -1, "{[1,3),[5,6)}"},
	{"tsvector", 3614, -1, "'a':1"},
	{"inet", 869, -1, "10.0.0.1/8"},
	{"cidr", 650, -1, "10.0.0.0/8"},
	{"macaddr", 829, -1, "08:00:2b:01:02:03"},
	{"bit", 1560, 3, "101"},
	{"varbit", 1562, -1, "10"},
	{"ltree", 90008, -1, "a.b"},
	{"point", 600, -1, "(1,2)"},
	{"unknown", 99999, -1, "whatever"},
	{"uuid", 2950, -1, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"},
	{"bytea", 17, -1, `\x00ff`},
	{"date", 1082, -1, "1969-12-31"},
	{"time", 1083, -1, "13:51:30.123456"},
	{"timestamp", 1114, -1, "2016-11-04 13:51:30.123456"},
	{"timestamptz", 1184, -1, "2016-11-04 13:51:30.123456+00"},
	{"timetz", 1266, -1, "13:51:30.123789+02"},
	{"interval", 1186, -1, "P1Y2M3DT4H5M6.78S"},
	{"int4_array", 1007, -1, "{1,NULL,-3}"},
	{"text_array", 1009, -1, `{a,"b c","NULL",NULL}`},
	{"mood_array", 90009, -1, "{sad}"},
	{"hstore", 90003, -1, `"key1"=>"val1"`},
	{"vector", 90004, -1, "[1,2.5]"},
	{"halfvec", 90005, -1, "[1,-0.5]"},
	{"geometry", 90006, -1, "0101000020730C00001C7C613255DE6540787AA52C435C42C0"},
	{"price", 90000, -1, "1.500"},
}

// notHeld has the values of some columns of allTypes that the Avro type cannot hold.
var notHeld = map[string]string{
	"numeric_p_s": "NaN", "time": "24:00:00", "timestamp": "infinity", "date": "-infinity",
	"int4_array": "{{1},{2}}", "text": "\xff",
}

func TestGoldenTypes(t *testing.T) {
	o := options()
	o.Types.MoneyDigits = 2
	e := New(o)
	rel := relation(schema.IdentityFull)
	var values, nulls, special []string
	for _, c := range allTypes {
		rel.Columns = append(rel.Columns, schema.Column{
			Name: c.name, TypeOID: c.oid, TypeMod: c.typmod, Key: true,
		})
		values, nulls = append(values, c.value), append(nulls, null)
		if v, ok := notHeld[c.name]; ok {
			special = append(special, v)
		} else {
			special = append(special, c.value)
		}
	}
	nulls[0] = "1"
	info := schema.TableInfo{PrimaryKey: []string{"id"}, Types: userTypes}
	table := compile(t, e, rel, info)
	goldenSchema(t, "types-key.avsc", table.KeySchema)
	goldenSchema(t, "types-value.avsc", table.ValueSchema)

	recs := encode(t, e, table, change(insert, rel, 0, nil, row(values...)))
	recs = append(recs, encode(t, e, table,
		change(update, rel, 'O', row(special...), row(nulls...)))...)
	goldenRecords(t, "types.json", table, recs)
}

// Every type as a key column: Key fields have name and type only.
func TestGoldenKeyOfEveryType(t *testing.T) {
	e := New(options())
	rel := relation(schema.IdentityDefault)
	var values []string
	for _, c := range allTypes {
		if c.name == "double" {
			c.value = "0.5"
		}
		rel.Columns = append(rel.Columns, schema.Column{
			Name: c.name, TypeOID: c.oid, TypeMod: c.typmod, Key: true,
		})
		values = append(values, c.value)
	}
	table := compile(t, e, rel, schema.TableInfo{Types: userTypes})
	goldenSchema(t, "wide-key.avsc", table.KeySchema)
	recs := encode(t, e, table, change(insert, rel, 0, nil, row(values...)))
	key := readable(native(t, table.KeySchema, keyID, recs[0].Key)).(map[string]any)
	if len(key) != len(allTypes) || strings.Contains(table.KeySchema, "pg_type") {
		t.Errorf("the key has %d fields: %s", len(key), table.KeySchema)
	}
}

func TestGoldenEvents(t *testing.T) {
	e := New(options())
	rel := orders(byDefault)
	table := compile(t, e, rel, withPK)
	recs := encode(t, e, table, change(insert, rel, 0, nil, row("1", "a")))
	recs = append(recs, encode(t, e, table, change(update, rel, 0, nil, row("1", unchanged)))...)
	recs = append(recs, encode(t, e, table,
		change(update, rel, 'K', row("1", null), row("2", "b")))...)
	recs = append(recs, encode(t, e, table, change(remove, rel, 'K', row("2", null), nil))...)
	recs, err := e.Truncate(recs, table, change(decode.KindTruncate, nil, 0, nil, nil))
	if err != nil {
		t.Fatal(err)
	}
	recs, err = e.Read(recs, table, row("3", null), Snapshot{
		Pos: offsets.Position{CommitLSN: 500, Index: -1}, Micros: 1_600_000_000_000_000, LSN: 500,
	})
	if err != nil {
		t.Fatal(err)
	}
	goldenRecords(t, "events.json", table, recs)
}

func TestGoldenWithoutKey(t *testing.T) {
	e := New(options())
	rel := orders(byFull)
	table := compile(t, e, rel, withoutPK)
	goldenSchema(t, "nokey-value.avsc", table.ValueSchema)
	goldenRecords(t, "nokey.json", table,
		encode(t, e, table, change(remove, rel, 'O', row("1", null), nil)))
}

func TestGoldenMessage(t *testing.T) {
	e := New(options())
	table, err := e.CompileMessages()
	if err != nil {
		t.Fatal(err)
	}
	table.SetIDs(0, valueID)
	goldenSchema(t, "message-value.avsc", table.ValueSchema)
	recs, err := e.Message(nil, table, &decode.Event{
		Kind: decode.KindMessage, LSN: 800, MessageLSN: 801, Prefix: []byte("p"), Content: []byte("c"),
	})
	if err != nil {
		t.Fatal(err)
	}
	goldenRecords(t, "message.json", table, recs)
}
