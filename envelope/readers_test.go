package envelope

import (
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hamba/avro/v2"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/tidemark-cdc/tidemark/schema"
	"github.com/tidemark-cdc/tidemark/testenv"
	"github.com/tidemark-cdc/tidemark/testenv/avrocompat"
)

// debeziumKey is the key schema that goes with debeziumValue.
//
//go:embed testdata/debezium-key.avsc
var debeziumKey string

// registerAll registers versions of a subject whose level is BACKWARD, and returns the refusal.
func registerAll(t *testing.T, url, subject string, texts ...string) error {
	t.Helper()
	client, err := sr.NewClient(sr.URLs(url), sr.HTTPClient(&http.Client{
		Transport: &http.Transport{DisableKeepAlives: true},
	}))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		if _, err := client.RegisterSchema(t.Context(), subject, sr.Schema{Schema: text}, -1, -1); err != nil {
			return err
		}
	}
	return nil
}

// A topic that Debezium filled changes over to ours: a registry takes our schemas as the next
// versions under BACKWARD, and would not without the defaults. The same on a real registry is
// TestRealRegistryChangesOverFromDebezium of testenv/cases.
func TestATopicChangesOverFromDebezium(t *testing.T) {
	r, err := testenv.StartFakeRegistry(testenv.FakeRegistryOptions{Compatible: avrocompat.Check})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	table := compile(t, New(options()), orders(byDefault), withPK)
	if err := registerAll(t, r.URL, "a-value", debeziumValue, table.ValueSchema); err != nil {
		t.Errorf("value: %v", err)
	}
	if err := registerAll(t, r.URL, "a-key", debeziumKey, table.KeySchema); err != nil {
		t.Errorf("key: %v", err)
	}
	without := strings.Replace(table.ValueSchema, `,"default":"UNKNOWN"},"default":"UNKNOWN"}`, `}}`, 1)
	var refusal *sr.ResponseError
	err = registerAll(t, r.URL, "b-value", debeziumValue, without)
	if without == table.ValueSchema || !errors.As(err, &refusal) || refusal.StatusCode != 409 {
		t.Errorf("without the default: %v", err)
	}
}

// flinkReader is the reader schema that Flink's format debezium-avro-confluent makes of a table
// (id INT, v STRING): before, after and op, everything nullable. Java's resolution does not look at
// the names of records; the aliases say the same to this library.
const flinkReader = `{"type":"record","name":"record","aliases":["shop.public.orders.Envelope"],"fields":[
{"name":"before","default":null,"type":["null",{"type":"record","name":"row",
	"aliases":["shop.public.orders.Value"],"fields":[
	{"name":"id","type":["null","int"],"default":null},
	{"name":"v","type":["null","string"],"default":null}]}]},
{"name":"after","type":["null","row"],"default":null},
{"name":"op","type":["null","string"],"default":null}]}`

// asReader decodes a record with a reader's schema, as its library resolves it against ours.
func asReader(t *testing.T, table *Table, reader string, r Record) map[string]any {
	t.Helper()
	resolved, err := avro.NewSchemaCompatibility().Resolve(parse(t, reader), parse(t, table.ValueSchema))
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := avro.Unmarshal(resolved, r.Value[5:], &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// flink applies the rules of that format: a tombstone is nothing; c and r insert, u and d need the
// old row, anything else is an error.
func flink(row map[string]any) string {
	before, after := readRow(row["before"]), readRow(row["after"])
	switch op := fmt.Sprint(bare(row["op"])); {
	case op == "c", op == "r":
		return "+I" + after
	case (op == "u" || op == "d") && before == "":
		return op + " refused"
	case op == "u":
		return "-U" + before + " +U" + after
	case op == "d":
		return "-D" + before
	default:
		return op + " refused"
	}
}

// bare takes a value out of hamba's form of a union.
func bare(v any) any {
	if m, ok := v.(map[string]any); ok && len(m) == 1 {
		for name, inner := range m {
			if name == "string" || name == "int" || strings.HasSuffix(name, "row") ||
				strings.HasSuffix(name, "Value") {
				return inner
			}
		}
	}
	return v
}

func readRow(v any) string {
	m, ok := bare(v).(map[string]any)
	if !ok {
		return ""
	}
	return fmt.Sprintf("(%v,%v)", bare(m["id"]), bare(m["v"]))
}

// changesOf are an insert, an update, a delete and a truncate of a table with this identity.
func changesOf(t *testing.T, identity schema.Identity) (*Table, []Record) {
	t.Helper()
	e := New(options())
	rel := orders(identity)
	table := compile(t, e, rel, withPK)
	kind, old := byte(0), schema.Tuple(nil)
	if identity == byFull {
		kind, old = 'O', row("1", "a")
	}
	recs := encode(t, e, table, change(insert, rel, 0, nil, row("1", "a")))
	recs = append(recs, encode(t, e, table, change(update, rel, kind, old, row("1", "b")))...)
	if identity == byFull {
		old = row("1", "b")
	} else {
		kind, old = 'K', row("1", null)
	}
	recs = append(recs, encode(t, e, table, change(remove, rel, kind, old, nil))...)
	return table, recs
}

// Flink takes tables whose identity is FULL, and refuses u and d of others: it must not make up an
// old row, and neither do we.
func TestFlinkReadsTablesWithAFullIdentity(t *testing.T) {
	for identity, want := range map[schema.Identity][]string{
		byFull:    {"+I(1,a)", "-U(1,a) +U(1,b)", "-D(1,b)"},
		byDefault: {"+I(1,a)", "u refused", "d refused"},
	} {
		table, recs := changesOf(t, identity)
		var got []string
		for _, r := range recs {
			if r.Value != nil {
				got = append(got, flink(asReader(t, table, flinkReader, r)))
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("identity %c (-want +got):\n%s", identity, d)
		}
	}
}

// ClickHouse reads with the writer's schema and takes fields by their path; a union that is not of
// null and one other type it does not take.
func TestClickHouseFindsItsPaths(t *testing.T) {
	table, _ := changesOf(t, byFull)
	paths := map[string]bool{}
	var walk func(path string, s avro.Schema)
	walk = func(path string, s avro.Schema) {
		switch s := s.(type) {
		case *avro.UnionSchema:
			if len(s.Types()) != 2 || !s.Nullable() {
				t.Errorf("%s is a union of %v", path, s.Types())
			}
			for _, branch := range s.Types() {
				walk(path, branch)
			}
		case *avro.RefSchema:
			walk(path, s.Schema())
		case *avro.RecordSchema:
			for _, f := range s.Fields() {
				walk(strings.TrimPrefix(path+"."+f.Name(), "."), f.Type())
			}
		default:
			paths[path] = true
		}
	}
	walk("", parse(t, table.ValueSchema))
	for _, path := range []string{
		"before.id", "before.v", "after.id", "after.v", "op", "source.lsn", "source.ts_ms", "ts_ms",
		"before_image", "before_key.id", "source.commit_lsn", "source.event_index",
	} {
		if !paths[path] {
			t.Errorf("there is no %s", path)
		}
	}
}

// Materialize keeps the newest after of each key: the columns of the Key are fields of Value under
// the same names and with the same types, before may be null always, and a delete has none after.
func TestMaterializeUpsertsByTheKey(t *testing.T) {
	for _, identity := range []schema.Identity{byFull, byDefault} {
		table, recs := changesOf(t, identity)
		key := parse(t, table.KeySchema).(*avro.RecordSchema)
		envelope := parse(t, table.ValueSchema).(*avro.RecordSchema)
		value := envelope.Fields()[0].Type().(*avro.UnionSchema).Types()[1].(*avro.RecordSchema)
		for _, k := range key.Fields() {
			found := false
			for _, f := range value.Fields() {
				found = found || f.Name() == k.Name() &&
					f.Type().(*avro.UnionSchema).Types()[1].String() == k.Type().String()
			}
			if !found {
				t.Errorf("the Key's %s is no field of Value", k.Name())
			}
		}
		state := map[string]string{}
		var history []string
		for _, r := range recs {
			id := fmt.Sprint(native(t, table.KeySchema, keyID, r.Key)["id"])
			after := ""
			if r.Value != nil {
				after = readRow(asReader(t, table, flinkReader, r)["after"])
			}
			if state[id] = after; after == "" {
				delete(state, id)
			}
			history = append(history, fmt.Sprint(state))
		}
		want := []string{"map[1:(1,a)]", "map[1:(1,b)]", "map[]", "map[]"}
		if d := cmp.Diff(want, history); d != "" {
			t.Errorf("identity %c (-want +got):\n%s", identity, d)
		}
	}
}
