// Package offsets decides which position may be told to PostgreSQL, and keeps it.
//
// The promise: a position is told to the server only after every change before it is confirmed by
// the Kafka broker and the position itself is confirmed in the offsets topic; and a start from a
// stored position happens only where the server can still give every change after it.
//
// Four positions, each with one owner:
//
//	received   the highest position that the stream has shown in its order (capture)
//	confirmed  everything up to it is confirmed by the broker (Tracker)
//	stored     the offsets topic's broker has confirmed it (Store)
//	flushed    told to PostgreSQL (capture's status updates)
//
//	flushed <= stored <= confirmed <= received, held by Positions in all builds
//
// Files: tracker.go (what is confirmed), idle.go (may a keepalive move the slot?), heartbeat.go
// (when to make a position of our own), positions.go (the inequality), record.go and snapshot.go
// (what is stored), fingerprint.go and compare.go (the publication is part of the history), gap.go,
// slot.go and gapfault.go (the start-up matrix), claim.go (the order of a start), cut.go and part.go
// (exactly once), store.go, storetopic.go and storeload.go (the offsets topic). Everything but the
// store is pure: values in, values out, no clock and no I/O.
package offsets
