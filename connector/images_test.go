package connector_test

import (
	"strings"
	"testing"
)

// big is a value that is stored out of line and does not compress; %d makes it one's own.
const big = "(SELECT string_agg(md5(g::text), '') FROM generate_series(1, 300) g)"

func toast(name, identity string) []string {
	return []string{
		"CREATE TABLE " + name + " (id int PRIMARY KEY, v int, big text)",
		"ALTER TABLE " + name + " ALTER big SET STORAGE EXTERNAL", identity,
		"INSERT INTO " + name + " VALUES (1, 1, " + big + ")",
	}
}

// imageCase is a table, what happens to it while streaming, and the events of its topic.
type imageCase struct {
	make, act []string
	want      []string
	root      bool
}

var imageCases = map[string]imageCase{
	"default": {
		make: []string{numbers, insertNumbers(1, 2)},
		act: []string{
			"UPDATE t SET v = 'u' WHERE id = 1", "UPDATE t SET id = 3 WHERE id = 1",
			"DELETE FROM t WHERE id = 2", "UPDATE t SET v = NULL",
		},
		want: []string{
			"r NOT_APPLICABLE {id:1} {id:1 v:v1}", "r NOT_APPLICABLE {id:2} {id:2 v:v2}",
			"u ABSENT {id:1} {id:1 v:u}",
			"d KEY {id:1} old{id:1}", "x {id:1}", "c KEY {id:3} {id:3 v:u} old{id:1}",
			"d KEY {id:2} old{id:2}", "x {id:2}", "u ABSENT {id:3} {id:3 v:-}",
		},
	},
	"full": {
		make: []string{numbers, "ALTER TABLE t REPLICA IDENTITY FULL", insertNumbers(1, 1)},
		act:  []string{"UPDATE t SET v = 'u'", "UPDATE t SET id = 2", "DELETE FROM t"},
		want: []string{
			"r NOT_APPLICABLE {id:1} {id:1 v:v1}",
			"u FULL {id:1} {id:1 v:u} before{id:1 v:v1} old{id:1}",
			"d FULL {id:1} before{id:1 v:u} old{id:1}", "x {id:1}",
			"c FULL {id:2} {id:2 v:u} before{id:1 v:u} old{id:1}",
			"d FULL {id:2} before{id:2 v:u} old{id:2}", "x {id:2}",
		},
	},
	// K14
	"full without a key": {
		make: []string{"CREATE TABLE t (a int, b int)", "ALTER TABLE t REPLICA IDENTITY FULL"},
		act: []string{
			"INSERT INTO t VALUES (1, NULL), (1, NULL)", "UPDATE t SET b = 3", "DELETE FROM t",
		},
		want: []string{
			"c NOT_APPLICABLE - {a:1 b:-}", "c NOT_APPLICABLE - {a:1 b:-}",
			"u FULL - {a:1 b:3} before{a:1 b:-}", "u FULL - {a:1 b:3} before{a:1 b:-}",
			"d FULL - before{a:1 b:3}", "d FULL - before{a:1 b:3}",
		},
	},
	// K13, W5
	"index": {
		make: []string{
			"CREATE TABLE t (id int PRIMARY KEY, k int NOT NULL, v text)",
			"CREATE UNIQUE INDEX t_k ON t (k)", "ALTER TABLE t REPLICA IDENTITY USING INDEX t_k",
			"INSERT INTO t VALUES (1, 10, 'a')",
		},
		act: []string{
			"UPDATE t SET v = 'b'", "UPDATE t SET id = 77", "UPDATE t SET k = 11", "DELETE FROM t",
		},
		want: []string{
			"r NOT_APPLICABLE {k:10} {id:1 k:10 v:a}", "u ABSENT {k:10} {id:1 k:10 v:b}",
			"u ABSENT {k:10} {id:77 k:10 v:b}",
			"d KEY {k:10} old{k:10}", "x {k:10}", "c KEY {k:11} {id:77 k:11 v:b} old{k:10}",
			"d KEY {k:11} old{k:11}", "x {k:11}",
		},
	},
	// K09
	"unchanged out of line, default": {
		make: toast("t", "SELECT 1"),
		act: []string{
			"UPDATE t SET v = 2", "UPDATE t SET id = 9", "UPDATE t SET big = NULL",
			"UPDATE t SET big = 's'",
		},
		want: []string{
			"r NOT_APPLICABLE {id:1} {big:<9600> id:1 v:1}", "u ABSENT {id:1} {big:? id:1 v:2}",
			"d KEY {id:1} old{id:1}", "x {id:1}", "c KEY {id:9} {big:? id:9 v:2} old{id:1}",
			"u ABSENT {id:9} {big:- id:9 v:2}", "u ABSENT {id:9} {big:s id:9 v:2}",
		},
	},
	// K10
	"unchanged out of line, full": {
		make: toast("t", "ALTER TABLE t REPLICA IDENTITY FULL"),
		act:  []string{"UPDATE t SET v = 2", "UPDATE t SET id = 9", "DELETE FROM t"},
		want: []string{
			"r NOT_APPLICABLE {id:1} {big:<9600> id:1 v:1}",
			"u FULL {id:1} {big:<9600> id:1 v:2} before{big:<9600> id:1 v:1} old{id:1}",
			"d FULL {id:1} before{big:<9600> id:1 v:2} old{id:1}", "x {id:1}",
			"c FULL {id:9} {big:<9600> id:9 v:2} before{big:<9600> id:1 v:2} old{id:1}",
			"d FULL {id:9} before{big:<9600> id:9 v:2} old{id:9}", "x {id:9}",
		},
	},
	// The server sends K for a key that is stored out of line, without any change of key.
	"key out of line": {
		make: []string{
			"CREATE TABLE t (k text PRIMARY KEY, v int)", "ALTER TABLE t ALTER k SET STORAGE EXTERNAL",
			"INSERT INTO t VALUES ((SELECT string_agg(md5(g::text), '') FROM generate_series(1, 78) g), 1)",
		},
		act: []string{"UPDATE t SET v = 2", "DELETE FROM t"},
		want: []string{
			"r NOT_APPLICABLE {k:<2496>} {k:<2496> v:1}",
			"u KEY {k:<2496>} {k:<2496> v:2} old{k:<2496>}",
			"d KEY {k:<2496>} old{k:<2496>}", "x {k:<2496>}",
		},
	},
	"root full, a leaf default": {
		root: true,
		make: []string{
			partitioned, "ALTER TABLE p REPLICA IDENTITY FULL", "ALTER TABLE p1 REPLICA IDENTITY FULL",
			"INSERT INTO p VALUES (1, 1, 'a'), (2, 12, 'b')",
		},
		act: []string{
			"UPDATE p SET v = 'c' WHERE id = 2", "DELETE FROM p WHERE id = 2",
			"UPDATE p SET v = 'c' WHERE id = 1", "DELETE FROM p WHERE id = 1",
		},
		want: []string{
			"r NOT_APPLICABLE {id:1 k:1} {id:1 k:1 v:a}", "r NOT_APPLICABLE {id:2 k:12} {id:2 k:12 v:b}",
			"u ABSENT {id:2 k:12} {id:2 k:12 v:c}",
			"d KEY {id:2 k:12} old{id:2 k:12}", "x {id:2 k:12}",
			"u KEY {id:1 k:1} {id:1 k:1 v:c} old{id:1 k:1}",
			"d KEY {id:1 k:1} old{id:1 k:1}", "x {id:1 k:1}",
		},
	},
	"root and leaves full": {
		root: true,
		make: []string{
			partitioned, "ALTER TABLE p REPLICA IDENTITY FULL", "ALTER TABLE p1 REPLICA IDENTITY FULL",
			"ALTER TABLE p2 REPLICA IDENTITY FULL", "INSERT INTO p VALUES (2, 12, 'b')",
		},
		act: []string{"UPDATE p SET v = 'c'", "DELETE FROM p"},
		want: []string{
			"r NOT_APPLICABLE {id:2 k:12} {id:2 k:12 v:b}",
			"u FULL {id:2 k:12} {id:2 k:12 v:c} before{id:2 k:12 v:b} old{id:2 k:12}",
			"d FULL {id:2 k:12} before{id:2 k:12 v:c} old{id:2 k:12}", "x {id:2 k:12}",
		},
	},
	"root default, leaf full": {
		root: true,
		make: []string{
			partitioned, "ALTER TABLE p1 REPLICA IDENTITY FULL", "INSERT INTO p VALUES (1, 1, 'a')",
		},
		act: []string{"UPDATE p SET v = 'c'", "DELETE FROM p"},
		want: []string{
			"r NOT_APPLICABLE {id:1 k:1} {id:1 k:1 v:a}",
			"u KEY {id:1 k:1} {id:1 k:1 v:c} old{id:1 k:1}",
			"d KEY {id:1 k:1} old{id:1 k:1}", "x {id:1 k:1}",
		},
	},
	// K12
	"keys change places": {
		make: []string{
			"CREATE TABLE t (a int, b int, v text, PRIMARY KEY (a, b))",
			"INSERT INTO t VALUES (1, 1, 'x')",
		},
		act: []string{
			"UPDATE t SET b = 7 WHERE a = 1",
			"BEGIN; INSERT INTO t VALUES (5, 5, 't'); UPDATE t SET a = 6 WHERE a = 5; COMMIT",
		},
		want: []string{
			"r NOT_APPLICABLE {a:1 b:1} {a:1 b:1 v:x}",
			"d KEY {a:1 b:1} old{a:1 b:1}", "x {a:1 b:1}", "c KEY {a:1 b:7} {a:1 b:7 v:x} old{a:1 b:1}",
			"c NOT_APPLICABLE {a:5 b:5} {a:5 b:5 v:t}",
			"d KEY {a:5 b:5} old{a:5 b:5}", "x {a:5 b:5}", "c KEY {a:6 b:5} {a:6 b:5 v:t} old{a:5 b:5}",
		},
	},
	// K19
	"savepoints": {
		make: []string{numbers},
		act: []string{
			"BEGIN; INSERT INTO t VALUES (1, 'a'); SAVEPOINT a; INSERT INTO t VALUES (2, 'never'); " +
				"ROLLBACK TO a; INSERT INTO t VALUES (3, 'b'); COMMIT",
			"BEGIN; INSERT INTO t VALUES (9, 'never'); ROLLBACK",
			"DO $$ BEGIN INSERT INTO t VALUES (4, 'never'); RAISE division_by_zero; " +
				"EXCEPTION WHEN division_by_zero THEN INSERT INTO t VALUES (5, 'c'); END $$",
		},
		want: []string{
			"c NOT_APPLICABLE {id:1} {id:1 v:a}", "c NOT_APPLICABLE {id:3} {id:3 v:b}",
			"c NOT_APPLICABLE {id:5} {id:5 v:c}",
		},
	},
	// K20
	"other messages": {
		make: []string{
			"CREATE TYPE e AS ENUM ('a')", "CREATE TABLE t (id int PRIMARY KEY, e e)",
			"INSERT INTO t VALUES (1, 'a')",
		},
		act: []string{
			"BEGIN; SELECT pg_logical_emit_message(true, 'ctx', 'tx'); INSERT INTO t VALUES (2, 'a'); " +
				"SELECT pg_logical_emit_message(false, 'ctx', 'now'); COMMIT",
			"BEGIN; SELECT pg_logical_emit_message(false, 'ctx', 'kept'); " +
				"SELECT pg_logical_emit_message(true, 'ctx', 'gone'); ROLLBACK",
			"BEGIN; INSERT INTO t VALUES (3, 'a'); PREPARE TRANSACTION 'g1'",
			"BEGIN; INSERT INTO t VALUES (4, 'a'); PREPARE TRANSACTION 'g2'",
			"INSERT INTO t VALUES (6, 'a')", "ROLLBACK PREPARED 'g2'", "COMMIT PREPARED 'g1'",
			"SELECT pg_replication_origin_create('o1')", "SELECT pg_replication_origin_session_setup('o1')",
			"INSERT INTO t VALUES (5, 'a')", "SELECT pg_replication_origin_session_reset()",
			"SELECT pg_replication_origin_drop('o1')",
		},
		want: []string{
			"r NOT_APPLICABLE {id:1} {e:a id:1}", "c NOT_APPLICABLE {id:2} {e:a id:2}",
			"c NOT_APPLICABLE {id:6} {e:a id:6}", "c NOT_APPLICABLE {id:3} {e:a id:3}",
			"c NOT_APPLICABLE {id:5} {e:a id:5}",
		},
	},
	// K01, K02: values that the Avro type cannot hold are flagged with their text.
	"unrepresentable": {
		make: []string{
			"CREATE TABLE t (id int PRIMARY KEY, n numeric(6,2), d date, f float8, c time)",
			"INSERT INTO t VALUES (1, 'NaN', 'infinity', 'NaN', '24:00')",
		},
		act: []string{
			"UPDATE t SET d = '-infinity'", "ALTER TABLE t REPLICA IDENTITY FULL",
			"UPDATE t SET d = NULL",
		},
		want: []string{
			"r NOT_APPLICABLE {id:1} {c:!24:00:00 d:!infinity f:NaN id:1 n:!NaN}",
			"u ABSENT {id:1} {c:!24:00:00 d:!-infinity f:NaN id:1 n:!NaN}",
			"u FULL {id:1} {c:!24:00:00 d:- f:NaN id:1 n:!NaN} " +
				"before{c:!24:00:00 d:!-infinity f:NaN id:1 n:!NaN} old{id:1}",
		},
	},
	"schema changes in mid-stream": {
		make: []string{numbers, insertNumbers(1, 1)},
		act: []string{
			"ALTER TABLE t ADD COLUMN n int DEFAULT 7", "UPDATE t SET v = 'b'",
			"ALTER TABLE t RENAME COLUMN n TO m", "UPDATE t SET v = 'c'",
			"BEGIN; ALTER TABLE t DROP COLUMN m; INSERT INTO t VALUES (2, 'd'); " +
				"ALTER TABLE t ADD COLUMN k text; INSERT INTO t VALUES (3, 'e', 'k'); COMMIT",
			"ALTER TABLE t REPLICA IDENTITY FULL", "UPDATE t SET k = 'l' WHERE id = 3",
			"ALTER TABLE t REPLICA IDENTITY DEFAULT", "UPDATE t SET k = 'm' WHERE id = 3",
		},
		want: []string{
			"r NOT_APPLICABLE {id:1} {id:1 v:v1}", "u ABSENT {id:1} {id:1 n:7 v:b}",
			"u ABSENT {id:1} {id:1 m:7 v:c}", "c NOT_APPLICABLE {id:2} {id:2 v:d}",
			"c NOT_APPLICABLE {id:3} {id:3 k:k v:e}",
			"u FULL {id:3} {id:3 k:l v:e} before{id:3 k:k v:e} old{id:3}",
			"u ABSENT {id:3} {id:3 k:m v:e}",
		},
	},
}

func TestWhatIsKnownOfTheOldRow(t *testing.T) {
	t.Parallel()
	for name, c := range imageCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onVersions(t, func(t *testing.T, r *rig) {
				r.onePartition()
				r.extra["reselect.unavailable.values"] = "false"
				table := "t"
				if c.root {
					r.extra["publish.via.partition.root"] = "true"
					table = "p"
				}
				r.exec(c.make...)
				run := r.start()
				r.streaming(run)
				r.exec(c.act...)
				r.caughtUp(run)
				r.clean(run)
				same(t, lines(r.all("shop.public."+table)), c.want)
			})
		})
	}
}

// A truncate goes to each partition, a cascade to each table's topic, with one pair.
func TestATruncateGoesToEveryPartition(t *testing.T) {
	t.Parallel()
	onVersions(t, func(t *testing.T, r *rig) {
		r.exec(numbers, "CREATE TABLE child (id int PRIMARY KEY REFERENCES t)", insertNumbers(1, 3))
		run := r.start()
		r.streaming(run)
		r.exec("TRUNCATE t CASCADE")
		r.caughtUp(run)
		r.clean(run)
		pairs := map[string]bool{}
		for _, topic := range []string{"shop.public.t", "shop.public.child"} {
			partitions := map[int32]int{}
			for _, e := range r.all(topic) {
				if e.op() == "t" {
					partitions[e.partition]++
					pairs[e.headers["tidemark.commit_lsn"]+"/"+e.headers["tidemark.event_index"]] = true
					if !strings.HasPrefix(e.String(), "t NOT_APPLICABLE -") {
						t.Errorf("%s: %s", topic, e)
					}
				}
			}
			if len(partitions) != 3 || partitions[0] != 1 || partitions[1] != 1 || partitions[2] != 1 {
				t.Errorf("%s: truncates by partition %v", topic, partitions)
			}
		}
		if len(pairs) != 1 {
			t.Errorf("pairs %v, want one", pairs)
		}
	})
}
