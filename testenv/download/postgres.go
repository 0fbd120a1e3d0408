package download

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"runtime"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/xi2/xz"
)

// A postgresRelease is the minor release that stands for a major version, with the digest of its
// archive where it was recorded by us. On other platforms the digest that the repository
// publishes beside the archive has to do.
type postgresRelease struct {
	version    string
	linuxAMD64 string // SHA-256 of the .txz inside of the published jar
}

var postgresReleases = map[string]postgresRelease{
	"14": {"14.23.0", "521d8dcd067ee0bbb934d671cffadf67cb82a32643470ea4171d83d9c97220a9"},
	"15": {"15.18.0", "bf6ea2fab84d3d8afa3e584be2ab297aa6b507133122ab0067b6f34db47d6ae5"},
	"16": {"16.14.0", "77eac54dd8e936ca817420c59c6251e5a07c1ad140941270999c18126c027c02"},
	"17": {"17.10.0", "98649a7d5402ad699e7d8061a955e376dc02eed5b28d149e20ac596c5f5cba0d"},
	"18": {"18.4.0", "a5bd167846d36838e24bf43afe0b89e4bee5deab88b300e8bb796bf8f5ac08b2"},
}

// PostgresVersions lists the major versions that there are, oldest first.
func PostgresVersions() []string {
	versions := make([]string, 0, len(postgresReleases))
	for major := range postgresReleases {
		versions = append(versions, major)
	}
	sort.Strings(versions)
	return versions
}

// PostgresRelease is the release that stands for a major version, such as 18.4.0.
func PostgresRelease(major string) string { return postgresReleases[major].version }

// binaries remembers what this process has verified already: hashing takes a tenth of a second.
var binaries struct {
	sync.Mutex
	dirs map[string]string
}

// Postgres returns the directory with bin, lib and share of a major version.
func Postgres(major string) (string, error) {
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
	dir, err := Tree(name, func(dir string) error { return fetchPostgres(release, dir) })
	if err != nil {
		return "", fmt.Errorf("PostgreSQL %s: %w", release.version, err)
	}
	if binaries.dirs == nil {
		binaries.dirs = map[string]string{}
	}
	binaries.dirs[major] = dir
	return dir, nil
}

// postgresArchives is where the binaries are published, for many platforms: the files of an ordinary
// installation as a .txz in a jar.
const postgresArchives = "https://repo1.maven.org/maven2/io/zonky/test/postgres/embedded-postgres-binaries-"

// largestArchive bounds a download: the archives have 10 to 20 MB.
const largestArchive = 200 << 20

// fetchPostgres downloads and unpacks a release into dir.
func fetchPostgres(release postgresRelease, dir string) error {
	client := &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
		Timeout:   10 * time.Minute,
	}
	platform := postgresPlatform()
	url := fmt.Sprintf("%s%s/%s/embedded-postgres-binaries-%[2]s-%[3]s.jar", postgresArchives, platform,
		release.version)
	jar, err := download(client, url)
	if err != nil {
		return err
	}
	archive, err := archiveOf(jar)
	if err != nil {
		return fmt.Errorf("%s: %w", url, err)
	}
	if platform == "linux-amd64" {
		err = sameDigest(url, archive, release.linuxAMD64)
	} else {
		var published []byte
		if published, err = download(client, url+".sha256"); err == nil {
			err = sameDigest(url, jar, strings.TrimSpace(string(published)))
		}
	}
	if err != nil {
		return err
	}
	plain, err := xz.NewReader(bytes.NewReader(archive), 0)
	if err != nil {
		return err
	}
	return Unpack(plain, dir)
}

// postgresPlatform is this machine's name in the addresses of the archives.
func postgresPlatform() string {
	arch := runtime.GOARCH
	if arch == "arm64" {
		arch = "arm64v8"
	}
	if _, err := os.Stat("/etc/alpine-release"); err == nil {
		arch += "-alpine" // another C library
	}
	return runtime.GOOS + "-" + arch
}

func download(client *http.Client, url string) ([]byte, error) {
	resp, err := client.Get(url)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, resp.Status)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, largestArchive+1))
	if err == nil && len(body) > largestArchive {
		err = fmt.Errorf("%s: more than %d MB", url, largestArchive>>20)
	}
	return body, err
}

// archiveOf returns the .txz in a jar.
func archiveOf(jar []byte) ([]byte, error) {
	files, err := zip.NewReader(bytes.NewReader(jar), int64(len(jar)))
	if err != nil {
		return nil, err
	}
	for _, file := range files.File {
		if path.Ext(file.Name) != ".txz" {
			continue
		}
		r, err := file.Open()
		if err != nil {
			return nil, err
		}
		defer func() { _ = r.Close() }()
		return io.ReadAll(io.LimitReader(r, largestArchive))
	}
	return nil, errors.New("no .txz in it")
}

func sameDigest(url string, data []byte, want string) error {
	sum := sha256.Sum256(data)
	if got := hex.EncodeToString(sum[:]); got != want {
		return fmt.Errorf("%s: digest is %s, wanted %s", url, got, want)
	}
	return nil
}
