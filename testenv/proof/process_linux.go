package proof

import "syscall"

// childAttributes let the child die with the thread that started it, which lives as long as the
// child: see Process.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
