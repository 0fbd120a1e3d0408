package capture

import (
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// setReceiveBuffer asks the kernel for a receive buffer of size bytes, and leaves the kernel's own
// tuning alone where it would not give that much: SO_RCVBUF is cut to net.core.rmem_max, usually
// 208 KiB, and switches off the tuning that goes up to tcp_rmem's maximum, usually 6 MiB. A buffer
// is speed, not correctness, so failing to get one is not an error.
func setReceiveBuffer(conn net.Conn, size int) {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		// Without CAP_NET_ADMIN this is refused.
		err := syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUFFORCE, size)
		if err != nil && receiveBufferLimit() >= size {
			_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, size)
		}
	})
}

// receiveRoom returns how many bytes of data the socket holds: half of its buffer, since the kernel
// doubles what is asked for to have room for its own records of each segment.
func receiveRoom(conn net.Conn) int {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return paceRoom
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return paceRoom
	}
	room := paceRoom
	_ = raw.Control(func(fd uintptr) {
		n, err := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF)
		if err == nil {
			room = n / 2
		}
	})
	return room
}

// receiveBufferLimit returns net.core.rmem_max, 0 when it cannot be read.
func receiveBufferLimit() int {
	text, err := os.ReadFile("/proc/sys/net/core/rmem_max")
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return n
}
