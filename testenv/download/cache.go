// Package download keeps what the servers of testenv are made of in a cache outside of the repository:
// PostgreSQL's binaries, the jars of Kafka and the registry, data directories. Everything in it is
// checked by digest each time it is used, and fetched once: a second run works without a network.
package download

import (
	"archive/tar"
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
)

// manifestName is the file of a cached tree that lists the digest of every other file in it. It is
// written last: a tree without it is an interrupted download, and is made again.
const manifestName = "MANIFEST.sha256"

// Dir returns the directory that downloads are kept in: TIDEMARK_CACHE where it is set;
// for root a directory that the unprivileged user of the servers can read too, since root's home
// is closed to it; else the user's cache directory.
func Dir() (string, error) {
	if dir := os.Getenv("TIDEMARK_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	if os.Geteuid() == 0 {
		return "/var/cache/tidemark", nil
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache directory: %w; set TIDEMARK_CACHE to a directory", err)
	}
	return filepath.Join(base, "tidemark"), nil
}

// Tree returns the directory of the cache named name. It is filled by fill if it is not there
// or if a file in it differs from its recorded digest. Processes that want the same tree
// wait for each other.
func Tree(name string, fill func(dir string) error) (string, error) {
	root, err := Dir()
	if err != nil {
		return "", err
	}
	if err := makeReadable(root); err != nil {
		return "", err
	}
	final := filepath.Join(root, name)
	if err := makeReadable(filepath.Dir(final)); err != nil {
		return "", err
	}
	unlock, err := lockFile(final + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if verifyManifest(final) == nil {
		return final, nil
	}
	// A name that only this process uses, as the lock is held; what an interrupted run left goes.
	partial := final + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return "", err
	}
	if err := os.MkdirAll(partial, 0o755); err != nil {
		return "", err
	}
	if err := fill(partial); err != nil {
		return "", errors.Join(err, os.RemoveAll(partial))
	}
	if err := writeManifest(partial); err != nil {
		return "", err
	}
	if err := os.RemoveAll(final); err != nil {
		return "", err
	}
	return final, os.Rename(partial, final)
}

// makeReadable makes dir, open to other users, and checks that they can reach it where the servers
// run as one.
func makeReadable(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if os.Geteuid() == 0 && !OthersCanEnter(dir) {
		return fmt.Errorf("%s cannot be entered by the unprivileged user that the servers run as; "+
			"set TIDEMARK_CACHE to a directory that every user can enter", dir)
	}
	return nil
}

// OthersCanEnter reports whether dir and all its parents have the search permission for others.
func OthersCanEnter(dir string) bool {
	for {
		info, err := os.Stat(dir)
		if err != nil || info.Mode()&0o001 == 0 {
			return false
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return true
		}
		dir = parent
	}
}

// lockFile takes an exclusive lock that ends with the process at the latest.
func lockFile(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}

// Digests returns the lines of the manifest of dir: digest, two spaces, path; sorted by path.
func Digests(dir string) ([]string, error) {
	var lines []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil || rel == manifestName {
			return err
		}
		sum, err := fileDigest(path)
		lines = append(lines, sum+"  "+filepath.ToSlash(rel))
		return err
	})
	sort.Slice(lines, func(i, j int) bool { return lines[i][66:] < lines[j][66:] })
	return lines, err
}

func fileDigest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func writeManifest(dir string) error {
	lines, err := Digests(dir)
	if err != nil {
		return err
	}
	if len(lines) == 0 {
		return fmt.Errorf("nothing was downloaded to %s", dir)
	}
	text := strings.Join(lines, "\n") + "\n"
	return os.WriteFile(filepath.Join(dir, manifestName), []byte(text), 0o644)
}

// verifyManifest compares every file of dir with the manifest written when it was downloaded.
func verifyManifest(dir string) error {
	want, err := os.ReadFile(filepath.Join(dir, manifestName))
	if err != nil {
		return err
	}
	got, err := Digests(dir)
	if err != nil {
		return err
	}
	scan := bufio.NewScanner(bytes.NewReader(want))
	for _, line := range got {
		if !scan.Scan() || scan.Text() != line {
			return fmt.Errorf("%s: digest differs from the manifest: %s", dir, line)
		}
	}
	if scan.Scan() {
		return fmt.Errorf("%s: file of the manifest is missing: %s", dir, scan.Text())
	}
	return nil
}

// Unpack writes the files and symbolic links of a tar archive into dir: readable by every user,
// executable where they are, whatever this process's umask is.
func Unpack(plain io.Reader, dir string) error {
	root, err := os.OpenRoot(dir) // no entry leads out of it
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	archive := tar.NewReader(plain)
	for {
		entry, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = unpackEntry(root, entry, archive)
		}
		if err != nil {
			return err
		}
	}
}

func unpackEntry(root *os.Root, entry *tar.Header, text io.Reader) error {
	name := filepath.Clean(entry.Name)
	if entry.Typeflag != tar.TypeReg && entry.Typeflag != tar.TypeSymlink {
		return nil // directories are made for the files in them
	}
	if err := makeDirs(root, filepath.Dir(name)); err != nil {
		return err
	}
	if entry.Typeflag == tar.TypeSymlink {
		return root.Symlink(entry.Linkname, name)
	}
	f, err := root.Create(name)
	if err != nil {
		return err
	}
	mode := os.FileMode(0o644)
	if entry.Mode&0o100 != 0 {
		mode = 0o755
	}
	_, err = io.Copy(f, text)
	return errors.Join(err, f.Chmod(mode), f.Close())
}

// makeDirs makes dir and its parents in root, open to other users.
func makeDirs(root *os.Root, dir string) error {
	if dir == "." {
		return nil
	}
	if err := makeDirs(root, filepath.Dir(dir)); err != nil {
		return err
	}
	if err := root.Mkdir(dir, 0o755); err != nil {
		if errors.Is(err, os.ErrExist) {
			return nil
		}
		return err
	}
	return root.Chmod(dir, 0o755)
}
