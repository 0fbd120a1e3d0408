package envelope

import (
	"encoding/binary"
	"strconv"

	"github.com/tidemark-cdc/tidemark/connector/decode"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/offsets"
)

// counting is the events of the source transaction that is open, so far: what fills the field
// transaction and the record of its end. A tombstone is no event, a truncate is one a table, the
// delete and the create of a change of key are two.
type counting struct {
	id    []byte // "XID:COMMIT LSN", both decimal; the same for every event of the transaction
	total int64
	// Tables in the order of their first event, and where each is in the list.
	tables []tableCount
	at     map[string]int
}

type tableCount struct {
	name   string // as data_collection holds it
	events int64
}

// BeginTransaction forgets what was counted. It must be called at each Begin of the stream when
// Options.Transactions is set.
func (e *Encoder) BeginTransaction(tx *decode.Tx) {
	c := &e.counting
	c.id = strconv.AppendUint(c.id[:0], uint64(tx.XID), 10)
	c.id = append(c.id, ':')
	c.id = strconv.AppendUint(c.id, uint64(tx.FinalLSN), 10)
	c.total, c.tables = 0, c.tables[:0]
	if c.at == nil {
		c.at = map[string]int{}
	}
	clear(c.at)
}

// appendTransaction writes an event's field transaction, and counts the event. Rows of a snapshot
// belong to no transaction.
func (e *Encoder) appendTransaction(dst []byte, t *Table, o *origin) []byte {
	if !e.o.Transactions || !o.inTx {
		return append(dst, branchNull)
	}
	c := &e.counting
	i, known := c.at[t.collection]
	if !known {
		i = len(c.tables)
		c.at[t.collection] = i
		c.tables = append(c.tables, tableCount{name: t.collection})
	}
	c.total++
	c.tables[i].events++
	dst = appendBytes(append(dst, branchValue), c.id)
	dst = binary.AppendVarint(dst, c.total)
	return binary.AppendVarint(dst, c.tables[i].events)
}

// CompileTransactions makes the Table of the topic <prefix>.<name>, which tells where transactions
// begin and end. Its schemas have Debezium's names and fields.
func (e *Encoder) CompileTransactions(name string) (*Table, error) {
	const namespace = "io.debezium.connector.common"
	t := &Table{
		Topic: e.o.Prefix + "." + name, KeyReason: "the transaction's id", ownKey: true,
		counters: e.counters.of("", name),
	}
	var err error
	t.KeySchema, err = checked(record("TransactionMetadataKey", namespace, []avroField{
		required("id", "string"),
	}))
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "the key's schema of topic "+t.Topic, err)
	}
	t.ValueSchema, err = checked(record("TransactionMetadataValue", namespace, []avroField{
		required("status", "string"),
		required("id", "string"),
		optional("event_count", "long"),
		optional("data_collections", avroArray{"array", record("collection", "event", []avroField{
			required("data_collection", "string"),
			required("event_count", "long"),
		})}),
		required("ts_ms", "long"),
	}))
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "the value's schema of topic "+t.Topic, err)
	}
	return t, nil
}

// TransactionBegins appends the record that says that a transaction has begun.
func (e *Encoder) TransactionBegins(dst []Record, t *Table, tx *decode.Tx) ([]Record, error) {
	return e.transaction(dst, t, tx, "BEGIN")
}

// TransactionEnds appends the record that says that a transaction is over, with the numbers of its
// events.
func (e *Encoder) TransactionEnds(dst []Record, t *Table, tx *decode.Tx) ([]Record, error) {
	return e.transaction(dst, t, tx, "END")
}

// transaction writes a record of the topic of transactions. All of them go to one partition, so that
// they are in the order of the commits. They have no headers: they are about no row.
func (e *Encoder) transaction(
	dst []Record, t *Table, tx *decode.Tx, status string,
) ([]Record, error) {
	if err := t.ready(); err != nil {
		return dst, err
	}
	e.begin()
	c, b := &e.counting, e.buf.Bytes
	from := len(b)
	b = appendBytes(append(b, t.keyHead[:]...), c.id)
	key := span{from, len(b)}
	b = appendString(append(b, t.valueHead[:]...), status)
	b = appendBytes(b, c.id)
	if status == "BEGIN" {
		b = append(b, branchNull, branchNull)
	} else {
		b = binary.AppendVarint(append(b, branchValue), c.total)
		b = binary.AppendVarint(append(b, branchValue), int64(len(c.tables)))
		for i := range c.tables {
			b = appendString(b, c.tables[i].name)
			b = binary.AppendVarint(b, c.tables[i].events)
		}
		b = append(b, 0) // the block that ends an array
	}
	b = binary.AppendVarint(b, millis(tx.CommitMicros))
	e.buf.Bytes = b
	e.buf.Retain()
	r := Record{
		Topic: t.Topic, Key: e.buf.cut(key), Value: e.buf.cut(span{key.to, len(b)}),
		Route: RouteOne, Buffer: e.buf,
		Pos: offsets.Position{History: e.o.History, CommitLSN: tx.FinalLSN},
	}
	r.HashKey = r.Key[keyHeadLength:]
	return append(dst, r), nil
}
