package testenv

import "syscall"

// setDeathSignal asks the kernel to send sig to the child when the thread that started it ends; see
// PR_SET_PDEATHSIG in prctl(2). Go sets it after the change of user, which would clear it.
func setDeathSignal(attr *syscall.SysProcAttr, sig syscall.Signal) { attr.Pdeathsig = sig }

// removeSharedMemory removes the System V segment of a killed PostgreSQL server: IPC_RMID of
// shmctl(2). A segment that is already gone is no error.
func removeSharedMemory(id int) {
	const ipcRemove = 0 // IPC_RMID
	_, _, _ = syscall.Syscall(syscall.SYS_SHMCTL, uintptr(id), ipcRemove, 0)
}
