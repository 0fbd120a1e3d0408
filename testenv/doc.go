// Package testenv starts the servers that tests, the demo and the benchmarks run against, without
// a hand: PostgreSQL 14 to 18, a Kafka broker and a schema registry inside the process, and, where
// Java is installed, the real ones as processes of their own; and a proxy that breaks connections.
//
// # What it promises
//
// Everything listens on loopback, on free ports, and keeps its files in one directory below the
// system's temporary directory. Whoever starts a server closes it; and where that does not happen,
// because a test panicked or the process was killed, nothing remains either:
//
//   - on Linux the kernel signals each server when the process that started it ends (process.go);
//   - a small shell, the janitor, waits for the end of this process on a pipe, kills what still
//     runs and removes the directories (rundir.go).
//
// Downloads are kept in a cache outside of the repository (package download), are checked by digest
// each time they are used, and are needed once: a second run works without a network.
//
// # Files
//
//	postgres.go          a PostgreSQL server: start, stop, kill, start again, settings
//	postgres_template.go the data directory, made once and copied
//	shared.go            one server a test process, a database a test; Main for TestMain
//	broker_fake.go       broker in the process; registry_fake.go, registry in the process
//	kafka.go             a real Apache Kafka; registry.go, a real schema registry; maven.go, their jars
//	connect.go           Kafka Connect with Debezium, the peer of the benchmarks; program.go, any process
//	proxy.go             a TCP proxy that cuts, stalls, resets, delays and slices
//
// As root, PostgreSQL refuses to run: its processes then run as the user nobody, by themselves.
package testenv

// T is what this package needs of *testing.T and *rapid.T.
type T interface {
	Helper()
	Cleanup(fn func())
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
	Name() string
	TempDir() string
	Failed() bool
}
