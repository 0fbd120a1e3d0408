package testenv

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// A Program is a process that somebody else waits for and looks at: Kafka Connect, a built
// connector. It ends with the process that started it. Its methods may be called from several
// goroutines.
type Program struct {
	LogFile string    // what it wrote
	Started time.Time // just before the process was there

	dir     string
	process *process
}

// StartProgram starts what command returns, which gets a directory for its files; kind is a part of
// that directory's name. The caller closes it.
func StartProgram(kind string, command func(dir string) (*exec.Cmd, error)) (*Program, error) {
	dir, err := newRunDir(kind)
	if err != nil {
		return nil, err
	}
	p := &Program{dir: dir, LogFile: filepath.Join(dir, "program.log")}
	if err := p.start(command); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", kind, err), removeRunDir(dir))
	}
	return p, nil
}

func (p *Program) start(command func(dir string) (*exec.Cmd, error)) error {
	cmd, err := command(p.dir)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(p.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the child has its own
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, log, log
	p.Started = time.Now()
	p.process, err = startProcess(cmd, p.dir, syscall.SIGKILL)
	return err
}

// PID is its process's number.
func (p *Program) PID() int { return p.process.pid }

// Ended is nil while the process runs; then an error with how it ended and the end of its log.
func (p *Program) Ended() error {
	if p.process.alive() {
		return nil
	}
	return errors.Join(fmt.Errorf("%s ended: %w", p.process.name, p.process.err),
		tailError(p.LogFile))
}

// Close kills the process and removes its files. It may be called again.
func (p *Program) Close() error {
	return errors.Join(p.process.kill(), removeRunDir(p.dir))
}
