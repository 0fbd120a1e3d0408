// Package converge finds the keys that a topic still has and a table no longer: the rows that were
// deleted while nobody could see it. After a repair each of them gets a delete, so that whoever
// folds the topic ends up with the table.
//
// # What counts
//
// A key is live on a partition when its last record there, behind the last truncate, is neither a
// tombstone nor a delete. It is gone when it is live on any partition and the table's snapshot does
// not have it. A key that changed its partition, because partitions were added, can be live on the
// old one and deleted on the new one: it is deleted once more, which is no harm, since a key that
// the table has is never deleted. So no order between partitions has to be known.
//
// Keys are compared by their Avro body, since the schema id in front of it changes when a registry
// is restored or a column is widened. A key whose schema has other fields, or the same with another
// encoding, is never a key of the table.
//
// The topic is read up to where it ended when the Join was made, read_committed: what was aborted
// nobody has applied. Keys whose records retention has deleted are not in the topic any more;
// nothing can be said of them, and a warning says so.
//
// # Memory
//
// Neither side is held in memory. Both are spilled into files by the hash of the key's body (a
// grace hash join), and each pair of files is joined on its own; a pair whose distinct keys take
// more than MaxMemory is split again by another hash. The files take about the bytes of all keys in
// the topic, repeats included, plus those of the table.
package converge
