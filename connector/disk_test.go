package connector_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// The server's disk is full, kept so by the slot of a connector whose broker takes nothing: the
// server goes down, the connector waits for it, and goes on where it was once there is room.
func TestF61TheServersDiskIsFull(t *testing.T) {
	t.Parallel()
	if os.Getenv("TIDEMARK_TEST_ALL") == "" {
		t.Skip("TIDEMARK_TEST_ALL is not set")
	}
	eachMode(t, func(t *testing.T, set func(*rig) *rig) {
		disk := smallDisk(t) // before the server, which is stopped first then
		pg := ownServer(t, "18", map[string]string{"max_wal_size": "32MB", "min_wal_size": "32MB"})
		r := set(newRigOn(t, pg))
		r.whileDown(func() error {
			wal := filepath.Join(pg.DataDir, "pg_wal")
			return exec.Command("sh", "-c", `chown --reference="$1" "$2" && cp -a "$1"/. "$2" &&
				rm -r "$1" && ln -s "$2" "$1"`, "sh", wal, disk).Run()
		})
		r.exec(numbers)
		run := r.start()
		r.streaming(run)
		release := r.holdEvents()
		rows := 0
		for full := false; !full; {
			_, err := r.sql.Exec(t.Context(), "INSERT INTO t SELECT g, repeat(md5(g::text), 8) "+
				"FROM generate_series($1::int, $1::int + 9999) g", rows+1)
			if full = err != nil; !full {
				rows += 10_000
			}
			if rows > 2_000_000 {
				t.Fatal("the disk is not full")
			}
		}
		r.sql.Close(t.Context())
		release()
		r.until("it waits for the server", func() bool {
			e := run.c.Status().Error
			return e != nil && e.Code == fault.PostgresUnreachable
		})
		if out, err := exec.Command("mount", "-o", "remount,size=1g", disk).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		_ = pg.Kill() // it may have given up by itself, or try again and again
		if err := pg.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		var err error
		if r.sql, err = pg.Connect(t.Context(), r.db); err != nil {
			t.Fatal(err)
		}
		conn := r.sql
		t.Cleanup(func() { conn.Close(t.Context()) })
		r.exec(insertNumbers(rows+1, rows+10))
		r.streaming(run)
		r.caughtUp(run)
		r.clean(run)
		r.complete(rows + 10)
	})
}

// smallDisk mounts a file system of 100 MB, which needs root's rights.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "tidemark-disk-") // t.TempDir is closed to the server's user
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(dir) })
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=100m", "none", dir).
		CombinedOutput(); err != nil {
		t.Skipf("no file system can be mounted: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	return dir
}
