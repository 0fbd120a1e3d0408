package connector_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// What an update leaves out of the log is read from the table, by the row's identity, for each
// shape that identity has.
var rereadCases = map[string]imageCase{
	"default": {
		make: toast("t", "SELECT 1"),
		act: []string{
			"UPDATE t SET v = 2", "BEGIN; UPDATE t SET v = 3; UPDATE t SET v = 4; COMMIT",
			"UPDATE t SET id = 9", "BEGIN; UPDATE t SET v = 5; DELETE FROM t; COMMIT",
		},
		want: []string{
			"r NOT_APPLICABLE {id:1} {big:<9600> id:1 v:1}", "u ABSENT {id:1} {big:~<9600> id:1 v:2}",
			"u ABSENT {id:1} {big:~<9600> id:1 v:3}", "u ABSENT {id:1} {big:~<9600> id:1 v:4}",
			"d KEY {id:1} old{id:1}", "x {id:1}", "c KEY {id:9} {big:~<9600> id:9 v:4} old{id:1}",
			"u ABSENT {id:9} {big:? id:9 v:5}", "d KEY {id:9} old{id:9}", "x {id:9}",
		},
	},
	// A value that was set in the same transaction is there before others see it.
	"set in the same transaction": {
		make: toast("t", "SELECT 1"),
		act: []string{
			"BEGIN; UPDATE t SET big = big || 'x'; UPDATE t SET v = 2; COMMIT",
			"BEGIN; INSERT INTO t VALUES (2, 1, " + big + "); UPDATE t SET v = 3 WHERE id = 2; COMMIT",
		},
		want: []string{
			"r NOT_APPLICABLE {id:1} {big:<9600> id:1 v:1}",
			"u ABSENT {id:1} {big:<9601> id:1 v:1}", "u ABSENT {id:1} {big:~<9601> id:1 v:2}",
			"c NOT_APPLICABLE {id:2} {big:<9600> id:2 v:1}", "u ABSENT {id:2} {big:~<9600> id:2 v:3}",
		},
	},
	"index, quoted, several columns": {
		make: []string{
			`CREATE TABLE t (id int PRIMARY KEY, "B b" text NOT NULL, a date NOT NULL, big text)`,
			`CREATE UNIQUE INDEX t_k ON t (a, "B b")`, "ALTER TABLE t REPLICA IDENTITY USING INDEX t_k",
			"ALTER TABLE t ALTER big SET STORAGE EXTERNAL",
			`INSERT INTO t VALUES (1, 'q"''\', '2000-01-01', ` + big + `), (2, 'x', '2000-01-01', 'small')`,
		},
		act: []string{"UPDATE t SET id = 7 WHERE id = 1", "UPDATE t SET a = '2001-01-01' WHERE id = 7"},
		want: []string{
			`r NOT_APPLICABLE {B_x0020_b:q"'\ a:2000-01-01 00:00:00 +0000 UTC} ` +
				`{B_x0020_b:q"'\ a:2000-01-01 00:00:00 +0000 UTC big:<9600> id:1}`,
			`r NOT_APPLICABLE {B_x0020_b:x a:2000-01-01 00:00:00 +0000 UTC} ` +
				`{B_x0020_b:x a:2000-01-01 00:00:00 +0000 UTC big:small id:2}`,
			`u ABSENT {B_x0020_b:q"'\ a:2000-01-01 00:00:00 +0000 UTC} ` +
				`{B_x0020_b:q"'\ a:2000-01-01 00:00:00 +0000 UTC big:~<9600> id:7}`,
			`d KEY {B_x0020_b:q"'\ a:2000-01-01 00:00:00 +0000 UTC} ` +
				`old{B_x0020_b:q"'\ a:2000-01-01 00:00:00 +0000 UTC}`,
			`x {B_x0020_b:q"'\ a:2000-01-01 00:00:00 +0000 UTC}`,
			`c KEY {B_x0020_b:q"'\ a:2001-01-01 00:00:00 +0000 UTC} ` +
				`{B_x0020_b:q"'\ a:2001-01-01 00:00:00 +0000 UTC big:~<9600> id:7} ` +
				`old{B_x0020_b:q"'\ a:2000-01-01 00:00:00 +0000 UTC}`,
		},
	},
	// The key is taken from the old tuple, the other value from the table.
	"key out of line": {
		make: []string{
			"CREATE TABLE t (k text PRIMARY KEY, v int, big text)",
			"ALTER TABLE t ALTER k SET STORAGE EXTERNAL, ALTER big SET STORAGE EXTERNAL",
			"INSERT INTO t VALUES ((SELECT string_agg(md5(g::text), '') " +
				"FROM generate_series(1, 78) g), 1, " + big + ")",
		},
		act: []string{"UPDATE t SET v = 2"},
		want: []string{
			"r NOT_APPLICABLE {k:<2496>} {big:<9600> k:<2496> v:1}",
			"u KEY {k:<2496>} {big:~<9600> k:<2496> v:2} old{k:<2496>}",
		},
	},
	"root full, a leaf default": {
		root: true,
		make: []string{
			partitioned, "ALTER TABLE p ALTER v SET STORAGE EXTERNAL",
			"ALTER TABLE p1 ALTER v SET STORAGE EXTERNAL", "ALTER TABLE p2 ALTER v SET STORAGE EXTERNAL",
			"ALTER TABLE p REPLICA IDENTITY FULL", "ALTER TABLE p1 REPLICA IDENTITY FULL",
			"ALTER TABLE p ADD n int",
			"INSERT INTO p (id, k, v) VALUES (1, 1, " + big + "), (2, 12, " + big + ")",
		},
		act: []string{"UPDATE p SET n = 7 WHERE id = 2", "UPDATE p SET n = 8 WHERE id = 1"},
		want: []string{
			"r NOT_APPLICABLE {id:1 k:1} {id:1 k:1 n:- v:<9600>}",
			"r NOT_APPLICABLE {id:2 k:12} {id:2 k:12 n:- v:<9600>}",
			"u ABSENT {id:2 k:12} {id:2 k:12 n:7 v:~<9600>}",
			"u KEY {id:1 k:1} {id:1 k:1 n:8 v:<9600>} old{id:1 k:1}",
		},
	},
	// A value that its type cannot hold is that, wherever it was read.
	"unrepresentable": {
		make: []string{
			"CREATE TABLE t (id int PRIMARY KEY, v int, big int[])",
			"ALTER TABLE t ALTER big SET STORAGE EXTERNAL",
			"INSERT INTO t SELECT 1, 1, array_agg(ARRAY[g, 7]) FROM generate_series(1, 9000) g",
		},
		act: []string{"UPDATE t SET v = 2"},
		want: []string{
			"r NOT_APPLICABLE {id:1} {big:!TEXT id:1 v:1}", "u ABSENT {id:1} {big:~!TEXT id:1 v:2}",
		},
	},
}

func TestValuesAreReadAgain(t *testing.T) {
	t.Parallel()
	for name, c := range rereadCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onVersions(t, func(t *testing.T, r *rig) {
				r.onePartition()
				table := "t"
				if c.root {
					r.extra["publish.via.partition.root"] = "true"
					table = "p"
				}
				r.exec(c.make...)
				run := r.start()
				r.streaming(run)
				for _, sql := range c.act { // each is read before the next changes it
					r.exec(sql)
					r.caughtUp(run)
				}
				r.clean(run)
				got := lines(r.all("shop.public." + table))
				if name == "unrepresentable" {
					for i := range got {
						got[i] = strings.ReplaceAll(got[i], r.query("SELECT big::text FROM t"), "TEXT")
					}
				}
				same(t, got, c.want)
			})
		})
	}
}

// What came behind a row that is read again comes behind it in the topic too, and everything is
// counted.
func TestRereadingKeepsTheOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.onePartition()
	r.exec(append(toast("t", "SELECT 1"), "CREATE TABLE gone (id int PRIMARY KEY, v int, big text)",
		"ALTER TABLE gone ALTER big SET STORAGE EXTERNAL",
		"INSERT INTO t SELECT i, 1, "+big+" FROM generate_series(2, 400) i",
		"INSERT INTO gone SELECT i, 1, "+big+" FROM generate_series(1, 20) i")...)
	run := r.start()
	r.streaming(run)
	r.exec(`DO $$ BEGIN FOR i IN 1..400 LOOP
			UPDATE t SET v = v + 1 WHERE id = i;
			INSERT INTO t VALUES (1000 + i, 0, 'small');
			IF i % 20 = 0 THEN UPDATE gone SET v = v + 1 WHERE id = i / 20; END IF;
		END LOOP; DELETE FROM gone; END $$`,
		"UPDATE t SET v = v + 1 WHERE id % 7 = 0", "DELETE FROM t WHERE id = 1")
	r.caughtUp(run)
	failures := metric(t, run, "tidemark_reselect_failures_total")
	unavailable := metric(t, run, "tidemark_unavailable_values_total")
	reread := metric(t, run, "tidemark_reselected_total")
	r.clean(run)
	last, updates, states := "", 0, 0
	for _, e := range r.all("shop.public.t")[400:] {
		lsn, _ := strconv.ParseUint(e.headers["tidemark.commit_lsn"], 10, 64)
		index, _ := strconv.Atoi(e.headers["tidemark.event_index"])
		if at := fmt.Sprintf("%020d/%09d", lsn, index); at < last {
			t.Fatalf("%s comes behind %s", at, last)
		} else {
			last = at
		}
		if e.op() == "u" {
			updates++
			if strings.Contains(e.String(), "big:~<9600>") {
				states++
			}
		}
	}
	// Of 457 rows whose value was not in the log row 1 may be deleted by the time that it is read.
	if updates != 400+115 || states < 456 {
		t.Errorf("%d updates, %d read again", updates, states)
	}
	if unavailable != float64(20+457-states) || failures != unavailable || reread != float64(states) {
		t.Errorf("counted %g unavailable, %g failures, %g read again", unavailable, failures, reread)
	}
	if n := strings.Count(r.log.String(), "unchanged TOAST values were not in the log"); n != 2 {
		t.Errorf("%d warnings, want one a table:\n%s", n, r.log.String())
	}
	contains(t, r.log.String(), `ALTER TABLE \"public\".\"t\" REPLICA IDENTITY FULL`)
}

// A source transaction that is split over several Kafka transactions and a restart has each of its
// events once.
func TestRereadingExactlyOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.onePartition()
	r.exactlyOnce(40_000) // four events
	r.exec(append(toast("t", "SELECT 1"),
		"INSERT INTO t SELECT i, 1, "+big+" FROM generate_series(2, 60) i")...)
	run := r.start()
	r.streaming(run)
	r.exec("BEGIN; UPDATE t SET v = 2; UPDATE t SET id = id + 100 WHERE id > 50; COMMIT")
	r.until("a part of the transaction is stored", func() bool { return r.record().EventIndex > 0 })
	r.clean(run)
	run = r.start()
	r.streaming(run)
	r.caughtUp(run)
	r.clean(run)
	ops := map[string]int{}
	for _, e := range r.once("shop.public.t") {
		op := e.op()
		if op == "u" || op == "c" {
			op += fmt.Sprint(strings.Contains(e.String(), "big:~<9600>"))
		}
		ops[op]++
	}
	// The first update of a row whose key changes later finds no such row.
	want := map[string]int{"r": 60, "utrue": 50, "ufalse": 10, "d": 10, "tombstone": 10, "ctrue": 10}
	for op, n := range want {
		if ops[op] != n {
			t.Errorf("%v, want %v", ops, want)
			break
		}
	}
}

// A table that is locked is waited for two seconds, of which /readyz tells; then the stream goes on.
func TestALockedTableIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.onePartition()
	r.exec(toast("t", "SELECT 1")...)
	run := r.start()
	r.streaming(run)
	r.exec("BEGIN; UPDATE t SET v = 2")
	locker, err := r.pg.Connect(t.Context(), r.db)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = locker.Close(context.Background()) }()
	locked := make(chan error, 1)
	go func() {
		_, err := locker.PgConn().Exec(context.Background(), "BEGIN; LOCK TABLE t").ReadAll()
		locked <- err
	}()
	r.until("the lock is next in the queue", func() bool {
		return r.query("SELECT count(*)::text FROM pg_locks WHERE NOT granted AND "+
			"relation = 't'::regclass") == "1"
	})
	r.exec("COMMIT")
	if err := <-locked; err != nil {
		t.Fatal(err)
	}
	r.until("the wait is told", func() bool {
		st := run.c.Status()
		return !st.Ready && strings.Contains(fmt.Sprint(st.Reasons), "to read rows of public.t again")
	})
	r.caughtUp(run)
	if st := run.c.Status(); !st.Ready {
		t.Errorf("not ready: %v", st.Reasons)
	}
	if _, err := locker.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	r.exec("UPDATE t SET v = 3")
	r.caughtUp(run)
	r.clean(run)
	same(t, lines(r.all("shop.public.t")), []string{
		"r NOT_APPLICABLE {id:1} {big:<9600> id:1 v:1}", "u ABSENT {id:1} {big:? id:1 v:2}",
		"u ABSENT {id:1} {big:~<9600> id:1 v:3}",
	})
	contains(t, r.log.String(), "reason=lock_timeout")
}

// No connection is left for reading: the session begins again until there is one.
func TestNoConnectionIsLeftForRereading(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.onePartition()
	role := "role_" + r.db
	r.exec(append(toast("t", "SELECT 1"),
		"CREATE ROLE "+role+" LOGIN REPLICATION PASSWORD 'secret'",
		"GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+role,
		"CREATE PUBLICATION dbz_publication FOR TABLE t")...)
	t.Cleanup(func() {
		_ = r.pg.Exec(context.Background(), r.db, "DROP OWNED BY "+role+"; DROP ROLE "+role)
	})
	r.extra["database.user"], r.extra["database.password"] = role, "secret"
	r.extra["publication.name"], r.extra["publication.autocreate.mode"] = "dbz_publication", "disabled"
	r.extra["errors.retry.delay.max.ms"] = "500"
	run := r.start()
	r.streaming(run)
	r.until("the watcher is connected", func() bool { return metric(t, run, "tidemark_slot_info") > 0 })
	r.exec("ALTER ROLE "+role+" CONNECTION LIMIT 1", "UPDATE t SET v = 2")
	r.until("the session ended", func() bool { return r.logged("code=slots_exhausted") })
	r.exec("ALTER ROLE " + role + " CONNECTION LIMIT -1")
	r.until("it streams again", func() bool {
		return run.c.Status().State == "streaming" && metric(t, run, "tidemark_reselected_total") == 1
	})
	r.caughtUp(run)
	r.clean(run)
	same(t, lines(r.all("shop.public.t")), []string{
		"r NOT_APPLICABLE {id:1} {big:<9600> id:1 v:1}", "u ABSENT {id:1} {big:~<9600> id:1 v:2}",
	})
}
