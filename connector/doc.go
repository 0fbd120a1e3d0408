// Package connector runs one connector: it wires the stages and keeps the promise.
//
// # The promise
//
// No loss: every change committed in a captured table after the connector's start point, and every
// row visible in its snapshot, reaches the table's topic at least once, for as long as the slot
// keeps the WAL; when that can no longer be promised, the connector stops with a named error.
// Order per key: the first appearance of each change of one key is in commit order, on one
// partition; after a fault a contiguous stretch may be repeated. Duplicates can be told by
// (history, commit LSN, index). Slot safety: flushed <= stored <= confirmed <= received, always.
// Failure is visible: nothing passes an event that cannot be delivered.
//
// # The path of one change
//
//	PostgreSQL -> capture -> decode -> envelope -> deliver -> Kafka
//	                            (schema)                |
//	PostgreSQL <- capture/status <- offsets.Store <- offsets.Tracker <- promises
//
// capture hands a frame to the pump, which decodes it, encodes the change straight from the
// tuple's bytes and hands the records to deliver, all before it asks for the next frame: the frame
// is borrowed. deliver's promises tell the Tracker; the keeper writes the Tracker's watermark to
// the offsets topic, and only when the broker has confirmed that write does capture report it to
// the slot.
//
// A row whose change left values out of the log (unchanged TOAST) is completed before it is encoded:
// reread.go holds it, and what comes behind it, while connector/reselect reads rows by identity on
// a connection of its own.
//
// # A session
//
// Everything between a connect and the loss of a connection is a session (session.go). It is
// built and torn down whole: whatever fails, the next session evaluates the start-up matrix again
// and goes on from the stored position. Order at start (start.go): wait for the slot; first look;
// START_REPLICATION (the slot is ours); offsets producer initialised (an earlier owner is fenced);
// offsets topic read to its end; second look; snapshot, if one is due; first frame.
//
// # Exactly once
//
// With exactly.once.support: required (exactly.go) the producer of events is the offsets writer:
// one transactional client, initialised where the fence is, and a new one at each. A Kafka
// transaction holds events and the record that says how far they go, and what is told to the
// Tracker, and then to the slot, is its commit. Pump, keeper and whoever saves the record commit
// it, one at a time. Nothing is retried: an error, or an outcome that is not known, ends the
// session, and the next one fences and reads what is there. In a source transaction that was
// split, an offsets.Cut leaves out what is done.
//
// # Goroutines of a session
//
//	pump     reads frames, decodes, encodes, produces; owns tables, decode.Session, the queue
//	keeper   stores positions, tells the status sender; owns the Store and the Positions (exactly
//	         once: it commits what has waited long enough)
//	watcher  heartbeats and the catalog check on the ordinary connection; owns that connection
//	status   capture's own: sends status updates on its clock, never waits for anything else
//	promises franz-go's own: release buffers, count down the Tracker's transactions
//
// # Non-obvious
//
// The slot is held (START_REPLICATION accepted) while the initial snapshot is read: the slot is
// the mutex of the connector, and a second process must not take it in the middle of a snapshot.
// The exported snapshot survives that, because the reader has imported it before.
//
// The stream's first keepalive can come before anything else; it is handled in stream order like
// all of them, and moves nothing unless all of K1 to K8 hold.
package connector
