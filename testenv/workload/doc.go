// Package workload changes a database in every way that matters to a connector: tables of every
// replica identity, a composite key, a partitioned root, values stored out of line, TRUNCATE, COPY,
// changes of key, savepoints, aborts, prepared transactions and columns that come and go, beside
// writes to tables that nobody captures.
//
// # The truth is the database
//
// The workload keeps no model. Triggers give each row a counter v that every change of its key
// raises, deletions included, and write each change to the table tm.audit in the change's own
// transaction. What is rolled back is therefore in neither. A change of key is two changes: a
// delete of the old key and an insert of the new one. TRUNCATE raises nothing and is written down
// without a key.
//
// # Same seed, same statements
//
// Each writer draws from a generator of its own, seeded with the seed and its number, and never
// looks at the data: an UPDATE of a row that is not there changes nothing. What depends on the
// machine is only how the writers' transactions interleave.
package workload
