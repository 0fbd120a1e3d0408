package envelope

import (
	_ "embed" // Debezium's schemas, which testenv/cases reads too
	"strings"
	"testing"

	"github.com/hamba/avro/v2"

	"github.com/tidemark-cdc/tidemark/schema"
)

// debeziumValue is the value schema that Debezium's connector registers through Confluent's Avro
// converter for (id integer primary key, v text), without the connect.* properties, which no
// reader resolves by.
//
//go:embed testdata/debezium-value.avsc
var debeziumValue string

func parse(t *testing.T, text string) avro.Schema {
	t.Helper()
	s, err := avro.ParseWithCache(text, "", &avro.SchemaCache{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A topic changes over from Debezium under BACKWARD: our schema reads what Debezium wrote, and
// what Debezium did not say has the defaults that mean "unknown".
func TestReadsWhatDebeziumWrote(t *testing.T) {
	e := New(options())
	table := compile(t, e, orders(byDefault), withPK)
	ours, theirs := parse(t, table.ValueSchema), parse(t, debeziumValue)
	resolved, err := avro.NewSchemaCompatibility().Resolve(ours, theirs)
	if err != nil {
		t.Fatal(err)
	}
	written, err := avro.Marshal(theirs, map[string]any{
		"before": nil,
		"after":  map[string]any{"shop.public.orders.Value": map[string]any{"id": 1, "v": nil}},
		"source": map[string]any{
			"version": "3.6.1", "connector": "postgresql", "name": "shop", "ts_ms": int64(1),
			"db": "shopdb", "schema": "public", "table": "orders", "lsn": int64(5),
		},
		"op": "u",
	})
	if err != nil {
		t.Fatal(err)
	}
	var read map[string]any
	if err := avro.Unmarshal(resolved, written, &read); err != nil {
		t.Fatal(err)
	}
	source := read["source"].(map[string]any)
	if read["before_image"] != "UNKNOWN" || read["op"] != "u" || read["before_key"] != nil ||
		source["history"] != int64(0) || source["commit_lsn"] != nil || source["lsn"] != int64(5) {
		t.Errorf("read as %v", read)
	}
}

// Columns may come and go under every level.
func TestVersionsReadEachOther(t *testing.T) {
	columns := func(names string) []schema.Column {
		var cols []schema.Column
		for _, name := range strings.Fields(names) {
			cols = append(cols, col(name, oidText, name == "id"))
		}
		return cols
	}
	var versions []avro.Schema
	for _, names := range []string{"id a b", "id a", "id a b c", "b id"} {
		e := New(options())
		table := compile(t, e, relation(byDefault, columns(names)...), withPK)
		versions = append(versions, parse(t, table.ValueSchema))
	}
	e := New(options())
	keyless := compile(t, e, relation(byFull, columns("id a")...), withoutPK)
	versions = append(versions, parse(t, keyless.ValueSchema))
	for i, reader := range versions {
		for k, writer := range versions {
			if err := avro.NewSchemaCompatibility().Compatible(reader, writer); err != nil {
				t.Errorf("version %d does not read version %d: %v", i, k, err)
			}
		}
	}
}
