//go:build !linux

package capture

import "net"

// setReceiveBuffer asks the kernel for a receive buffer of size bytes. A buffer is speed, not
// correctness, so failing to get one is not an error.
func setReceiveBuffer(conn net.Conn, size int) {
	if c, ok := conn.(interface{ SetReadBuffer(bytes int) error }); ok {
		_ = c.SetReadBuffer(size)
	}
}
