package main

import (
	"bytes"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/testenv"
)

// asCommand makes the test binary be tidemark: tests that need a process of it start themselves.
const asCommand = "TIDEMARK_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	testenv.Main(m)
}

// process is a running tidemark.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout bytes.Buffer
	stderr bytes.Buffer // read it only after end
	done   chan struct{}
}

// startProcess starts tidemark; what is left of it at the end of the test is killed.
func startProcess(t *testing.T, args ...string) *process {
	t.Helper()
	return startCommand(t, nil, os.Args[0], args...)
}

// startCommand starts a command that becomes tidemark; change may change what it is started with.
func startCommand(t *testing.T, change func(*exec.Cmd), name string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(name, args...), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), asCommand+"=1")
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	if change != nil {
		change(p.cmd)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // the status is read from ProcessState
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.done
	})
	return p
}

// end waits until the process has ended and returns its exit status.
func (p *process) end() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(time.Minute):
		p.t.Fatal("the process did not end")
	}
	return p.cmd.ProcessState.ExitCode()
}

// stop asks the process to stop, as a supervisor does, and returns its exit status.
func (p *process) stop() int {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	return p.end()
}
