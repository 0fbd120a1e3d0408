package proof

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Build builds the command with build tags into dir and returns its path.
func Build(ctx context.Context, dir string, tags ...string) (string, error) {
	binary := filepath.Join(dir, "tidemark-"+strings.Join(append([]string{"built"}, tags...), "-"))
	cmd := exec.CommandContext(ctx, "go", "build", "-tags", strings.Join(tags, ","), "-o", binary,
		"github.com/tidemark-cdc/tidemark/cmd/tidemark")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return binary, nil
}

// Process is a running `tidemark run`.
type Process struct {
	pid  int
	done chan struct{} // closed when it has ended
	err  error         // how; readable after done
}

// startProcess starts a command whose output goes to the end of a file.
func startProcess(log string, env []string, binary string, args ...string) (*Process, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(binary, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), env...), file, file
	cmd.SysProcAttr = childAttributes()
	p := &Process{done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The signal at the parent's death is bound to the thread that forked.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer func() { _ = file.Close() }()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	p.pid = cmd.Process.Pid
	return p, nil
}

// Kill ends the process with SIGKILL, if it still runs, and waits until it is gone.
func (p *Process) Kill() {
	select {
	case <-p.done:
	default:
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
		<-p.done
	}
}

// PID is the process's.
func (p *Process) PID() int { return p.pid }

// Signal sends a signal, also to a process that has ended: it has no effect then.
func (p *Process) Signal(s syscall.Signal) {
	if ended, _ := p.Ended(); !ended {
		_ = syscall.Kill(p.pid, s)
	}
}

// Stop asks the process to end and waits; after limit it is killed. It returns how it ended.
func (p *Process) Stop(limit time.Duration) error {
	_ = syscall.Kill(p.pid, syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(limit):
		p.Kill()
		return fmt.Errorf("the connector did not end within %s", limit)
	}
	return p.err
}

// Wait waits until the process ends by itself, and returns how; after limit it is killed.
func (p *Process) Wait(limit time.Duration) error {
	select {
	case <-p.done:
		return p.err
	case <-time.After(limit):
		p.Kill()
		return fmt.Errorf("the connector did not end by itself within %s", limit)
	}
}

// Ended says whether the process has ended, and how.
func (p *Process) Ended() (bool, error) {
	select {
	case <-p.done:
		return true, p.err
	default:
		return false, nil
	}
}

// state is what the worker says of its first connector; "" when it does not answer.
func state(ctx context.Context, url string) string {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return ""
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return ""
	}
	defer func() { _ = resp.Body.Close() }()
	var answer struct {
		Connectors []struct {
			State string `json:"state"`
		} `json:"connectors"`
	}
	if json.NewDecoder(resp.Body).Decode(&answer) != nil || len(answer.Connectors) == 0 {
		return ""
	}
	return answer.Connectors[0].State
}
