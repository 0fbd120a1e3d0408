package envelope

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-cdc/tidemark/connector/decode"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/offsets"
	"github.com/tidemark-cdc/tidemark/schema"
)

func orders(identity schema.Identity) *schema.Relation {
	return relation(identity, col("id", oidInt4, identity == byDefault), col("v", oidText, false))
}

func headerText(r Record) string {
	var b strings.Builder
	for _, h := range r.Headers {
		fmt.Fprintf(&b, "%s=%s\n", strings.TrimPrefix(h.Key, "tidemark."), h.Value)
	}
	return b.String()
}

func TestHeadersOfAKeyChange(t *testing.T) {
	o := options()
	o.History = 2
	e := New(o)
	rel := orders(byDefault)
	table := compile(t, e, rel, withPK)
	recs := encode(t, e, table, change(update, rel, 'K', row("1", null), row("2", "x")))
	if len(recs) != 3 {
		t.Fatalf("%d records", len(recs))
	}
	remove := "op=d\nhistory=2\ncommit_lsn=1000\nevent_index=3\nbefore_image=KEY\n" +
		"key.new=\x00\x00\x00\x00\x07\x04\n"
	create := "op=c\nhistory=2\ncommit_lsn=1000\nevent_index=3\nbefore_image=KEY\n" +
		"key.old=\x00\x00\x00\x00\x07\x02\n"
	for i, want := range []string{remove, remove, create} {
		if d := cmp.Diff(want, headerText(recs[i])); d != "" {
			t.Errorf("headers of record %d (-want +got):\n%s", i, d)
		}
		if want := (offsets.Position{History: 2, CommitLSN: 1000, Index: 3}); recs[i].Pos != want {
			t.Errorf("position of record %d is %+v", i, recs[i].Pos)
		}
		if recs[i].Topic != "shop.public.orders" {
			t.Errorf("topic %s", recs[i].Topic)
		}
	}
}

func TestSourceBlock(t *testing.T) {
	e := New(options())
	rel := orders(byDefault)
	table := compile(t, e, rel, withPK)
	ev := change(insert, rel, 0, nil, row("1", "x"))
	ev.Tx = &decode.Tx{FinalLSN: 1000, CommitMicros: -1, XID: math.MaxUint32, Origin: "node_b"}
	v := native(t, table.ValueSchema, valueID, encode(t, e, table, ev)[0].Value)
	want := map[string]any{
		"version": "1.2.3", "connector": "postgresql", "name": "shop", "ts_ms": int64(-1),
		"ts_us": int64(-1), "ts_ns": int64(-1000), "snapshot": "false", "db": "shopdb",
		"sequence": `["1000","900"]`, "schema": "public", "table": "orders",
		"txId": int64(4294967295), "lsn": int64(900), "xmin": nil, "history": int64(0),
		"commit_lsn": int64(1000), "event_index": int64(3), "origin": "node_b",
	}
	if d := cmp.Diff(want, flat(v["source"])); d != "" {
		t.Errorf("source (-want +got):\n%s", d)
	}
	if v["transaction"] != nil {
		t.Errorf("transaction %v", v["transaction"])
	}
	times := []any{unwrap(v["ts_ms"]), unwrap(v["ts_us"]), unwrap(v["ts_ns"])}
	if d := cmp.Diff([]any{int64(now / 1000), int64(now), int64(now * 1000)}, times); d != "" {
		t.Errorf("time of processing (-want +got):\n%s", d)
	}
}

// flat takes the unions out of a record's fields.
func flat(v any) map[string]any {
	out := map[string]any{}
	for name, f := range v.(map[string]any) {
		out[name] = unwrap(f)
	}
	return out
}

func TestSnapshotRow(t *testing.T) {
	e := New(options())
	rel := orders(byFull)
	table := compile(t, e, rel, withPK)
	s := Snapshot{
		Pos: offsets.Position{History: 1, CommitLSN: 500, Index: -1}, Micros: 7_000_001, LSN: 600,
	}
	recs, err := e.Read(nil, table, row("1", "x"), s)
	if err != nil {
		t.Fatal(err)
	}
	lines(t, table, recs, "r key=(1) NOT_APPLICABLE before=- key=- after=(1,x)")
	source := flat(native(t, table.ValueSchema, valueID, recs[0].Value)["source"])
	got := fmt.Sprintln(source["snapshot"], source["txId"], source["lsn"], source["commit_lsn"],
		source["event_index"], source["history"], source["ts_us"], source["sequence"])
	if want := `true <nil> 600 500 -1 1 7000001 ["500","600"]` + "\n"; got != want {
		t.Errorf("source is %s, want %s", got, want)
	}
	want := "op=r\nhistory=1\ncommit_lsn=500\nevent_index=-1\nbefore_image=NOT_APPLICABLE\n"
	if d := cmp.Diff(want, headerText(recs[0])); d != "" {
		t.Error(d)
	}
	s.Marker, s.XID = "incremental", 9
	if recs, err = e.Read(recs[:0], table, row("1", "x"), s); err != nil {
		t.Fatal(err)
	}
	source = flat(native(t, table.ValueSchema, valueID, recs[0].Value)["source"])
	if source["snapshot"] != "incremental" || source["txId"] != int64(9) {
		t.Errorf("marker %v, txId %v", source["snapshot"], source["txId"])
	}
}

func TestTruncate(t *testing.T) {
	e := New(options())
	rel := orders(byDefault)
	table := compile(t, e, rel, withPK)
	ev := change(decode.KindTruncate, nil, 0, nil, nil)
	ev.Truncated = []*schema.Relation{rel}
	recs, err := e.Truncate(nil, table, ev)
	if err != nil {
		t.Fatal(err)
	}
	lines(t, table, recs, "t key=- NOT_APPLICABLE before=- key=- after=-")
	if recs[0].Route != RouteEach || recs[0].Key != nil || recs[0].HashKey != nil {
		t.Errorf("route %d, key %x", recs[0].Route, recs[0].Key)
	}
}

func TestMessages(t *testing.T) {
	e := New(options())
	table, err := e.CompileMessages()
	if err != nil {
		t.Fatal(err)
	}
	table.SetIDs(0, valueID)
	if table.Topic != "shop.message" || table.HasKey() {
		t.Errorf("topic %s, key %v", table.Topic, table.HasKey())
	}
	ev := &decode.Event{
		Kind: decode.KindMessage, Tx: &tx, Index: 1, LSN: 800, MessageLSN: 801, Transactional: true,
		Prefix: []byte("audit"), Content: []byte{0, 0xff},
	}
	recs, err := e.Message(nil, table, ev)
	if err != nil {
		t.Fatal(err)
	}
	lines(t, table, recs, "m key=- NOT_APPLICABLE before=- key=- after=-")
	v := native(t, table.ValueSchema, valueID, recs[0].Value)
	want := map[string]any{"prefix": "audit", "content": []byte{0, 0xff}}
	if d := cmp.Diff(want, flat(unwrap(v["message"]))); d != "" {
		t.Error(d)
	}
	if want := (offsets.Position{CommitLSN: 1000, Index: 1}); recs[0].Pos != want {
		t.Errorf("position %+v", recs[0].Pos)
	}
	if recs[0].Route != RouteOne {
		t.Errorf("route %d", recs[0].Route)
	}

	// Outside a transaction, also when another one is open.
	ev.Transactional, ev.Index = false, 5
	if recs, err = e.Message(nil, table, ev); err != nil {
		t.Fatal(err)
	}
	if want := (offsets.Position{CommitLSN: 801}); recs[0].Pos != want {
		t.Errorf("position %+v", recs[0].Pos)
	}
	source := flat(native(t, table.ValueSchema, valueID, recs[0].Value)["source"])
	if source["txId"] != nil || source["ts_us"] != int64(now) || source["lsn"] != int64(801) {
		t.Errorf("source %v", source)
	}
}

func TestSkippedOperations(t *testing.T) {
	for op, kind := range map[byte]decode.Kind{'c': insert, 'u': update, 'd': remove} {
		o := options()
		o.Skipped = map[byte]bool{op: true}
		e := New(o)
		rel := orders(byDefault)
		table := compile(t, e, rel, withPK)
		recs := encode(t, e, table, change(kind, rel, 'K', row("1", null), row("2", "x")))
		if len(recs) > 0 {
			t.Errorf("%c is skipped and gives %d records", op, len(recs))
		}
	}
	o := options()
	o.Skipped = map[byte]bool{'t': true}
	e := New(o)
	table := compile(t, e, orders(byDefault), withPK)
	recs, err := e.Truncate(nil, table, change(decode.KindTruncate, nil, 0, nil, nil))
	if err != nil || len(recs) > 0 {
		t.Errorf("t is skipped and gives %d records, %v", len(recs), err)
	}
}

func TestSwitches(t *testing.T) {
	o := options()
	o.Headers, o.Tombstones, o.HashWholeKey = false, false, true
	e := New(o)
	rel := orders(byDefault)
	table := compile(t, e, rel, withPK)
	recs := encode(t, e, table, change(remove, rel, 'K', row("1", null), nil))
	lines(t, table, recs, "d key=(1) KEY before=- key=(1) after=-")
	if recs[0].Headers != nil {
		t.Errorf("headers %v", recs[0].Headers)
	}
	if !bytes.Equal(recs[0].HashKey, []byte{0, 0, 0, 0, keyID, 2}) {
		t.Errorf("hash key %x", recs[0].HashKey)
	}
	e = New(options())
	table = compile(t, e, rel, withPK)
	recs = encode(t, e, table, change(remove, rel, 'K', row("1", null), nil))
	if !bytes.Equal(recs[0].HashKey, []byte{2}) {
		t.Errorf("hash key %x", recs[0].HashKey)
	}
}

func TestUnrepresentableValues(t *testing.T) {
	rel := relation(byFull, col("id", oidInt4, false), col("at", oidTimestamp, false),
		col("v", oidText, false))
	e := New(options())
	table := compile(t, e, rel, withPK)
	ev := change(update, rel, 'O', row("1", "infinity", "x"), row("1", "-infinity", "\xff\x00b"))
	lines(t, table, encode(t, e, table, ev),
		"u key=(1) FULL before=(1,null,x) key=(1) after=(1,null,null)"+
			" BEFORE.at=UNREPRESENTABLE(infinity) AFTER.at=UNREPRESENTABLE(-infinity)"+
			` AFTER.v=UNREPRESENTABLE(\xff0062)`)
	want := []TableStats{{Schema: "public", Table: "orders", Unrepresentable: 3}}
	if d := cmp.Diff(want, e.Stats()); d != "" {
		t.Error(d)
	}

	o := options()
	o.FailUnrepresentable = true
	e = New(o)
	table = compile(t, e, rel, withPK)
	_, err := e.Row(nil, table, ev)
	wantFault(t, err, fault.ValueUnrepresented, "public.orders", "at")
	if strings.Contains(err.Error(), "infinity") {
		t.Errorf("the fault shows a value: %v", err)
	}
}

func wantFault(t *testing.T, err error, code fault.Code, parts ...string) {
	t.Helper()
	if !fault.Has(err, code) {
		t.Fatalf("want %s, got %v", code, err)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("%q is missing in: %v", p, err)
		}
	}
}

func TestStatsOutliveARelationVersion(t *testing.T) {
	e := New(options())
	for range 2 {
		rel := orders(byDefault)
		table := compile(t, e, rel, withPK)
		encode(t, e, table, change(update, rel, 0, nil, row("1", unchanged)))
	}
	want := []TableStats{{Schema: "public", Table: "orders", Unavailable: 2}}
	if d := cmp.Diff(want, e.Stats()); d != "" {
		t.Error(d)
	}
}

func TestKeyValueWithoutLegalKey(t *testing.T) {
	rel := relation(byDefault, col("at", oidTimestamp, true), col("v", oidText, false))
	e := New(options())
	table := compile(t, e, rel, withPK)
	_, err := e.Row(nil, table, change(insert, rel, 0, nil, row("infinity", "x")))
	wantFault(t, err, fault.KeyUnrepresentable, "public.orders", "column at",
		"public.orders.at", "key.text.columns")

	o := options()
	o.KeyText = func(schema, table, column string) bool {
		return schema == "public" && table == "orders" && column == "at"
	}
	e = New(o)
	table = compile(t, e, rel, withPK)
	if !strings.Contains(table.KeySchema, `{"name":"at","type":"string"}`) {
		t.Error(table.KeySchema)
	}
	lines(t, table, encode(t, e, table, change(remove, rel, 'K', row("infinity", null), nil)),
		"d key=(infinity) KEY before=- key=(infinity) after=-", "d key=(infinity) tombstone")
}

func TestRowBeforeIDs(t *testing.T) {
	e := New(options())
	rel := orders(byDefault)
	table, err := e.Compile(rel, withPK)
	if err != nil {
		t.Fatal(err)
	}
	ev := change(insert, rel, 0, nil, row("1", "x"))
	if _, err := e.Row(nil, table, ev); !fault.Has(err, fault.Internal) {
		t.Errorf("got %v", err)
	}
	table.SetIDs(0, 5)
	if _, err := e.Row(nil, table, ev); !fault.Has(err, fault.Internal) {
		t.Errorf("got %v", err)
	}
}
