package testenv

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/tidemark-cdc/tidemark/testenv/download"
)

// initdbArguments make the template; a change of them needs a change of templateRevision.
var initdbArguments = []string{
	"--username=postgres", "--encoding=UTF8", "--locale=C", "--no-sync",
	"--auth-host=scram-sha-256", "--auth-local=reject",
}

// A password of ours costs one round of hashing, not 4096, in server and client alike; before 16 a
// server does not know the setting.
var cheapPasswords = []string{"--set=scram_iterations=1"}

const (
	templateRevision = "3"
	postgresPassword = "tidemark"
)

// serverUser is the user that PostgreSQL runs as: root's processes run as nobody, since the
// server refuses root; everybody else's as themselves (nil).
func serverUser() *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	// The number that Linux and the BSDs use where the name is missing, as in small containers.
	cred := &syscall.Credential{Uid: 65534, Gid: 65534}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		return cred
	}
	uid, uidErr := strconv.ParseUint(nobody.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(nobody.Gid, 10, 32)
	if uidErr == nil && gidErr == nil {
		cred.Uid, cred.Gid = uint32(uid), uint32(gid)
	}
	return cred
}

// giveTo makes path the property of the servers' user.
func giveTo(cred *syscall.Credential, path string) error {
	if cred == nil {
		return nil
	}
	return os.Lchown(path, int(cred.Uid), int(cred.Gid))
}

// templates holds the lock under which this process makes a template, and what it has made.
var templates struct {
	sync.Mutex
	dirs map[string]string
}

// postgresTemplate returns a data directory of that version, made by initdb once for each user and
// then kept in the cache: a copy of it takes a tenth of the time.
func postgresTemplate(major, binDir string) (string, error) {
	templates.Lock()
	defer templates.Unlock()
	if dir := templates.dirs[major]; dir != "" {
		return dir, nil
	}
	name := fmt.Sprintf("template/%s-%s-%s-uid%d-%s", download.PostgresRelease(major),
		runtime.GOOS, runtime.GOARCH, os.Geteuid(), templateRevision)
	args := initdbArguments
	if major >= "16" {
		args = append(slices.Clone(args), cheapPasswords...)
	}
	dir, err := download.Tree(name, func(dir string) error { return runInitdb(binDir, dir, args) })
	if err != nil {
		return "", fmt.Errorf("template of PostgreSQL %s: %w", major, err)
	}
	if templates.dirs == nil {
		templates.dirs = map[string]string{}
	}
	templates.dirs[major] = filepath.Join(dir, "data")
	return templates.dirs[major], nil
}

// runInitdb makes dir/data.
func runInitdb(binDir, dir string, more []string) (err error) {
	cred := serverUser()
	passwordFile := filepath.Join(dir, "password")
	if err := os.WriteFile(passwordFile, []byte(postgresPassword), 0o600); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(passwordFile)) }()
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	if err := errors.Join(giveTo(cred, passwordFile), giveTo(cred, data)); err != nil {
		return err
	}
	args := append([]string{"--pgdata=" + data, "--pwfile=" + passwordFile}, more...)
	cmd := exec.Command(filepath.Join(binDir, "bin", "initdb"), args...)
	cmd.Dir = dir
	cmd.Env = serverEnvironment()
	if cred != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	include := "include '" + configurationFile + "'\n"
	return writeAs(cred, filepath.Join(data, "postgresql.conf"), include, os.O_APPEND)
}

// writeAs writes a file that belongs to the servers' user.
func writeAs(cred *syscall.Credential, path, text string, flag int) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|flag, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close(), giveTo(cred, path)) }()
	_, err = f.WriteString(text)
	return err
}

// serverEnvironment is this process's environment without what would change a server's behaviour.
func serverEnvironment() []string {
	env := []string{"LC_ALL=C", "TZ=UTC"}
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "PG") && !strings.HasPrefix(entry, "LC_") &&
			!strings.HasPrefix(entry, "LANG") && !strings.HasPrefix(entry, "TZ=") {
			env = append(env, entry)
		}
	}
	return env
}

// copyTree copies a data directory, with permissions, to a path that does not exist yet, but for the
// paths below it for which skip is true (nil: all). A file that vanishes meanwhile, as those of a
// running server do, is left out.
func copyTree(from, to string, cred *syscall.Credential, skip func(rel string) bool) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path != from {
			return nil
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if skip != nil && skip(rel) {
			return nil
		}
		target := filepath.Join(to, rel)
		info, err := entry.Info()
		if err == nil && entry.IsDir() {
			err = os.Mkdir(target, info.Mode().Perm())
		} else if err == nil {
			err = copyFile(path, target, info.Mode().Perm())
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return errors.Join(err, giveTo(cred, target))
	})
}

func copyFile(from, to string, mode fs.FileMode) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = out.ReadFrom(in)
	return err
}
