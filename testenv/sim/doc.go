// Package sim runs the connector's pure core against a scripted PostgreSQL and a scripted Kafka,
// thousands of short runs, each with another interleaving of everything that can happen, and checks
// the promise of package connector after each step.
//
// # What is real
//
// The decoder (connector/decode reads real bytes of pgoutput), offsets.Tracker, Idle, Positions, the
// start-up matrix (Decide), Look, SecondLook, the order of a start and of a fresh start (Claim,
// Fresh), Cut and Part (exactly once), the record's JSON, and the comparison of publications.
//
// # What is mirrored
//
// The glue between them, which in the connector is full of pgx, franz-go, goroutines and clocks.
// Each function here that mirrors one there says so, and makes the same calls of the real code in the
// same order; a change there is to be made here as well:
//
//	process.go  connector.Run: which faults begin a session again
//	start.go    session.start, lookOnce, take, own, create, and the catalog check of watch
//	session.go  session.run, keep, store, told, saveRecord, drain, fence, explainFence; Store.Save
//	stream.go   session.pump, data, commit, row, message, keepalive; deliver's full queue
//	exactly.go  connector.exactly: lock, order, and when it commits
//
// Left out: the encoder (a row is its number), snapshots and repairs, heartbeats, time outs of calls
// other than "no answer".
//
// # How
//
// A process's goroutines are coroutines (process.go) which give way wherever the real ones wait for
// another one or for a server. The scheduler (world.go) picks one step at a time: let a task go on,
// let a walsender send, let the broker append or acknowledge a record or carry out a request (or lose
// it, or its answer), a statement of another program, a fault (disturb.go). At the end all faults are
// over and everything must come to rest: what is committed is in its topic, the slot is where the
// WAL ends. Every choice is on a tape (tape.go), so that a seed is a run, and a failing run is made
// smaller by leaving choices out (run.go).
//
// The checks (truth.go) rest on what was really committed, appended and stored, never on what the
// connector believes. A mutation (mutation.go) breaks the mirrored part on purpose; a test says which
// check finds it.
package sim
