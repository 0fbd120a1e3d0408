package consume

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/connector/decode"
	"github.com/tidemark-cdc/tidemark/schema"
)

func lineOf(t *testing.T, m *Message) string {
	t.Helper()
	var b strings.Builder
	if err := WriteJSON(&b, m); err != nil {
		t.Fatal(err)
	}
	if !json.Valid([]byte(b.String())) || strings.Count(b.String(), "\n") != 1 {
		t.Fatalf("%q is no line of JSON", b.String())
	}
	return b.String()
}

func TestJSONOfAKeyChange(t *testing.T) {
	t.Parallel()
	s := newShop(t, orders(schema.IdentityDefault), primaryKey)
	var b strings.Builder
	for _, m := range s.messages(s.change(decode.KindUpdate, 'K', tuple("7", null, null, null, null),
		tuple("9007199254740993", "<paid>", "12.50", null, "infinity"))...) {
		b.WriteString(lineOf(t, m))
	}
	golden(t, "keychange.jsonl", b.String())
}

// One column of every family that the contract lists, and what a reader of JSON sees of it.
func TestJSONOfEveryType(t *testing.T) {
	t.Parallel()
	cases := []struct {
		oid  uint32
		mod  int32
		text string
		want string
	}{
		{oidBool, -1, "t", `true`},
		{oidInt4, -1, "-2147483648", `-2147483648`},
		{oidInt8, -1, "9223372036854775807", `9223372036854775807`},
		{oidFloat4, -1, "0.1", `0.1`},
		{oidFloat8, -1, "1e+300", `1e+300`},
		{oidFloat8, -1, "NaN", `"NaN"`},
		{oidFloat8, -1, "-Infinity", `"-Infinity"`},
		{oidFloat4, -1, "Infinity", `"Infinity"`},
		{oidNumeric, 5<<16 | 3 + 4, "-0.050", `"-0.050"`},
		{oidNumeric, -1, "1.2300", `"1.2300"`},
		{oidText, -1, "a<b>&\u2028", `"a<b>&\u2028"`},
		{oidBytea, -1, `\x00ff`, `"\\x00ff"`},
		{oidDate, -1, "2026-11-30", `"2026-11-30"`},
		{oidDate, -1, "0044-03-15 BC", `"-0043-03-15"`},
		{oidTime, -1, "23:59:59.999999", `"23:59:59.999999"`},
		{oidTime, -1, "00:00:00", `"00:00:00"`},
		{oidTimestamp, -1, "1969-12-31 23:59:59.5", `"1969-12-31T23:59:59.5"`},
		{oidTimestamptz, -1, "2026-11-30 01:00:00+02", `"2026-11-29T23:00:00Z"`},
		{oidUUID, -1, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", `"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"`},
		{oidTextArray, -1, `{a,NULL,"b c"}`, `["a",null,"b c"]`},
		{oidText, -1, null, `null`},
	}
	rel := &schema.Relation{
		OID: 1, Namespace: "public", Name: "t", Identity: schema.IdentityDefault,
		Columns: []schema.Column{column("id", oidInt4, -1, true)},
	}
	values := []string{"1"}
	var want strings.Builder
	want.WriteString(`"after":{"id":1`)
	for i, c := range cases {
		name := "c" + string(rune('a'+i))
		rel.Columns = append(rel.Columns, column(name, c.oid, c.mod, false))
		values = append(values, c.text)
		want.WriteString(`,"` + name + `":` + c.want)
	}
	want.WriteString(`},"before_image"`)
	s := newShop(t, rel, schema.TableInfo{PrimaryKey: []string{"id"}})
	line := lineOf(t, s.messages(s.change(decode.KindInsert, 0, nil, tuple(values...))...)[0])
	if !strings.Contains(line, want.String()) {
		t.Errorf("want\n%s\nin\n%s", want.String(), line)
	}
}

func TestJSONOfBytesThatSayNothing(t *testing.T) {
	t.Parallel()
	s := newShop(t, orders(schema.IdentityDefault), primaryKey)
	r := s.change(decode.KindInsert, 0, nil, tuple("7", "new", "12.50", null, null))[0]
	r.Headers = nil
	short := r
	short.Value = r.Value[:9]
	unknown := r
	unknown.Value = append([]byte{0, 0, 0, 0, 99}, r.Value[5:]...)
	plain := r
	plain.Key, plain.Value = []byte("no wire format"), []byte(`{"a": [1, 2]}`)
	long := r
	long.Value = append(append([]byte{}, r.Value...), 0)
	messages := s.messages(short, unknown, plain, long)
	for i, want := range []string{
		`"value_error":"the bytes do not fit schema 2"`,
		`"value_error":"the schema registry has no schema with this id"`,
		`"value":{"a":[1,2]}`,
		`"value_error":"1 bytes more than schema 2 takes"`,
	} {
		if line := lineOf(t, messages[i]); !strings.Contains(line, want) {
			t.Errorf("want %s in %s", want, line)
		}
	}
	if line := lineOf(t, messages[2]); !strings.Contains(line, `"key_error":"not in the registry's `+
		`wire format (a zero byte, then a schema id)","key_bytes":"\\x6e6f2077697265`) {
		t.Errorf("the key's bytes are not in %s", line)
	}
}

// What other programs write: named types used twice, unions of several types, maps, records in
// records that hold themselves, types with a namespace of their own.
func TestSchemasOfOthers(t *testing.T) {
	t.Parallel()
	const text = `{"type":"record","name":"R","namespace":"a.b","fields":[
		{"name":"e","type":{"type":"enum","name":"E","symbols":["X","Y"]}},
		{"name":"again","type":["null","E"]},
		{"name":"u","type":["null","long","string",{"type":"record","name":"c.Leaf","fields":[
			{"name":"next","type":["null","Leaf"]},{"name":"v","type":"int"}]}]},
		{"name":"m","type":{"type":"map","values":["null","double"]}},
		{"name":"f","type":{"type":"fixed","name":"F","size":2}},
		{"name":"ms","type":{"type":"long","logicalType":"timestamp-millis"}}]}`
	d := decoders{schemas: texts{5: text}, byID: map[int]*decoder{}}
	dec, err := d.of(t.Context(), 5)
	if err != nil {
		t.Fatal(err)
	}
	body, err := dec.codec.BinaryFromNative([]byte{0, 0, 0, 0, 5}, map[string]any{
		"e": "Y", "again": map[string]any{"a.b.E": "X"},
		"u": map[string]any{"c.Leaf": map[string]any{
			"v": 1, "next": map[string]any{"c.Leaf": map[string]any{"v": 2, "next": nil}},
		}},
		"m": map[string]any{"z": nil, "a": map[string]any{"double": 0.5}}, "f": []byte{1, 255},
		"ms": time.UnixMilli(1_790_000_000_123),
	})
	if err != nil {
		t.Fatal(err)
	}
	v, id, err, ended := d.decode(t.Context(), body)
	if id != 5 || err != nil || ended != nil {
		t.Fatal(id, err, ended)
	}
	want := `"value":{"e":"Y","again":"X","u":{"next":{"next":null,"v":2},"v":1},` +
		`"m":{"a":0.5,"z":null},"f":"\\x01ff","ms":"2026-09-21T14:13:20.123Z"}`
	if line := lineOf(t, &Message{Value: v}); !strings.Contains(line, want) {
		t.Errorf("want %s in %s", want, line)
	}
}
