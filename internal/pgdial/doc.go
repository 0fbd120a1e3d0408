// Package pgdial opens every connection to PostgreSQL, ordinary and replication, and gives every
// error of a connection its code. Hosts, TLS, password, timeouts and the settings that text output
// depends on are decided here and nowhere else, so that stream, snapshot and reselect print alike.
//
// # Non-obvious
//
//   - Output settings go into the startup packet. There they win over ALTER ROLE ... SET and ALTER
//     DATABASE ... SET, and hold for a replication connection, which takes no SET of its own.
//   - No prepared statement is kept. A cached plan is refused by the server after a table changed
//     ("cached plan must not change result type"), and connectors live through such changes.
//   - PostgreSQL's DETAIL may hold a row's values. Wrap keeps it only for error classes in which it
//     never does.
package pgdial
