package pgdial

import (
	"strings"
	"syscall"
)

// optUserTimeout is TCP_USER_TIMEOUT of linux/tcp.h, which package syscall does not name.
const optUserTimeout = 18

// controlSocket bounds how long sent bytes may stay unacknowledged: without it a peer that vanished
// while we were sending is noticed after the kernel's retries only, a quarter of an hour. It is a
// convenience: an error of the option is not an error of the connection.
func controlSocket(network, _ string, raw syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	return raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, optUserTimeout,
			int(tcpUserTimeout.Milliseconds()))
	})
}
