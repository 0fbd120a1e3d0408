// Package envelope turns one row change into the bytes of its Kafka records: key, value, headers.
//
// The promise of this package: what an event says of the old row is what PostgreSQL's log said,
// and nothing more. A column that the log did not carry is never shown as null without a flag, an
// old row is called FULL only when every leaf it may come from has REPLICA IDENTITY FULL, and an
// event with a null in its key does not exist.
//
// The layout is fixed by the Avro schemas that Compile builds (avro.go) and written field by field
// by append functions (value.go, source.go, key.go), straight from the tuple's text: no maps, no
// reflection, nothing allocated per row. goavro is the codec of record: it checks every schema,
// and the property tests hold these bytes equal to its.
//
// The way of a change: Row decides what the old tuple is worth (oldrow.go) and which events the
// change makes (encoder.go), writes their bytes into the current Buffer, and cuts the Records when
// all of them are complete, because growing the Buffer moves it (record.go, parts.go).
//
// Non-obvious:
//   - A change of key is decided by the bytes of the old and the new Key, which is what Kafka
//     partitions and compacts by, not by the presence of an old tuple.
//   - source.sequence is `["<commit LSN>","<LSN of the change>"]`, both of this transaction.
//     Debezium's first element is the commit LSN of the transaction before; that depends on where
//     a session began, so it is not the same again after a restart, and this one is. Transactions
//     arrive in the order of their commits, so the order of the pairs is the same.
//   - ColumnState.column is the name of Value's field (escaped where Avro wants it), and its text
//     is PostgreSQL's, or `\x` and hexadecimal digits when those bytes are not UTF-8.
//   - Headers tidemark.key.new and tidemark.key.old hold the other Key as it is in its own
//     record: five bytes of wire format, then the Avro body.
package envelope
