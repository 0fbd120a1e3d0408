// Package reselect reads rows again whose change left values out of the log: unchanged TOAST
// values, which PostgreSQL logs under REPLICA IDENTITY FULL only.
//
// # The promise
//
// A value that is handed out is of the very row that the change was about, and no older than the
// change: it is asked for by the row's identity, from the relation that has the OID of the stream's
// Relation message, whose columns still have their types, in a statement that checks all of that
// itself, and whose snapshot sees the change's transaction. What cannot be had so is not had, with a
// Reason; only an error of the connection is an error.
//
// # The way of a row
//
// Hold keeps events in the order of the stream, from the first that lacks a value on. When the
// first of them is due, it asks Reader for its values, together with those of the rows of the
// same table behind it: a statement for up to 256 rows. Values are PostgreSQL's text under the
// pinned settings of pgdial, for the same functions that encode the stream's.
//
// # Bounds
//
// A Hold takes events up to a quarter of max.queue.bytes, in which they are counted, and at most
// 8192 of them. The values of answers take another quarter at most, and a row's more: rows beyond
// that are asked for again when they are due. A statement ends after 10 seconds (statement_timeout),
// and after 2 that it waits for a lock (lock_timeout); a server that does not answer at all is given
// up after 15, which is an error of the connection.
//
// # Non-obvious
//
// A commit is in the log, and in the stream, before other sessions see it: under synchronous
// replication seconds before. What is read meanwhile is older than the change. So the statement's own
// pg_current_snapshot is compared with the transactions of the changes, and waited for.
//
// Names in a statement are those of today, found by OID, so a renamed table is read. Equality of
// identities is the operator of the unique index, since a type may come from a schema that the
// pinned search_path does not have.
package reselect
