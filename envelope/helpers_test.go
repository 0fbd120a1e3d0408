package envelope

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/linkedin/goavro/v2"
	"go.uber.org/goleak"

	"github.com/tidemark-cdc/tidemark/connector/decode"
	"github.com/tidemark-cdc/tidemark/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// OIDs of pg_type.dat.
const (
	oidBool      = 16
	oidInt8      = 20
	oidInt4      = 23
	oidText      = 25
	oidFloat8    = 701
	oidTimestamp = 1114
	oidNumeric   = 1700
)

const (
	keyID   = 7
	valueID = 258
	now     = 1_700_000_001_234_567 // microseconds
)

func options() Options {
	return Options{
		Prefix: "shop", Database: "shopdb", Version: "1.2.3", Headers: true, Tombstones: true,
		Now: func() int64 { return now },
	}
}

func col(name string, oid uint32, key bool) schema.Column {
	return schema.Column{Name: name, TypeOID: oid, TypeMod: -1, Key: key}
}

func relation(identity schema.Identity, cols ...schema.Column) *schema.Relation {
	rel := &schema.Relation{
		OID: 16400, Namespace: "public", Name: "orders", Identity: identity, Columns: cols,
	}
	if identity == schema.IdentityFull {
		for i := range rel.Columns {
			rel.Columns[i].Key = true
		}
	}
	return rel
}

func compile(t testing.TB, e *Encoder, rel *schema.Relation, info schema.TableInfo) *Table {
	t.Helper()
	table, err := e.Compile(rel, info)
	if err != nil {
		t.Fatal(err)
	}
	table.SetIDs(keyID, valueID)
	return table
}

// null and unchanged are markers in a row that tests write as strings.
const (
	null      = "\x00n"
	unchanged = "\x00u"
)

func row(values ...string) schema.Tuple {
	t := make(schema.Tuple, len(values))
	for i, v := range values {
		switch v {
		case null:
			t[i].Kind = schema.DatumNull
		case unchanged:
			t[i].Kind = schema.DatumUnchanged
		default:
			t[i] = schema.Datum{Kind: schema.DatumText, Text: []byte(v)}
		}
	}
	return t
}

var tx = decode.Tx{FinalLSN: 1000, CommitMicros: 1_700_000_000_123_456, XID: 42}

func change(kind decode.Kind, rel *schema.Relation, oldKind byte, old, next schema.Tuple) (
	ev *decode.Event,
) {
	return &decode.Event{
		Kind: kind, Tx: &tx, Index: 3, LSN: 900, Relation: rel, OldKind: oldKind, Old: old, New: next,
	}
}

// encode is Row without a fault; the records' Buffers are released with the test.
func encode(t testing.TB, e *Encoder, table *Table, ev *decode.Event) []Record {
	t.Helper()
	recs, err := e.Row(nil, table, ev)
	if err != nil {
		t.Fatal(err)
	}
	return recs
}

// render writes a record as one line, from what goavro decodes: op, key, image, before,
// before_key, after and column states, "-" for null.
func render(t testing.TB, table *Table, r Record) string {
	t.Helper()
	var columns, keys []string
	for _, c := range table.columns {
		columns = append(columns, c.field)
	}
	for _, k := range table.key {
		keys = append(keys, k.field)
	}
	key := "-"
	if r.Key != nil {
		key = fields(keys, native(t, table.KeySchema, keyID, r.Key))
	}
	line := fmt.Sprintf("%c key=%s", r.Op, key)
	if r.Value == nil {
		return line + " tombstone"
	}
	v := native(t, table.ValueSchema, valueID, r.Value)
	if v["op"] != string(r.Op) {
		t.Errorf("op %v in the envelope, %c in the record", v["op"], r.Op)
	}
	line += fmt.Sprintf(" %v before=%s key=%s after=%s", v["before_image"],
		fields(columns, unwrap(v["before"])), fields(keys, unwrap(v["before_key"])),
		fields(columns, unwrap(v["after"])))
	for _, s := range v["column_states"].([]any) {
		m := s.(map[string]any)
		line += fmt.Sprintf(" %v.%v=%v", m["image"], m["column"], m["state"])
		if text := unwrap(m["text"]); text != nil {
			line += fmt.Sprintf("(%v)", text)
		}
	}
	return line
}

func fields(names []string, v any) string {
	m, ok := v.(map[string]any)
	if !ok {
		return "-"
	}
	var values []string
	for _, name := range names {
		f, ok := m[name]
		switch {
		case !ok:
			values = append(values, "MISSING")
		case f == nil:
			values = append(values, "null")
		default:
			values = append(values, fmt.Sprint(unwrap(f)))
		}
	}
	return "(" + strings.Join(values, ",") + ")"
}

// lines compares what records render as with lines written by hand.
func lines(t testing.TB, table *Table, recs []Record, want ...string) {
	t.Helper()
	var got []string
	for _, r := range recs {
		got = append(got, render(t, table, r))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("records (-want +got):\n%s", d)
	}
}

// native decodes wire format with goavro and checks the id.
func native(t testing.TB, schemaText string, id uint32, data []byte) map[string]any {
	t.Helper()
	if len(data) < 5 || data[0] != 0 || binary.BigEndian.Uint32(data[1:]) != id {
		t.Fatalf("wire format: % x", data)
	}
	codec, err := goavro.NewCodec(schemaText)
	if err != nil {
		t.Fatal(err)
	}
	v, rest, err := codec.NativeFromBinary(data[5:])
	if err != nil {
		t.Fatalf("goavro: %v", err)
	}
	if len(rest) > 0 {
		t.Fatalf("goavro leaves %d bytes", len(rest))
	}
	return v.(map[string]any)
}

// unwrap takes the value out of goavro's form of a union.
func unwrap(v any) any {
	if m, ok := v.(map[string]any); ok && len(m) == 1 {
		for _, inner := range m {
			return inner
		}
	}
	return v
}
