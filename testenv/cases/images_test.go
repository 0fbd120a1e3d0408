package cases_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

const c18 = `CREATE TABLE c18(id int PRIMARY KEY, v int, big text, doc jsonb, nul text);
	ALTER TABLE c18 ALTER big SET STORAGE EXTERNAL, ALTER doc SET STORAGE EXTERNAL`

func c18Row(id int) string {
	return fmt.Sprintf(`INSERT INTO c18 SELECT %d, 1, repeat(md5('x'),300),
		to_jsonb(repeat(md5('y'),300)), NULL`, id)
}

// The log repeats no out-of-line value that an UPDATE left alone: flagged, not null; what is null
// is null. Connector suite: TestWhatIsKnownOfTheOldRow has the shapes with one such column.
func TestF57K09UnchangedToastUnderDefault(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.keys["reselect.unavailable.values"] = "false"
		r.exec(c18, c18Row(5))
		run := r.streaming()
		r.exec(`BEGIN; `+c18Row(1)+`; UPDATE c18 SET v=2 WHERE id=1; COMMIT`,
			`UPDATE c18 SET v=3 WHERE id=1`, `UPDATE c18 SET big=NULL WHERE id=1`,
			`UPDATE c18 SET big='s' WHERE id=1`, `UPDATE c18 SET id=9 WHERE id=1`,
			`UPDATE c18 SET id=6 WHERE id=5`, `DELETE FROM c18 WHERE id=6`)
		same(t, "event", lines(r.drain(run, "c18")),
			`r NOT_APPLICABLE {id:5} {big:<9600> doc:<9602> id:5 nul:- v:1}`,
			`c NOT_APPLICABLE {id:1} {big:<9600> doc:<9602> id:1 nul:- v:1}`,
			`u ABSENT {id:1} {big:? doc:? id:1 nul:- v:2}`,
			`u ABSENT {id:1} {big:? doc:? id:1 nul:- v:3}`,
			`u ABSENT {id:1} {big:- doc:? id:1 nul:- v:3}`,
			`u ABSENT {id:1} {big:"s" doc:? id:1 nul:- v:3}`,
			`d KEY {id:1} old{id:1}`, `x {id:1}`,
			`c KEY {id:9} {big:"s" doc:? id:9 nul:- v:3} old{id:1}`,
			`d KEY {id:5} old{id:5}`, `x {id:5}`,
			`c KEY {id:6} {big:? doc:? id:6 nul:- v:1} old{id:5}`,
			`d KEY {id:6} old{id:6}`, `x {id:6}`)
		r.clean(run)
	})
}

// The same, and the values are read again: what was set since is what is there, what is gone is
// flagged. Connector suite: TestValuesAreReadAgain has the shapes of identity.
func TestK09UnchangedToastIsReadAgain(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.exec(c18, c18Row(5))
		run := r.streaming()
		for _, sql := range []string{
			`BEGIN; ` + c18Row(1) + `; UPDATE c18 SET v=2 WHERE id=1; COMMIT`,
			`BEGIN; UPDATE c18 SET v=3 WHERE id=1; UPDATE c18 SET big='s' WHERE id=1; COMMIT`,
			`BEGIN; UPDATE c18 SET v=4 WHERE id=1; UPDATE c18 SET doc=NULL WHERE id=1; COMMIT`,
			`UPDATE c18 SET id=6 WHERE id=5`,
			`BEGIN; UPDATE c18 SET v=7 WHERE id=6; DELETE FROM c18 WHERE id=6; COMMIT`,
		} {
			r.exec(sql)
			r.caughtUp(run)
		}
		same(t, "event", lines(r.drain(run, "c18")),
			`r NOT_APPLICABLE {id:5} {big:<9600> doc:<9602> id:5 nul:- v:1}`,
			`c NOT_APPLICABLE {id:1} {big:<9600> doc:<9602> id:1 nul:- v:1}`,
			`u ABSENT {id:1} {big:~<9600> doc:~<9602> id:1 nul:- v:2}`,
			`u ABSENT {id:1} {big:~"s" doc:~<9602> id:1 nul:- v:3}`,
			`u ABSENT {id:1} {big:"s" doc:~<9602> id:1 nul:- v:3}`,
			`u ABSENT {id:1} {big:"s" doc:~- id:1 nul:- v:4}`,
			`u ABSENT {id:1} {big:"s" doc:- id:1 nul:- v:4}`,
			`d KEY {id:5} old{id:5}`, `x {id:5}`,
			`c KEY {id:6} {big:~<9600> doc:~<9602> id:6 nul:- v:1} old{id:5}`,
			`u ABSENT {id:6} {big:? doc:? id:6 nul:- v:7}`,
			`d KEY {id:6} old{id:6}`, `x {id:6}`)
		r.clean(run)
	})
}

// A key that is itself out of line: no change of key, and no value is missing from it.
func TestF57K09KeyThatIsOutOfLine(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.exec(`CREATE TABLE c18(id text PRIMARY KEY, v int)`,
			`ALTER TABLE c18 ALTER id SET STORAGE EXTERNAL`,
			`INSERT INTO c18 SELECT string_agg(md5(g::text), ''), 1 FROM generate_series(1,78) g`)
		run := r.streaming()
		r.exec(`UPDATE c18 SET v = 2`)
		same(t, "event", lines(r.drain(run, "c18")),
			`r NOT_APPLICABLE {id:<2496>} {id:<2496> v:1}`,
			`u KEY {id:<2496>} {id:<2496> v:2} old{id:<2496>}`)
		r.clean(run)
	})
}

func TestF57K10UnchangedToastUnderFull(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.keys["reselect.unavailable.values"] = "false"
		r.exec(c18, c18Row(1), `ALTER TABLE c18 REPLICA IDENTITY FULL`)
		run := r.streaming()
		const big = `big:<9600> doc:<9602>`
		r.exec(`UPDATE c18 SET v=v+1`, `UPDATE c18 SET id=id+1`, `UPDATE c18 SET big=NULL`,
			`ALTER TABLE c18 REPLICA IDENTITY DEFAULT`, `UPDATE c18 SET id=id+1`, `UPDATE c18 SET v=7`,
			`ALTER TABLE c18 REPLICA IDENTITY FULL`, `UPDATE c18 SET v=8`, `DELETE FROM c18`)
		same(t, "event", lines(r.drain(run, "c18")),
			`r NOT_APPLICABLE {id:1} {`+big+` id:1 nul:- v:1}`,
			`u FULL {id:1} {`+big+` id:1 nul:- v:2} before{`+big+` id:1 nul:- v:1} old{id:1}`,
			`d FULL {id:1} before{`+big+` id:1 nul:- v:2} old{id:1}`, `x {id:1}`,
			`c FULL {id:2} {`+big+` id:2 nul:- v:2} before{`+big+` id:1 nul:- v:2} old{id:1}`,
			`u FULL {id:2} {big:- doc:<9602> id:2 nul:- v:2} before{`+big+` id:2 nul:- v:2} old{id:2}`,
			`d KEY {id:2} old{id:2}`, `x {id:2}`,
			`c KEY {id:3} {big:- doc:? id:3 nul:- v:2} old{id:2}`,
			`u ABSENT {id:3} {big:- doc:? id:3 nul:- v:7}`,
			`u FULL {id:3} {big:- doc:<9602> id:3 nul:- v:8}`+
				` before{big:- doc:<9602> id:3 nul:- v:7} old{id:3}`,
			`d FULL {id:3} before{big:- doc:<9602> id:3 nul:- v:8} old{id:3}`, `x {id:3}`)
		if n := len(r.schemas(r.topic("c18") + "-value")); n != 1 {
			t.Errorf("%d versions of the schema: it depends on the replica identity", n)
		}
		r.clean(run)
	})
}

func TestK11DeleteWithNotNullColumns(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.exec(`CREATE TABLE c22(id int PRIMARY KEY, name text NOT NULL, qty int NOT NULL DEFAULT 5)`,
			`INSERT INTO c22 VALUES (9,'before',1)`)
		run := r.streaming()
		r.exec(`INSERT INTO c22 VALUES (1,'n',2)`, `DELETE FROM c22`)
		same(t, "event", lines(r.drain(run, "c22")),
			`r NOT_APPLICABLE {id:9} {id:9 name:"before" qty:1}`,
			`c NOT_APPLICABLE {id:1} {id:1 name:"n" qty:2}`,
			`d KEY {id:9} old{id:9}`, `x {id:9}`, `d KEY {id:1} old{id:1}`, `x {id:1}`)
		r.clean(run)
	})
}

// foldsTo holds what a table's topic folds to against the table, whose rows sql prints like fold.
func (r *rig) foldsTo(run *running, table, sql string) {
	r.t.Helper()
	got := fold(r.t, r.drain(run, table))
	rows, err := r.sql.Query(r.t.Context(), sql)
	if err != nil {
		r.t.Fatal(err)
	}
	defer rows.Close()
	var want []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			r.t.Fatal(err)
		}
		want = append(want, text)
	}
	if rows.Err() != nil {
		r.t.Fatal(rows.Err())
	}
	slices.Sort(want)
	have := slices.Sorted(maps.Values(got))
	same(r.t, "row of "+table, have, want...)
}

func TestK12PrimaryKeyUpdate(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.exec(`CREATE TABLE c23(a int, b int, v text, PRIMARY KEY(a,b))`,
			`INSERT INTO c23 VALUES (1,1,'x'),(2,1,'y')`)
		run := r.streaming()
		r.exec(`UPDATE c23 SET b=7 WHERE a=1`,
			`BEGIN; UPDATE c23 SET a=a+100; UPDATE c23 SET a=a-100; COMMIT`,
			`BEGIN; INSERT INTO c23 VALUES (5,5,'t'); UPDATE c23 SET a=6 WHERE a=5; COMMIT`,
			`UPDATE c23 SET v='z' WHERE a=2`)
		events := r.drain(run, "c23")
		same(t, "event", lines(events[:5]),
			`r NOT_APPLICABLE {a:1 b:1} {a:1 b:1 v:"x"}`, `r NOT_APPLICABLE {a:2 b:1} {a:2 b:1 v:"y"}`,
			`d KEY {a:1 b:1} old{a:1 b:1}`, `x {a:1 b:1}`,
			`c KEY {a:1 b:7} {a:1 b:7 v:"x"} old{a:1 b:1}`)
		same(t, "event", lines(events[17:]), `c NOT_APPLICABLE {a:5 b:5} {a:5 b:5 v:"t"}`,
			`d KEY {a:5 b:5} old{a:5 b:5}`, `x {a:5 b:5}`,
			`c KEY {a:6 b:5} {a:6 b:5 v:"t"} old{a:5 b:5}`, `u ABSENT {a:2 b:1} {a:2 b:1 v:"z"}`)
		if got := ops(events[5:17]); got != strings.Repeat("dxc", 4) {
			t.Errorf("the transaction is %s, want four times dxc", got)
		}
		r.foldsTo(run, "c23", `SELECT format('{a:%s b:%s v:"%s"}', a, b, v) FROM c23`)
		r.clean(run)
	})
}

// A deferrable primary key may hold twice between two rows of a statement. It identifies rows under
// FULL only, and there each row's delete and create must not undo its neighbour's.
func TestK12SwapOfADeferrableKeyUnderFull(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.exec(`CREATE TABLE c23(a int PRIMARY KEY DEFERRABLE, v text)`,
			`ALTER TABLE c23 REPLICA IDENTITY FULL`, `INSERT INTO c23 VALUES (1,'x'),(2,'y')`)
		run := r.streaming()
		r.exec(`UPDATE c23 SET a = 3 - a`)
		events := r.drain(run, "c23")
		if events[0].key != nil {
			r.foldsTo(run, "c23", `SELECT format('{a:%s v:"%s"}', a, v) FROM c23`)
		}
		same(t, "event", lines(events),
			`r NOT_APPLICABLE - {a:1 v:"x"}`, `r NOT_APPLICABLE - {a:2 v:"y"}`,
			`u FULL - {a:2 v:"x"} before{a:1 v:"x"}`, `u FULL - {a:1 v:"y"} before{a:2 v:"y"}`)
		r.clean(run)
	})
}

func TestF56K13IdentityUsingIndex(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.exec(`CREATE TABLE c24(id int PRIMARY KEY, k int NOT NULL, v text)`,
			`CREATE UNIQUE INDEX c24_k ON c24(k)`, `ALTER TABLE c24 REPLICA IDENTITY USING INDEX c24_k`,
			`INSERT INTO c24 VALUES (0,5,'s')`)
		r.keys["catalog.check.interval.ms"] = "100"
		run := r.streaming()
		r.exec(`INSERT INTO c24 VALUES (1,10,'a')`, `UPDATE c24 SET v='b' WHERE k=10`,
			`UPDATE c24 SET id=77 WHERE k=10`, `UPDATE c24 SET k=11 WHERE k=10`,
			`DELETE FROM c24 WHERE k=11`)
		same(t, "event", lines(r.drain(run, "c24")),
			`r NOT_APPLICABLE {k:5} {id:0 k:5 v:"s"}`, `c NOT_APPLICABLE {k:10} {id:1 k:10 v:"a"}`,
			`u ABSENT {k:10} {id:1 k:10 v:"b"}`, `u ABSENT {k:10} {id:77 k:10 v:"b"}`,
			`d KEY {k:10} old{k:10}`, `x {k:10}`, `c KEY {k:11} {id:77 k:11 v:"b"} old{k:10}`,
			`d KEY {k:11} old{k:11}`, `x {k:11}`)
		r.exec(`DROP INDEX c24_k`)
		r.until(run, "the table is named in a reason", func() bool {
			return strings.Contains(strings.Join(run.c.Status().Reasons, "\n"), "public.c24")
		})
		r.clean(run)
	})
}

// Tables whose UPDATE and DELETE would fail in the application are refused before they are
// published, each named.
func TestF56K13IdentitiesThatCannotServe(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.exec(`CREATE TABLE dropped(id int PRIMARY KEY, k int NOT NULL UNIQUE)`,
			`ALTER TABLE dropped REPLICA IDENTITY USING INDEX dropped_k_key`,
			`ALTER TABLE dropped DROP CONSTRAINT dropped_k_key`,
			`CREATE TABLE deferred(id int PRIMARY KEY DEFERRABLE)`, `CREATE TABLE nokey(x int)`,
			`CREATE TABLE nothing(id int PRIMARY KEY)`, `ALTER TABLE nothing REPLICA IDENTITY NOTHING`,
			`CREATE TABLE fine(id int PRIMARY KEY)`)
		text := r.ends(r.start(), fault.ReplicaIdentityUnusable, "public.dropped", "public.deferred",
			"public.nokey", "public.nothing")
		if strings.Contains(text, "fine") {
			t.Error(text)
		}
		// The application's statements go on.
		for _, table := range []string{"dropped", "deferred", "nokey", "nothing"} {
			r.exec(`INSERT INTO `+table+` SELECT 1 FROM generate_series(1,0)`, `DELETE FROM `+table)
		}
	})
}
