//go:build !linux

package pgdial

import "syscall"

// controlSocket does nothing where TCP_USER_TIMEOUT does not exist.
func controlSocket(_, _ string, _ syscall.RawConn) error { return nil }
