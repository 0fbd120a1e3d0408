// Package check is the promise as code: it reads what a connector wrote, in whole, and says where
// that is not what was promised. It shares no code with the product: keys are hashed, Avro is
// decoded and values are turned back into PostgreSQL's text by functions of its own.
//
// # What is checked
//
//	order       per key, first appearances are in the order of the pair and of the row's counter,
//	            which rises by one; repeats are contiguous and equal, but for the processing time
//	hole        every partition of every table got the drain's marker before the deadline, and every
//	            change that the source's own record of changes has is there
//	fold        what a consumer makes of the topic is the table, in PostgreSQL's text form
//	once        exactly once: each record has been committed once (with Options.ExactlyOnce)
//	before      with REPLICA IDENTITY FULL, an event's old row is the previous one's new row
//	partition   a key's partition is Java's murmur2 of its Avro body; every record decodes with
//	            hamba/avro, which the product does not encode with
//	positions   flushed <= stored <= confirmed at every sample, and none falls (Sampler); in
//	            exactly-once mode stored is known to the broker first
//	image       before_image, before_key and column_states say what the replica identity allows
//
// # The row's counter
//
// A table may have a column that counts the changes of its key (Table.Version): each insert,
// update and delete of a key raises it by one, over deletions and new insertions too; TRUNCATE
// does not. A change of key is a delete of the old and an insert of the new one. Package workload
// keeps such counters by triggers. With them a lost change is seen in the topic alone.
//
// # The checker is checked
//
// It has to fail on connectors that do wrong: build tag broken, fault by TIDEMARK_FAULT
// (connector/broken_on.go), each test named after its fault. What shows only when processes and
// acknowledgements meet in a rare order is the simulator's (testenv/sim, mutation.go).
//
//	early_ack: store before confirm     positions  TestBrokenEarlyAck
//	drop, in both modes                 hole       TestBrokenDrop, TestBrokenExactlyOnceDrop
//	swap                                order      TestBrokenSwap
//	skip_on_restart                     hole       TestBrokenSkipOnRestart
//	absent_null                         fold       TestBrokenAbsentNull
//	twice, exactly once                 once       TestBrokenExactlyOnceTwice
//	skip_one_more: cut, off by one      hole       TestBrokenSkipOneMore
//	skip_one_less                       once       TestBrokenSkipOneLess
//	no_k3                               hole       TestBrokenNoK3
//	no_fence                            positions  TestBrokenNoFence
//	no_second_look                      positions  TestBrokenNoSecondLook
//
// # Non-obvious
//
// Rows of a snapshot are no part of a key's sequence of changes: a snapshot that was begun again
// reads rows whose changes are still to come in the stream. They say where the sequence must begin
// (keys.go), and take part in the fold by the consumer's rule: a greater pair wins.
package check
