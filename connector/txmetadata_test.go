package connector_test

import (
	"fmt"
	"testing"
)

// told renders the topic of transactions: status, number of events, number of each table's.
func (r *rig) told(events []event) (out []string, ids []any) {
	r.t.Helper()
	for _, e := range events {
		text := fmt.Sprint(e.value["status"])
		if n := inner(e.value["event_count"]); n != nil {
			text += fmt.Sprint(" ", n)
		}
		if list, ok := inner(e.value["data_collections"]).([]any); ok {
			for _, c := range list {
				m := c.(map[string]any)
				text += fmt.Sprint(" ", m["data_collection"], "=", m["event_count"])
			}
		}
		if key := e.key.(map[string]any)["id"]; key != e.value["id"] {
			r.t.Errorf("key %v, id %v", key, e.value["id"])
		}
		out, ids = append(out, text), append(ids, e.value["id"])
	}
	return out, ids
}

// In both modes: BEGIN and END with the numbers of events, each event with its number, nothing for
// transactions without events of captured tables.
func TestTransactionMetadata(t *testing.T) {
	for _, mode := range []string{"disabled", "required"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "18")
			r.onePartition()
			r.extra["exactly.once.support"] = mode
			r.extra["provide.transaction.metadata"] = "true"
			r.extra["topic.transaction"] = "tx"
			r.extra["table.include.list"] = "public.[tu]"
			r.exec(numbers, insertNumbers(1, 1), "CREATE TABLE u (id int PRIMARY KEY)",
				"CREATE TABLE other (id int PRIMARY KEY)")
			run := r.start()
			r.streaming(run)
			r.exec("ALTER PUBLICATION tidemark ADD TABLE other", "INSERT INTO other VALUES (1)",
				"SELECT pg_logical_emit_message(true, 'nobody', '')",
				"BEGIN; INSERT INTO other VALUES (2); INSERT INTO u VALUES (1); "+
					"UPDATE t SET id = 2; TRUNCATE u; COMMIT", "DELETE FROM t")
			r.caughtUp(run)
			r.clean(run)
			events, ids := r.told(r.committed("shop.tx"))
			same(t, events, []string{
				"BEGIN", "END 4 public.u=2 public.t=2", "BEGIN", "END 1 public.t=1",
			})
			if ids[0] != ids[1] || ids[2] != ids[3] || ids[0] == ids[2] {
				t.Errorf("ids: %v", ids)
			}
			var blocks []string
			for _, topic := range []string{"shop.public.t", "shop.public.u"} {
				for _, e := range r.committed(topic) {
					text := e.op()
					if b := row(e.value["transaction"]); b != nil {
						n := 1
						if b["id"] == ids[0] {
							n = 0
						}
						text += fmt.Sprint(" ", n, " ", b["total_order"], " ", b["data_collection_order"])
					}
					blocks = append(blocks, text)
				}
			}
			same(t, blocks, []string{
				"r", "d 0 2 1", "tombstone", "c 0 3 2", "d 1 1 1", "tombstone",
				"c 0 1 1", "t 0 4 2",
			})
		})
	}
}

// A source transaction that was split over Kafka transactions, with a restart in its midst: BEGIN and
// END come once, with the numbers of the whole transaction, and no number of an event is missing or
// there twice.
func TestTransactionMetadataOverARestartInASplitTransaction(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.onePartition()
	r.exactlyOnce(64 << 10)
	r.extra["provide.transaction.metadata"] = "true"
	r.exec(numbers)
	run := r.start()
	r.streaming(run)
	r.exec(insertNumbers(1, 10))
	r.caughtUp(run)
	r.unknownOutcome(5, true)
	r.exec(insertNumbers(11, 5000))
	r.until("the outcome was not known", func() bool {
		return r.logged("outcome of the offsets transaction is not known")
	})
	r.caughtUp(run)
	r.clean(run)
	events, ids := r.told(r.committed("shop.transaction"))
	same(t, events, []string{
		"BEGIN", "END 10 public.t=10", "BEGIN", "END 4990 public.t=4990",
	})
	var orders []int
	for _, e := range r.once("shop.public.t")[10:] {
		b := row(e.value["transaction"])
		if b["id"] != ids[2] || b["total_order"] != b["data_collection_order"] {
			t.Fatalf("transaction %v of %s", b, e)
		}
		orders = append(orders, int(b["total_order"].(int64)))
	}
	sameInts(t, "total_order", orders, sequence(1, 4990))
}
