//go:build !linux

package capture

import "net"

// receiveRoom returns how many bytes the socket is taken to hold.
func receiveRoom(net.Conn) int { return paceRoom }

// setReceiveBuffer asks the kernel for a receive buffer of size bytes. A buffer is speed, not
// correctness, so failing to get one is not an error.
func setReceiveBuffer(conn net.Conn, size int) {
	if c, ok := conn.(interface{ SetReadBuffer(bytes int) error }); ok {
		_ = c.SetReadBuffer(size)
	}
}
