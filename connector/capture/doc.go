// Package capture owns the replication connection: frames come out of it, and positions go back.
//
// # The promise
//
// Every frame that the server sends is handed on once, in order, keepalives in their place among
// the data. The server is told of a position only after SetFlushed said that it is durable, never
// of a lower one than before, and it is told on time whatever the reader of frames does.
//
// # The path of a byte
//
// Dial makes a Conn whose socket is ours (socket.go). Conn takes replication commands (conn.go,
// slot.go) until Start hands the connection over to a Stream (start.go). From then on two
// goroutines share it, one a direction:
//
//	caller of Next   reads: socket -> frame buffer -> Frame      stream.go, message.go, pace.go
//	status           writes: status updates on its own clock     status.go
//
// The status goroutine waits for nothing but its own write. A reader that stands still for minutes,
// because Kafka does, costs nothing: replies go out, the server waits.
//
// # Non-obvious
//
//   - A Frame's payload is a slice of the read buffer, valid until the next Next.
//   - The server writes every row to the socket by itself. A reader that wakes up for each makes
//     both sides slow, so while much is coming the socket is left to fill (pace.go).
//   - A cancelled context ends the Next that it was given to and nothing else: the stream is whole
//     and the next Next goes on where this one stopped.
//   - Until SetFlushed is called the server is told position 0, which it takes as "no news".
package capture
