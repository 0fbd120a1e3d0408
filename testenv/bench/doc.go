// Command bench measures Tidemark beside the server's own client, on one machine, in one run.
//
// The parent process starts a PostgreSQL of its own and prepares one slot for each shape of rows.
// Each run gets a copy of that slot (pg_copy_logical_replication_slot), so that all of them read
// the same WAL; baseline and connector alternate, and what counts is the ratio of their medians:
// machines differ, and a loaded machine slows both.
//
// Every measured reader is a process of its own (child.go): its CPU seconds and its peak memory
// are what the kernel says of that process. "In-process broker" means what it means in `tidemark
// demo`: the broker lives in the connector's process, so the broker's work is in its figures.
//
//	main.go       flags, the plan, the child's entry
//	shapes.go     tables and the transactions that wait in their slots
//	prepare.go    server, slots, copies of slots
//	reader.go     the baselines: pg_recvlogical, a Go reader where that is missing, SQL, COPY;
//	              bare.go, a reader that produces: what latency is measured over
//	child.go      the connector in a process of its own
//	measure.go    alternation, medians
//	figures.go    the figures: streaming, snapshot, memory; steady.go, start, idle and latency;
//	              many.go, 5 000 tables; latency.go, a steady load and the way of its rows
//	program.go    Tidemark as a user starts it
//	peer.go       Debezium beside Tidemark: what is raced, and the figures made of it
//	peer_run.go   the contenders and what each is given; peer_watch.go, what is seen of them
//	peer_latency.go  their latency
//	gate.go       what stage gate holds a change against
//	report.go     table, JSON, docs/benchmarks.md
package main
