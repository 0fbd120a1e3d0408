package testenv

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"sync"
	"syscall"

	"github.com/tidemark-cdc/tidemark/testenv/download"
)

// runDirs are the directories of the servers of this process, and the janitor that removes them
// when this process ends without having done so.
//
// The janitor is a shell that reads from a pipe which only this process holds open for writing. The
// pipe ends when the process does, however that happens; the shell then kills what the .pid files
// name and removes the directories. It lives as long as there is a directory.
var runDirs struct {
	sync.Mutex
	paths   map[string]struct{}
	janitor *exec.Cmd
	pipe    io.Closer
}

// janitorScript gets the common prefix of this process's directories as $1. SIGQUIT lets PostgreSQL
// end its children and free its shared memory (on Linux the kernel has sent it already); who still
// runs after three seconds is killed. A server that is being killed may still write: the
// removal is tried again until nothing is left, for ten seconds.
const janitorScript = `
each() {
	for file in "$prefix"*/*.pid; do
		[ -f "$file" ] && kill "$1" "$(cat "$file")" 2>/dev/null && found=yes
	done
}
prefix=$1
while read -r line; do :; done
each -QUIT
tries=0
while found=no; each -0; [ $found = yes ] && [ $tries -lt 30 ]; do
	tries=$((tries + 1))
	sleep 0.1
done
each -KILL
for file in "$prefix"*/data/postmaster.pid; do
	[ -f "$file" ] && set -- $(sed -n 7p "$file") && [ $# = 2 ] && ipcrm -m "$2" 2>/dev/null
done
tries=0
while [ $tries -lt 100 ]; do
	rm -rf "$prefix"* && exit 0
	tries=$((tries + 1))
	sleep 0.1
done
`

// newRunDir makes a directory for a server, which other users can enter but not list.
func newRunDir(kind string) (string, error) {
	runDirs.Lock()
	defer runDirs.Unlock()
	prefix := filepath.Join(tempBase(), fmt.Sprintf("tidemark-%d-", os.Getpid()))
	if runDirs.janitor == nil {
		if err := startJanitor(prefix); err != nil {
			return "", err
		}
	}
	dir, err := os.MkdirTemp(filepath.Dir(prefix), filepath.Base(prefix)+kind+"-")
	if err != nil {
		return "", errors.Join(err, stopJanitorIfIdle())
	}
	if runDirs.paths == nil {
		runDirs.paths = map[string]struct{}{}
	}
	runDirs.paths[dir] = struct{}{}
	return dir, os.Chmod(dir, 0o711)
}

// tempBase is the temporary directory, or /tmp where the servers' user could not enter that one.
func tempBase() string {
	if dir := os.TempDir(); os.Geteuid() != 0 || download.OthersCanEnter(dir) {
		return dir
	}
	return "/tmp"
}

func startJanitor(prefix string) error {
	cmd := exec.Command("/bin/sh", "-c", janitorScript, "tidemark-janitor", prefix)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the janitor of temporary directories: %w", err)
	}
	runDirs.janitor, runDirs.pipe = cmd, pipe
	return nil
}

// stopJanitorIfIdle ends the janitor when the last directory is gone; runDirs must be locked.
func stopJanitorIfIdle() error {
	if len(runDirs.paths) > 0 || runDirs.janitor == nil {
		return nil
	}
	err := errors.Join(runDirs.pipe.Close(), runDirs.janitor.Wait())
	runDirs.janitor, runDirs.pipe = nil, nil
	return err
}

// removeRunDir removes a directory of newRunDir with all that is in it.
func removeRunDir(dir string) error {
	runDirs.Lock()
	defer runDirs.Unlock()
	if _, ok := runDirs.paths[dir]; !ok {
		return nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove the files of a stopped server: %w", err)
	}
	delete(runDirs.paths, dir)
	return stopJanitorIfIdle()
}

// Remaining names the processes and directories of this package that are still there. It is empty
// after everything that was started has been closed.
func Remaining() []string {
	left := liveProcesses()
	runDirs.Lock()
	defer runDirs.Unlock()
	for dir := range runDirs.paths {
		left = append(left, "directory "+dir)
	}
	sort.Strings(left)
	return left
}
