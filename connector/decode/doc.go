// Package decode turns the frames of one replication session into row changes, grouped by
// transaction. It is pure: bytes in, values out; no I/O, no clock, no goroutine.
//
// # The promise
//
// A frame is either decoded to its last byte or refused with a fault that names the message, the
// byte and the LSN. Nothing is skipped, guessed or repaired: a frame that is not what pgoutput
// sends means that this session cannot be trusted any more, and Session refuses every later frame
// too.
//
// # The path of a frame
//
// Session.Decode looks at the first byte and hands the rest to the one parser of that message.
// Every message has a file of its own, with its grammar above the parser: begin, commit, origin,
// relation, type, insert, update, delete, truncate, message, streamabort. Rows share tuple.go, all
// share the cursor of reader.go. The page of the manual is "Logical Replication Message Formats"
// (protocol-logicalrep-message-formats) throughout.
//
// # Non-obvious
//
//   - The decoder speaks protocol version 1 in text mode. Rows of a large open transaction
//     (version 2) and binary values are never asked for, so they are errors here.
//   - Relations belong to the session: the server sends each again after a reconnect. A Relation
//     message that repeats what is known keeps the pointer, so that what hangs on it stays.
//   - The frame is borrowed and so is everything that points into it. Values are slices of the
//     frame; a row costs no allocation once tuples have grown to the widest table. Event.Clone
//     makes one that stays.
//   - A logical message outside of a transaction may arrive while a transaction is open in the
//     stream, and before the BEGIN of the transaction that wrote it. It belongs to no
//     transaction and counts in none.
package decode
