package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A process is a server that this package started and must not outlive the one that started it.
//
// The goroutine that starts it also waits for it, on a thread of its own: the kernel's signal at
// the parent's death (pdeathsig) is bound to the thread that forked, not to the process, so that
// thread has to live as long as the child.
type process struct {
	name string
	pid  int
	done chan struct{} // closed when the process has ended and was waited for
	err  error         // how it ended; readable after done

	pidFile string
}

var live struct {
	sync.Mutex
	processes map[*process]struct{}
}

// startProcess starts cmd in a process group of its own, so that a Ctrl-C in the terminal reaches
// only the process that started it, which then stops its servers in order. When this process
// dies, the kernel sends the child death (on Linux). The pid is written to pidFile in dir for the
// janitor.
func startProcess(cmd *exec.Cmd, dir string, death syscall.Signal) (*process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	setDeathSignal(cmd.SysProcAttr, death)
	p := &process{name: filepath.Base(cmd.Path), done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		p.err = cmd.Wait()
		live.Lock()
		_ = os.Remove(p.pidFile)
		delete(live.processes, p)
		live.Unlock()
		close(p.done)
	}()
	// The lock keeps the goroutine of a child that ends at once from removing the pid file and the
	// entry before they are there.
	live.Lock()
	defer live.Unlock()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	p.pid = cmd.Process.Pid
	if live.processes == nil {
		live.processes = map[*process]struct{}{}
	}
	live.processes[p] = struct{}{}
	p.pidFile = filepath.Join(dir, strconv.Itoa(p.pid)+".pid")
	if err := os.WriteFile(p.pidFile, []byte(strconv.Itoa(p.pid)), 0o644); err != nil {
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
		return nil, err
	}
	return p, nil
}

// alive reports whether the process has not been waited for yet.
func (p *process) alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// stop sends sig and waits until the process is gone. When ctx ends first the process is killed and
// an error says so.
func (p *process) stop(ctx context.Context, sig syscall.Signal) error {
	if p.alive() {
		_ = syscall.Kill(p.pid, sig)
	}
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("%s (pid %d) did not stop after %v: %w; killed",
			p.name, p.pid, sig, ctx.Err()), p.kill())
	}
}

// kill ends the process and its children with SIGKILL and waits until all of them are gone.
func (p *process) kill() error {
	if !p.alive() {
		return nil
	}
	// Stopped first, so that it starts no child between the listing and its end.
	_ = syscall.Kill(p.pid, syscall.SIGSTOP)
	_ = waitFor(time.Second, func() bool { return stopped(p.pid) }, func() error { return nil })
	children := childrenOf(p.pid)
	_ = syscall.Kill(p.pid, syscall.SIGKILL)
	for _, pid := range children {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	<-p.done
	return waitFor(10*time.Second, func() bool {
		for _, pid := range children {
			if running(pid) {
				return false
			}
		}
		return true
	}, func() error {
		return fmt.Errorf("children of %s (pid %d) still run after SIGKILL: %v", p.name, p.pid, children)
	})
}

// running reports whether pid is a process that has not ended; a zombie that its new parent did not
// collect yet has ended.
func running(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return !errors.Is(err, os.ErrNotExist) || runtime.GOOS != "linux"
	}
	state, _ := procStat(string(stat))
	return state != "Z" && state != "X"
}

// stopped reports whether pid is stopped by SIGSTOP, or gone; true where the system does not say.
func stopped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	state, _ := procStat(string(stat))
	return state == "T" || state == "Z" || state == "X"
}

// childrenOf returns the pids of the direct children of pid.
func childrenOf(pid int) []int {
	if runtime.GOOS != "linux" {
		out, err := exec.Command("pgrep", "-P", strconv.Itoa(pid)).Output()
		if err != nil {
			return nil // pgrep exits with 1 where there are none
		}
		var pids []int
		for _, field := range strings.Fields(string(out)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
		return pids
	}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	var pids []int
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it ended since the listing
		}
		if _, parent := procStat(string(text)); parent == pid {
			child, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, child)
		}
	}
	return pids
}

// procStat takes the state and the parent's pid from a line of /proc/PID/stat, described in
// proc_pid_stat(5): pid (comm) state ppid ...; comm may itself contain parentheses and spaces.
func procStat(line string) (state string, parent int) {
	fields := strings.Fields(line[strings.LastIndexByte(line, ')')+1:])
	if len(fields) < 2 {
		return "", 0
	}
	parent, _ = strconv.Atoi(fields[1])
	return fields[0], parent
}

// liveProcesses names the servers that still run, for the check at the end of a test process.
func liveProcesses() []string {
	live.Lock()
	defer live.Unlock()
	var names []string
	for p := range live.processes {
		names = append(names, fmt.Sprintf("process %s (pid %d)", p.name, p.pid))
	}
	sort.Strings(names)
	return names
}

// waitFor polls ready until it holds, and returns late's error when that takes longer than limit.
func waitFor(limit time.Duration, ready func() bool, late func() error) error {
	deadline := time.Now().Add(limit)
	for !ready() {
		if time.Now().After(deadline) {
			return late()
		}
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}
