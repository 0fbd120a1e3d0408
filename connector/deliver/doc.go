// Package deliver brings records to Kafka.
//
// The promise: a record whose Acker was told nil is confirmed by all in-sync replicas; records of
// one key reach their partition in the order of Send; and once a record has failed, no record is
// confirmed that was given to the client after that failure was known, so that the caller can
// start again from its last stored position and repeat, but never leave out.
//
// The path of one record: Send checks it against its topic's limits (check), waits for room in the
// Queue, counts it (Acker.Add) and gives it to the client, which asks partitioner for its place.
// The client batches by itself: one that is alone goes out at once (linger 0), under load each
// request carries what gathered behind the one before. The promise (done) releases the record's
// Buffer, gives its bytes back to the Queue and tells the Acker.
//
//	producer.go   options, life and failure      topic.go    create, verify, limits, partitioner
//	send.go       the path above                 queue.go    max.queue.bytes
//	murmur2.go    Java's hash                    log.go      the client's log
//	transaction.go  exactly-once mode
//
// Non-obvious:
//   - Errors that pass by themselves are retried without end: a broker that is away for a day is a
//     full queue and nothing else (Stalled says how long). delivery.timeout.ms bounds it, if set.
//   - Within a partition nothing behind a failed record is written: the client fails all that it
//     holds for the partition, and sequence numbers make the broker refuse what was in flight.
//     Across partitions, records in flight may still be confirmed; they are repeats later.
//   - The number of partitions is the client's at the moment of partitioning, as with every other
//     producer. When it grows, keys move, and the order of a key's records across that moment is
//     only what their pairs say; Metrics.Partitions counts it.
//   - RouteEach counts the partitions before it sends. A partition that appears in between holds
//     no record yet, so nothing in it could come before the truncate.
//   - batch.size has no part in this: batches fill up to the topic's max.message.bytes.
package deliver
