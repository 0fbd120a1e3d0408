package cases_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// Writers from before the start to after the snapshot, a transaction that is open all the while, a
// column that comes in between: the topic folds to the table.
func TestF62K29HandOver(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.exec(`CREATE TABLE t(id int PRIMARY KEY, v int)`,
			`INSERT INTO t SELECT g, 0 FROM generate_series(1,20000) g`)
		stop := make(chan struct{})
		const writers = 4
		done := make(chan error, writers)
		for w := range writers {
			go func() { done <- r.write(w, stop) }()
		}
		run := r.start()
		r.until(run, "the snapshot is under way", func() bool {
			return strings.Contains(r.log.String(), "reading a table")
		})
		long, err := r.pg.Connect(t.Context(), r.db)
		if err != nil {
			t.Fatal(err)
		}
		defer long.Close(context.Background())
		for _, sql := range []string{
			`BEGIN`, `INSERT INTO t VALUES (-1, 1)`, `UPDATE t SET v = 99 WHERE id = 20000`,
		} {
			if _, err := long.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
		r.until(run, "streaming", func() bool { return run.c.Status().State == "streaming" })
		if _, err := long.Exec(t.Context(), `COMMIT`); err != nil {
			t.Fatal(err)
		}
		r.exec(`ALTER TABLE t ADD COLUMN n int`, `UPDATE t SET n = 7 WHERE id <= 20000 AND id % 100 = 0`)
		close(stop)
		for range writers {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		r.exec(`UPDATE t SET v = v`) // every row once more has the column that came
		r.foldsTo(run, "t", `SELECT format('{id:%s n:%s v:%s}', id, coalesce(n::text, '-'), v) FROM t`)
		r.clean(run)
	})
}

// write changes rows of its own number until stop: inserts, updates, deletes, and changes of key.
func (r *rig) write(w int, stop chan struct{}) error {
	conn, err := r.pg.Connect(context.Background(), r.db)
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	for i := 0; ; i++ {
		select {
		case <-stop:
			return nil
		default:
		}
		id := w + 4*(i%4000) // below 20000, of which each writer has every fourth
		for _, sql := range []string{
			fmt.Sprintf(`UPDATE t SET v = v + 1 WHERE id = %d`, id),
			fmt.Sprintf(`UPDATE t SET id = id + 100000 WHERE id = %d`, id+4),
			fmt.Sprintf(`DELETE FROM t WHERE id = %d`, id+8),
			fmt.Sprintf(`INSERT INTO t(id, v) VALUES (%d, %d) ON CONFLICT DO NOTHING`, id+8, i),
		} {
			if _, err := conn.Exec(context.Background(), sql); err != nil {
				return err
			}
		}
	}
}

// Kills amid a snapshot: TestF02ASnapshotThatWasInterruptedBeginsAgain and testenv/proof. Here:
// limits that a role has for its sessions end neither snapshot nor stream, however long those take.
func TestK30LimitsOfTheRole(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.keys["max.queue.bytes"] = "1048576"
		r.exec(`CREATE TABLE t(id int PRIMARY KEY, v text)`, `CREATE TABLE z(id int PRIMARY KEY)`,
			`INSERT INTO t SELECT g, repeat('x', 500) FROM generate_series(1,5000) g`)
		limits := []string{
			"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout",
			"idle_session_timeout",
		}
		if r.major >= 17 {
			limits = append(limits, "transaction_timeout")
		}
		for _, name := range limits {
			r.exec(`ALTER DATABASE ` + r.db + ` SET ` + name + ` = '1s'`)
		}
		release := r.refuseAfter(100)
		run := r.start()
		time.Sleep(2500 * time.Millisecond) // longer than every limit, in the snapshot
		release()
		r.until(run, "streaming", func() bool { return run.c.Status().State == "streaming" })
		pid := r.walsender()
		release = r.refuseAfter(100)
		r.exec(`INSERT INTO t SELECT g, repeat('x', 500) FROM generate_series(5001,10000) g`)
		time.Sleep(2500 * time.Millisecond) // and amid a transaction of the stream
		release()
		r.exec(`INSERT INTO z VALUES (1)`) // asks the catalog, on a session that was idle
		if n := len(ids(r.drain(run, "t"))); n != 10000 {
			t.Errorf("%d of 10000 rows", n)
		}
		if got := ops(r.read(r.topic("z"))); got != "c" {
			t.Errorf("table z: %q", got)
		}
		if log := r.log.String(); strings.Contains(log, "another one begins") || r.walsender() != pid {
			t.Errorf("a limit ended a session:\n%s", log)
		}
		r.clean(run)
	})
}

// A record that says nothing of its snapshot is not taken for one whose snapshot is done; a table
// that was made again under the same name is another table.
func TestF02K30InterruptedSnapshotIsNotDone(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.exec(`CREATE TABLE a(id int PRIMARY KEY)`, `CREATE TABLE b(id int PRIMARY KEY, v int)`,
			`INSERT INTO a SELECT generate_series(1,2000)`,
			`INSERT INTO b SELECT g, 1 FROM generate_series(1,2000) g`)
		release := r.refuseAfter(2500)
		run := r.start()
		r.until(run, "the second table is under way", func() bool {
			return len(r.read(r.topic("b"))) > 0 || strings.Contains(r.log.String(), "table=public.b")
		})
		run.stop()
		release()
		r.exec(`DELETE FROM a WHERE id <= 10`, `DROP TABLE b`,
			`CREATE TABLE b(id int PRIMARY KEY, w int)`, `ALTER PUBLICATION tidemark ADD TABLE b`,
			`INSERT INTO b SELECT g, 2 FROM generate_series(1,5) g`)
		run = r.streaming()
		if n := len(fold(t, r.drain(run, "a"))); n != 1990 {
			t.Errorf("table a folds to %d rows, want 1990", n)
		}
		r.clean(run)
	})
}
