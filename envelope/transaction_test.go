package envelope

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-cdc/tidemark/connector/decode"
	"github.com/tidemark-cdc/tidemark/schema"
)

// The schemas of the topic of transactions are a contract: Debezium's names and fields.
const (
	transactionKey = `{"type":"record","name":"TransactionMetadataKey",` +
		`"namespace":"io.debezium.connector.common","fields":[{"name":"id","type":"string"}]}`
	transactionValue = `{"type":"record","name":"TransactionMetadataValue",` +
		`"namespace":"io.debezium.connector.common","fields":[` +
		`{"name":"status","type":"string"},{"name":"id","type":"string"},` +
		`{"name":"event_count","type":["null","long"],"default":null},` +
		`{"name":"data_collections","type":["null",{"type":"array","items":{"type":"record",` +
		`"name":"collection","namespace":"event","fields":[` +
		`{"name":"data_collection","type":"string"},{"name":"event_count","type":"long"}]}}],` +
		`"default":null},{"name":"ts_ms","type":"long"}]}`
)

// Each event has its number in the transaction and among those of its table: a change of key is two
// events, a tombstone none, a truncate one, a skipped operation none, a snapshot's row no part of it.
func TestTransactionMetadata(t *testing.T) {
	o := options()
	o.Transactions = true
	o.Skipped = map[byte]bool{'d': true}
	e := New(o)
	defer e.Close()
	rel := relation(schema.IdentityDefault, col("id", oidInt4, true))
	other := *rel
	other.Name = "lines"
	orders, lines := compile(t, e, rel, schema.TableInfo{}), compile(t, e, &other, schema.TableInfo{})
	topic, err := e.CompileTransactions("transaction")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"shop.transaction", transactionKey, transactionValue},
		[]string{topic.Topic, topic.KeySchema, topic.ValueSchema}); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if _, err := e.TransactionBegins(nil, topic, &tx); err == nil {
		t.Error("a record was made before its schemas had ids")
	}
	topic.SetIDs(keyID, valueID)

	var got []string
	add := func(table *Table, recs []Record, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range recs {
			if r.Value != nil {
				v := native(t, table.ValueSchema, valueID, r.Value)
				block := "null"
				if b, ok := unwrap(v["transaction"]).(map[string]any); ok {
					block = fmt.Sprint(b["id"], " ", b["total_order"], " ", b["data_collection_order"])
				}
				got = append(got, fmt.Sprintf("%v %s %s", v["op"], table.Relation.Name, block))
			}
			r.Buffer.Release()
		}
	}
	tell := func(f func([]Record, *Table, *decode.Tx) ([]Record, error)) {
		t.Helper()
		recs, err := f(nil, topic, &tx)
		if err != nil {
			t.Fatal(err)
		}
		r := recs[0]
		v := native(t, topic.ValueSchema, valueID, r.Value)
		k := native(t, topic.KeySchema, keyID, r.Key)
		got = append(got, fmt.Sprint(v["status"], " ", k["id"], " ", v["id"], " ", v["event_count"], " ",
			v["data_collections"], " ", v["ts_ms"], " ", r.Route == RouteOne, " ", len(r.Headers)))
		r.Buffer.Release()
	}
	for range 2 { // the second transaction begins to count anew
		got = nil
		e.BeginTransaction(&tx)
		tell(e.TransactionBegins)
		recs, err := e.Row(nil, orders, change(decode.KindInsert, rel, 0, nil, row("1")))
		add(orders, recs, err)
		recs, err = e.Row(nil, lines, change(decode.KindInsert, &other, 0, nil, row("7")))
		add(lines, recs, err)
		recs, err = e.Row(nil, orders, change(decode.KindUpdate, rel, 'K', row("1"), row("2")))
		add(orders, recs, err)
		recs, err = e.Row(nil, orders, change(decode.KindDelete, rel, 'K', row("2"), nil))
		add(orders, recs, err)
		recs, err = e.Read(nil, orders, row("5"), Snapshot{})
		add(orders, recs, err)
		recs, err = e.Truncate(nil, lines, change(decode.KindTruncate, nil, 0, nil, nil))
		add(lines, recs, err)
		tell(e.TransactionEnds)
	}
	if d := cmp.Diff([]string{
		"BEGIN 42:1000 42:1000 <nil> <nil> 1700000000123 true 0",
		"c orders 42:1000 1 1", "c lines 42:1000 2 1",
		"d orders 42:1000 3 2", "c orders 42:1000 4 3",
		"r orders null", "t lines 42:1000 5 2",
		"END 42:1000 42:1000 map[long:5] map[array:[map[data_collection:public.orders event_count:3] " +
			"map[data_collection:public.lines event_count:2]]] 1700000000123 true 0",
	}, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// Counting allocates nothing for a table that the transaction has had.
func TestTransactionMetadataDoesNotAllocate(t *testing.T) {
	o := options()
	o.Transactions = true
	e := New(o)
	defer e.Close()
	rel := relation(schema.IdentityDefault, col("id", oidInt4, true))
	table := compile(t, e, rel, schema.TableInfo{})
	e.BeginTransaction(&tx)
	ev := change(decode.KindInsert, rel, 0, nil, row("1"))
	recs := make([]Record, 0, 4)
	once := func() {
		var err error
		if recs, err = e.Row(recs[:0], table, ev); err != nil {
			t.Fatal(err)
		}
		recs[0].Buffer.Release()
	}
	once()
	if n := testing.AllocsPerRun(1000, once); n > 0 {
		t.Errorf("%v allocations an event", n)
	}
}
