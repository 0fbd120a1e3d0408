//go:build !linux

package testenv

import "syscall"

// setDeathSignal does nothing where the kernel has no signal at the parent's death; there the
// janitor alone ends what a killed process left.
func setDeathSignal(*syscall.SysProcAttr, syscall.Signal) {}

// removeSharedMemory does nothing: the segment of a killed server, some dozens of bytes, stays until
// the system's next start.
func removeSharedMemory(int) {}
