package connector_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/offsets"
)

// Tables that change under the snapshot: it is held at its first table while the others are
// rewritten, truncated, dropped, renamed.
func TestATableThatIsRewrittenUnderTheSnapshotIsReadAgainWhole(t *testing.T) {
	t.Parallel()
	onVersions(t, func(t *testing.T, r *rig) {
		r.onePartition()
		r.exec("CREATE TABLE a (id int PRIMARY KEY)", "INSERT INTO a VALUES (1)")
		for _, name := range []string{"rewritten", "truncated", "dropped", "renamed", "replaced"} {
			r.exec("CREATE TABLE "+name+" (id int PRIMARY KEY, v int)",
				"INSERT INTO "+name+" SELECT g, g FROM generate_series(1, 50) g")
		}
		release := r.hold()
		run := r.start()
		r.snapshotBegun(run)
		r.exec("ALTER TABLE rewritten ALTER v TYPE bigint", "INSERT INTO rewritten VALUES (51, 51)",
			"TRUNCATE truncated", "INSERT INTO truncated VALUES (7, 7)",
			"DROP TABLE dropped", "ALTER TABLE renamed RENAME TO other",
			"ALTER TABLE replaced RENAME TO old", "CREATE TABLE replaced (id int PRIMARY KEY, v int)",
			"INSERT INTO replaced VALUES (1, 1)")
		release()
		r.streaming(run)
		r.caughtUp(run)
		r.clean(run)
		sameInts(t, "a", ids(r.all("shop.public.a"), "id"), sequence(1, 1))
		var read, created int
		for _, e := range r.all("shop.public.rewritten") {
			switch e.op() {
			case "r":
				read++
			case "c":
				created++
			}
		}
		if read != 51 || created != 1 {
			t.Errorf("rewritten: %d r and %d c, want 51 and 1", read, created)
		}
		// The truncate comes by the stream, behind the rows of the later snapshot and older by pair.
		same(t, lines(r.all("shop.public.truncated")), []string{
			"r NOT_APPLICABLE {id:7} {id:7 v:7}", "t NOT_APPLICABLE -",
			"c NOT_APPLICABLE {id:7} {id:7 v:7}",
		})
		if n := len(r.all("shop.public.dropped")); n != 0 {
			t.Errorf("dropped: %d events", n)
		}
		rec := r.record()
		if !rec.Snapshot.Done || len(rec.Snapshot.Attempts) != 2 ||
			rec.Snapshot.Tables["public.dropped"].Status != offsets.TableSkipped {
			t.Errorf("record %+v", rec.Snapshot)
		}
		got := len(r.all("shop.public.renamed")) + len(r.all("shop.public.other"))
		if got != 50 {
			t.Errorf("renamed: %d rows of 50", got)
		}
	})
}

func TestEmptyAndZeroColumnTables(t *testing.T) {
	t.Parallel()
	onVersions(t, func(t *testing.T, r *rig) {
		r.exec("CREATE TABLE empty (id int PRIMARY KEY)", "CREATE TABLE nothing ()",
			"ALTER TABLE nothing REPLICA IDENTITY FULL",
			"INSERT INTO nothing DEFAULT VALUES", "INSERT INTO nothing DEFAULT VALUES")
		run := r.start()
		r.streaming(run)
		r.exec("INSERT INTO nothing DEFAULT VALUES", "INSERT INTO empty VALUES (1)",
			"DELETE FROM nothing WHERE ctid = '(0,1)'")
		r.caughtUp(run)
		r.clean(run)
		same(t, lines(r.all("shop.public.nothing")), []string{
			"r NOT_APPLICABLE - {}", "r NOT_APPLICABLE - {}", "c NOT_APPLICABLE - {}", "d FULL - before{}",
		})
		same(t, lines(r.all("shop.public.empty")), []string{"c NOT_APPLICABLE {id:1} {id:1}"})
	})
}

const partitioned = `
CREATE TABLE p (id int, k int, v text, PRIMARY KEY (id, k)) PARTITION BY RANGE (k);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
CREATE TABLE p2 (v text, gone int, k int NOT NULL, id int NOT NULL, PRIMARY KEY (id, k));
ALTER TABLE p2 DROP COLUMN gone;
ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (10) TO (20)`

// K15: a leaf with another column order, a leaf that comes later, a row that moves.
func TestAPartitionedTableGoesToOneTopicByItsRoot(t *testing.T) {
	t.Parallel()
	onVersions(t, func(t *testing.T, r *rig) {
		r.onePartition()
		r.extra["publish.via.partition.root"] = "true"
		r.exec(partitioned, "INSERT INTO p VALUES (1, 1, 'a'), (2, 12, 'b')")
		run := r.start()
		r.streaming(run)
		r.exec("UPDATE p SET k = 11 WHERE id = 1", "UPDATE p SET v = 'c' WHERE id = 1",
			"CREATE TABLE p3 PARTITION OF p FOR VALUES FROM (20) TO (30)",
			"INSERT INTO p VALUES (3, 25, 'd')")
		r.caughtUp(run)
		r.clean(run)
		same(t, lines(r.all("shop.public.p")), []string{
			"r NOT_APPLICABLE {id:1 k:1} {id:1 k:1 v:a}",
			"r NOT_APPLICABLE {id:2 k:12} {id:2 k:12 v:b}",
			"d KEY {id:1 k:1} old{id:1 k:1}", "x {id:1 k:1}",
			"c NOT_APPLICABLE {id:1 k:11} {id:1 k:11 v:a}",
			"u ABSENT {id:1 k:11} {id:1 k:11 v:c}",
			"c NOT_APPLICABLE {id:3 k:25} {id:3 k:25 v:d}",
		})
		for _, leaf := range []string{"p1", "p2", "p3"} {
			if n := len(r.all("shop.public." + leaf)); n != 0 {
				t.Errorf("leaf %s has a topic of its own with %d events", leaf, n)
			}
		}
	})
}

func TestPartitionsGoToTheirOwnTopicsWithoutRootPublishing(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.onePartition()
	r.extra["publish.via.partition.root"] = "false"
	r.exec(partitioned, "INSERT INTO p VALUES (1, 1, 'a'), (2, 12, 'b')")
	run := r.start()
	r.streaming(run)
	r.exec("UPDATE p SET v = 'c'")
	r.caughtUp(run)
	r.clean(run)
	same(t, lines(r.all("shop.public.p1")), []string{
		"r NOT_APPLICABLE {id:1 k:1} {id:1 k:1 v:a}", "u ABSENT {id:1 k:1} {id:1 k:1 v:c}",
	})
	same(t, lines(r.all("shop.public.p2")), []string{
		"r NOT_APPLICABLE {id:2 k:12} {id:2 k:12 v:b}", "u ABSENT {id:2 k:12} {id:2 k:12 v:c}",
	})
}

// K07 and W17: what the publication leaves out is neither in the snapshot nor in the stream.
func TestRowFiltersAndColumnLists(t *testing.T) {
	t.Parallel()
	onVersions(t, func(t *testing.T, r *rig) {
		if r.pg.Version == "14" {
			t.Skip("15 and later")
		}
		r.onePartition()
		r.extra["publication.autocreate.mode"] = "disabled"
		r.exec("CREATE TABLE f (id int PRIMARY KEY, a text, secret text, z text)",
			"INSERT INTO f VALUES (1, 'x', 'pii', 'z'), (200, 'x', 'pii', 'z')",
			"CREATE PUBLICATION tidemark FOR TABLE f (id, a, z) WHERE (id < 100)")
		run := r.start()
		r.streaming(run)
		r.exec("UPDATE f SET secret = 'p2' WHERE id = 1", "ALTER TABLE f ADD COLUMN n int",
			"INSERT INTO f VALUES (2, 'y', 'q', 'w', 5), (300, 'y', 'q', 'w', 5)",
			"UPDATE f SET id = 400 WHERE id = 2", "UPDATE f SET id = 3 WHERE id = 300")
		r.caughtUp(run)
		r.clean(run)
		same(t, lines(r.all("shop.public.f")), []string{
			"r NOT_APPLICABLE {id:1} {a:x id:1 z:z}", "u ABSENT {id:1} {a:x id:1 z:z}",
			"c NOT_APPLICABLE {id:2} {a:y id:2 z:w}",
			"d KEY {id:2} old{id:2}", "x {id:2}",
			"c NOT_APPLICABLE {id:3} {a:y id:3 z:w}",
		})
	})
}

// K08: names that SQL quotes, that Kafka and Avro forbid, and that are as long as may be.
func TestNamesThatMustBeQuotedAndEscaped(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	long := strings.Repeat("n", 63)
	r.extra["table.include.list"] = ".*"
	r.exec(`CREATE SCHEMA "Sch.éma"`,
		`CREATE TABLE "Sch.éma"."Weird $Table-名" ("Id#" int PRIMARY KEY, "a b" text, "a_b" text,
			"a-b" text, "1st" int, "namespace" int, "Name" text, name text, "say ""hi""" text)`,
		`INSERT INTO "Sch.éma"."Weird $Table-名" VALUES (1,'sp','us','da',1,2,'N','n','q')`,
		"CREATE TABLE "+long+" ("+long+" int PRIMARY KEY)", "INSERT INTO "+long+" VALUES (1)",
		`CREATE SCHEMA "a.b"`, "CREATE SCHEMA a", `CREATE TABLE "a.b".c (id int PRIMARY KEY)`,
		`CREATE TABLE a."b.c" (id int PRIMARY KEY)`, `INSERT INTO "a.b".c VALUES (1)`,
		`INSERT INTO a."b.c" VALUES (2)`)
	run := r.start()
	r.streaming(run)
	r.exec(`UPDATE "Sch.éma"."Weird $Table-名" SET "a b" = 'new'`, "INSERT INTO "+long+" VALUES (2)")
	r.caughtUp(run)
	r.clean(run)
	got := lines(r.all("shop.Sch_x002E__x00E9_ma.Weird_x0020__x0024_Table-_x540D_"))
	const rest = " _x0031_st:1 a_b:us a_x0020_b:%s a_x002D_b:da name:n namespace:2 " +
		"say_x0020__x0022_hi_x0022_:q}"
	same(t, got, []string{
		"r NOT_APPLICABLE {Id_x0023_:1} {Id_x0023_:1 Name:N" + fmt.Sprintf(rest, "sp"),
		"u ABSENT {Id_x0023_:1} {Id_x0023_:1 Name:N" + fmt.Sprintf(rest, "new"),
	})
	sameInts(t, long, ids(r.all("shop.public."+long), long), sequence(1, 2))
	sameInts(t, "a.b", ids(r.all("shop.a_x002E_b.c"), "id"), []int{1})
	sameInts(t, "a", ids(r.all("shop.a.b_x002E_c"), "id"), []int{2})
}

// K04: what the client reads is UTF-8, whatever the database's encoding; in SQL_ASCII nothing is
// converted, and what is not UTF-8 is flagged.
func TestDatabasesOfOtherEncodings(t *testing.T) {
	t.Parallel()
	for encoding, want := range map[string][]string{
		"LATIN1": {
			"r NOT_APPLICABLE {id:1} {id:1 s:é}", "c NOT_APPLICABLE {id:2} {id:2 s:ü}",
		},
		"SQL_ASCII": {
			"r NOT_APPLICABLE {id:1} {id:1 s:!\\xe9}", "c NOT_APPLICABLE {id:2} {id:2 s:!\\xfc}",
		},
	} {
		t.Run(encoding, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "18")
			r.sql.Close(t.Context())
			name := pgx.Identifier{r.db}.Sanitize()
			err := r.pg.Exec(t.Context(), "postgres", "DROP DATABASE "+name)
			if err == nil {
				err = r.pg.Exec(t.Context(), "postgres", fmt.Sprintf("CREATE DATABASE %s ENCODING '%s' "+
					"LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0", name, encoding))
			}
			if err != nil {
				t.Fatal(err)
			}
			if r.sql, err = r.pg.Connect(t.Context(), r.db); err != nil {
				t.Fatal(err)
			}
			r.onePartition()
			// By bytes: nothing on the way in converts them.
			insert := "INSERT INTO s VALUES (%d, convert_from('\\x%s', '" + encoding + "'))"
			r.exec("CREATE TABLE s (id int PRIMARY KEY, s text)", fmt.Sprintf(insert, 1, "e9"))
			run := r.start()
			r.streaming(run)
			r.exec(fmt.Sprintf(insert, 2, "fc"))
			r.caughtUp(run)
			r.clean(run)
			r.sql.Close(t.Context())
			same(t, lines(r.all("shop.public.s")), want)
		})
	}
}
