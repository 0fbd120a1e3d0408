//go:build crashpoints

package connector

import (
	"os"
	"syscall"
)

// crashPoint kills the process, as kill -9 does, when TIDEMARK_CRASH names this point, and panics
// when it names it behind "panic:".
func crashPoint(name string) {
	switch os.Getenv("TIDEMARK_CRASH") {
	case name:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "panic:" + name:
		panic("crash point " + name)
	}
}
