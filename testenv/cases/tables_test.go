package cases_test

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

func TestK14TableWithoutAKey(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.exec(`CREATE TABLE np(a int, b int)`, `ALTER TABLE np REPLICA IDENTITY FULL`,
			`INSERT INTO np VALUES (0,0)`, `CREATE TABLE zero()`, `ALTER TABLE zero REPLICA IDENTITY FULL`,
			`INSERT INTO zero DEFAULT VALUES`,
			`CREATE TABLE bystander(x int)`, `INSERT INTO bystander VALUES (1)`)
		r.keys["table.include.list"] = `public\.np,public\.z.*`
		r.keys["topic.creation.default.partitions"] = "3"
		run := r.streaming()
		r.exec(`INSERT INTO np VALUES (1,NULL),(1,NULL)`, `UPDATE np SET b=3 WHERE a=1`, `DELETE FROM np`,
			`DELETE FROM bystander`, `CREATE TABLE zc()`, `INSERT INTO zc DEFAULT VALUES`,
			`INSERT INTO zero DEFAULT VALUES`, `DELETE FROM zero`)
		same(t, "np", lines(r.drain(run, "np")),
			`r NOT_APPLICABLE - {a:0 b:0}`,
			`c NOT_APPLICABLE - {a:1 b:-}`, `c NOT_APPLICABLE - {a:1 b:-}`,
			`u FULL - {a:1 b:3} before{a:1 b:-}`, `u FULL - {a:1 b:3} before{a:1 b:-}`,
			`d FULL - before{a:0 b:0}`, `d FULL - before{a:1 b:3}`, `d FULL - before{a:1 b:3}`)
		same(t, "zero", lines(r.read(r.topic("zero"))), `r NOT_APPLICABLE - {}`,
			`c NOT_APPLICABLE - {}`, `d FULL - before{}`, `d FULL - before{}`)
		r.clean(run)
	})
}

// A compacted topic takes no null key: that pairing is refused before the first row.
func TestK14WithoutAKeyIntoACompactedTopic(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.exec(`CREATE TABLE np(a int, b int)`, `ALTER TABLE np REPLICA IDENTITY FULL`,
			`INSERT INTO np VALUES (1,1)`)
		r.keys["topic.creation.default.cleanup.policy"] = "compact"
		r.ends(r.start(), fault.TopicCompactedNoKey, "shop.public.np")
		if n := len(r.read(r.topic("np"))); n != 0 {
			t.Errorf("%d records were sent", n)
		}
	})
}

// A primary key that goes away while streaming: the topic had keys, and what follows says that the
// table has none, in its schema and by a reason; rows that only lack a key are not lost.
func TestF56K14KeyThatIsDropped(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.exec(`CREATE TABLE np(a int PRIMARY KEY, b int)`, `INSERT INTO np VALUES (1,1)`)
		r.keys["catalog.check.interval.ms"] = "100"
		run := r.streaming()
		r.exec(`ALTER TABLE np DROP CONSTRAINT np_pkey`, `INSERT INTO np VALUES (2,2)`,
			`ALTER TABLE np REPLICA IDENTITY FULL`, `UPDATE np SET b=3 WHERE a=2`)
		r.caughtUp(run) // under FULL the stream does not say what the primary key is: the catalog does
		r.exec(`ALTER TABLE np ADD PRIMARY KEY (a), REPLICA IDENTITY DEFAULT`,
			`UPDATE np SET a=4 WHERE a=2`)
		same(t, "np", lines(r.drain(run, "np")),
			`r NOT_APPLICABLE {a:1} {a:1 b:1}`, `c NOT_APPLICABLE - {a:2 b:2}`,
			`u FULL - {a:2 b:3} before{a:2 b:2}`,
			`d KEY {a:2} old{a:2}`, `x {a:2}`, `c KEY {a:4} {a:4 b:3} old{a:2}`)
		r.clean(run)
	})
}

const k15 = `CREATE TABLE pr(id int, k int, v text, PRIMARY KEY(id,k)) PARTITION BY RANGE(k);
	CREATE TABLE pr1 PARTITION OF pr FOR VALUES FROM (0) TO (10);
	CREATE TABLE pr2(v text, k int NOT NULL, dropme int, id int NOT NULL, PRIMARY KEY(id,k));
	ALTER TABLE pr2 DROP COLUMN dropme;
	ALTER TABLE pr ATTACH PARTITION pr2 FOR VALUES FROM (10) TO (20);
	INSERT INTO pr VALUES (7,7,'s7'),(17,17,'s17')`

func TestK15PartitionedTable(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.exec(k15)
		run := r.streaming()
		r.exec(`INSERT INTO pr VALUES (1,1,'a')`, `UPDATE pr SET k=11 WHERE id=1`,
			`UPDATE pr SET v='b' WHERE id=1`,
			`CREATE TABLE pr3 PARTITION OF pr FOR VALUES FROM (20) TO (30)`,
			`INSERT INTO pr VALUES (3,25,'c')`, `INSERT INTO pr3 VALUES (4,26,'d')`,
			`CREATE TABLE pr4(id int NOT NULL,k int NOT NULL,v text,PRIMARY KEY(id,k))`,
			`INSERT INTO pr4 VALUES (5,35,'pre')`,
			`ALTER TABLE pr ATTACH PARTITION pr4 FOR VALUES FROM (30) TO (40)`)
		if r.major == 14 {
			// Its walsender has pr4 as unpublished from the INSERT on, whatever is attached, and
			// leaves out all of its changes until a session that begins behind the ATTACH:
			// TestK15AttachAndDetach.
			r.caughtUp(run)
			r.clean(run)
			run = r.streaming()
		}
		r.exec(`UPDATE pr SET v='post' WHERE id=5`, `UPDATE pr SET id=18 WHERE id=17`, `TRUNCATE pr`)
		events := r.drain(run, "pr")
		same(t, "event", lines(events),
			`r NOT_APPLICABLE {id:7 k:7} {id:7 k:7 v:"s7"}`,
			`r NOT_APPLICABLE {id:17 k:17} {id:17 k:17 v:"s17"}`,
			`c NOT_APPLICABLE {id:1 k:1} {id:1 k:1 v:"a"}`,
			`d KEY {id:1 k:1} old{id:1 k:1}`, `x {id:1 k:1}`,
			`c NOT_APPLICABLE {id:1 k:11} {id:1 k:11 v:"a"}`,
			`u ABSENT {id:1 k:11} {id:1 k:11 v:"b"}`,
			`c NOT_APPLICABLE {id:3 k:25} {id:3 k:25 v:"c"}`,
			`c NOT_APPLICABLE {id:4 k:26} {id:4 k:26 v:"d"}`,
			`u ABSENT {id:5 k:35} {id:5 k:35 v:"post"}`,
			`d KEY {id:17 k:17} old{id:17 k:17}`, `x {id:17 k:17}`,
			`c KEY {id:18 k:17} {id:18 k:17 v:"s17"} old{id:17 k:17}`,
			`t NOT_APPLICABLE -`)
		for _, leaf := range []string{"pr1", "pr2", "pr3", "pr4"} {
			if r.read(r.topic(leaf)) != nil {
				t.Errorf("partition %s has a topic of its own", leaf)
			}
		}
		r.clean(run)
	})
}

// ATTACH and DETACH of filled tables are in no stream (W9): they are findings.
func TestK15AttachAndDetach(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.keys["catalog.check.interval.ms"] = "100"
		r.exec(k15, `CREATE TABLE pr4(id int NOT NULL,k int NOT NULL,v text,PRIMARY KEY(id,k))`,
			`INSERT INTO pr4 VALUES (5,35,'pre')`)
		run := r.streaming()
		says := func(text string) {
			t.Helper()
			r.until(run, text, func() bool {
				return strings.Contains(strings.Join(run.c.Status().Reasons, "\n"), text)
			})
		}
		// The first look only takes note; a published table that comes shows that it was.
		r.exec(`CREATE TABLE seen(id int)`)
		says(`"seen"`)
		r.exec(`ALTER TABLE pr ATTACH PARTITION pr4 FOR VALUES FROM (30) TO (40)`)
		says("table public.pr4 was attached to public.pr: rows that it had are not in the topic")
		if r.major == 14 {
			says("until the connector is started again with a position behind the ATTACH")
		}
		r.exec(`ALTER TABLE pr DETACH PARTITION pr1`)
		says("table public.pr1 was detached from public.pr: its rows are still in the topic")
		if !run.c.Status().Ready {
			t.Log("not ready:", run.c.Status().Reasons)
		}
		r.clean(run)
	})
}

// Leaves with other identities than their root: what the stream cannot tell apart is never called
// a full old row.
func TestK15IdentitiesOfLeaves(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.exec(k15, `ALTER TABLE pr REPLICA IDENTITY FULL`, `ALTER TABLE pr1 REPLICA IDENTITY FULL`)
		run := r.streaming()
		r.exec(`UPDATE pr SET v='b' WHERE id=7`, `UPDATE pr SET v='b' WHERE id=17`,
			`DELETE FROM pr`)
		r.caughtUp(run) // the leaves' identities come from the catalog until the stream announces them
		r.exec(`ALTER TABLE pr2 REPLICA IDENTITY FULL`, `INSERT INTO pr VALUES (8,18,'c')`,
			`UPDATE pr SET v=NULL`)
		got := lines(r.drain(run, "pr"))
		same(t, "event", got[2:8],
			`u KEY {id:7 k:7} {id:7 k:7 v:"b"} old{id:7 k:7}`,
			`u ABSENT {id:17 k:17} {id:17 k:17 v:"b"}`,
			`d KEY {id:7 k:7} old{id:7 k:7}`, `x {id:7 k:7}`,
			`d KEY {id:17 k:17} old{id:17 k:17}`, `x {id:17 k:17}`)
		if last := got[len(got)-1]; !strings.HasPrefix(last, `u KEY {id:8 k:18}`) &&
			last != `u FULL {id:8 k:18} {id:8 k:18 v:-} before{id:8 k:18 v:"c"} old{id:8 k:18}` {
			t.Errorf("last event: %s", last)
		}
		r.clean(run)
	})
}

func TestF56K16AddingColumns(t *testing.T) {
	for _, level := range []sr.CompatibilityLevel{
		sr.CompatFull, sr.CompatFullTransitive, sr.CompatBackwardTransitive, sr.CompatForwardTransitive,
	} {
		t.Run(level.String(), func(t *testing.T) {
			onVersions(t, 14, "", func(t *testing.T, r *rig) {
				r.level(level)
				r.exec(`CREATE TABLE c30(id int PRIMARY KEY, a text)`, `INSERT INTO c30 VALUES (1,'x')`)
				run := r.streaming()
				r.exec(`ALTER TABLE c30 ADD COLUMN n text, ADD COLUMN d int NOT NULL DEFAULT 7,
						ADD COLUMN r int NOT NULL DEFAULT (random()*9)::int`,
					`INSERT INTO c30 VALUES (2,'y',NULL,8,9)`, `UPDATE c30 SET a='z', r=4 WHERE id=1`,
					`ALTER TABLE c30 DROP COLUMN n`, `INSERT INTO c30 VALUES (3,'w',1,1)`,
					`ALTER TABLE c30 RENAME a TO b`, `DELETE FROM c30 WHERE id=2`,
					`INSERT INTO c30 VALUES (4,'v',1,1)`)
				same(t, "event", lines(r.drain(run, "c30")),
					`r NOT_APPLICABLE {id:1} {a:"x" id:1}`,
					`c NOT_APPLICABLE {id:2} {a:"y" d:8 id:2 n:- r:9}`,
					`u ABSENT {id:1} {a:"z" d:7 id:1 n:- r:4}`,
					`c NOT_APPLICABLE {id:3} {a:"w" d:1 id:3 r:1}`,
					`d KEY {id:2} old{id:2}`, `x {id:2}`,
					`c NOT_APPLICABLE {id:4} {b:"v" d:1 id:4 r:1}`)
				texts := r.schemas(r.topic("c30") + "-value")
				if len(texts) != 4 {
					t.Fatalf("%d versions of the value's schema, want 4", len(texts))
				}
				for _, want := range []string{
					`{"name":"n","type":["null","string"],"default":null,"pg_type":"text"}`,
					`{"name":"d","type":["null","int"],"default":null,"pg_type":"integer"}`,
					`{"name":"r","type":["null","int"],"default":null,"pg_type":"integer"}`,
				} {
					if strings.Count(texts[1], want) != 1 {
						t.Errorf("not once in the schema: %s\n%s", want, texts[1])
					}
				}
				if n := len(r.schemas(r.topic("c30") + "-key")); n != 1 {
					t.Errorf("%d versions of the key's schema, want 1", n)
				}
				r.clean(run)
			})
		})
	}
}

// What cannot be registered stops before its first event with subject and difference; the slot
// waits, and once the level is lowered nothing is missing.
func TestF42K16RefusedSchema(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.level(sr.CompatFull)
		r.exec(`CREATE TABLE c30(id int PRIMARY KEY, a text)`, `INSERT INTO c30 VALUES (1,'x')`)
		run := r.streaming()
		r.exec(`INSERT INTO c30 VALUES (2,'y')`, `ALTER TABLE c30 ALTER a TYPE int USING 5`)
		at := r.lsn(`SELECT pg_current_wal_insert_lsn()::text`)
		r.exec(`INSERT INTO c30 VALUES (3,6)`)
		r.ends(run, fault.SchemaRejected, "shop.public.c30-value", "FULL")
		flushed := r.lsn(`SELECT $1::text`, r.confirmed())
		if flushed > at {
			t.Errorf("the slot is at %s, past %s, the row that was not sent", flushed, at)
		}
		r.ends(r.start(), fault.SchemaRejected)
		r.level(sr.CompatNone, "shop.public.c30-value")
		run = r.streaming()
		same(t, "event", lines(r.drain(run, "c30")), `r NOT_APPLICABLE {id:1} {a:"x" id:1}`,
			`c NOT_APPLICABLE {id:2} {a:"y" id:2}`, `c NOT_APPLICABLE {id:3} {a:6 id:3}`)
		r.clean(run)
	})
}
