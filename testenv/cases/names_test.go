package cases_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

func TestK07PublicationColumnList(t *testing.T) {
	onVersions(t, 15, "column lists", func(t *testing.T, r *rig) {
		r.keys["publication.name"], r.keys["publication.autocreate.mode"] = "p14", "disabled"
		r.exec(`CREATE TABLE c14(id int PRIMARY KEY, a text, secret text, z text)`,
			`CREATE PUBLICATION p14 FOR TABLE c14 (id, a, z)`,
			`INSERT INTO c14 VALUES (0,'w','pii0','zz')`)
		run := r.streaming()
		r.exec(`INSERT INTO c14 VALUES (1,'x','pii','z')`, `UPDATE c14 SET secret='p2' WHERE id=1`,
			`ALTER TABLE c14 ADD COLUMN n int`, `INSERT INTO c14 VALUES (2,'y','q','z',5)`,
			`UPDATE c14 SET id=3 WHERE id=2`, `DELETE FROM c14 WHERE id=1`)
		same(t, "event", lines(r.drain(run, "c14")),
			`r NOT_APPLICABLE {id:0} {a:"w" id:0 z:"zz"}`,
			`c NOT_APPLICABLE {id:1} {a:"x" id:1 z:"z"}`,
			`u ABSENT {id:1} {a:"x" id:1 z:"z"}`,
			`c NOT_APPLICABLE {id:2} {a:"y" id:2 z:"z"}`,
			`d KEY {id:2} old{id:2}`, `x {id:2}`,
			`c KEY {id:3} {a:"y" id:3 z:"z"} old{id:2}`,
			`d KEY {id:1} old{id:1}`, `x {id:1}`)
		r.hasNoColumn(r.topic("c14")+"-value", "secret", "n")
		r.clean(run)
		if id := r.query(`SELECT relreplident::text FROM pg_class WHERE relname = 'c14'`); id != "d" {
			t.Errorf("the connector changed the replica identity to %s", id)
		}
	})
}

// A row filter counts for the snapshot as for the stream; a row that leaves it is a delete.
func TestK07RowFilter(t *testing.T) {
	onVersions(t, 15, "row filters", func(t *testing.T, r *rig) {
		r.keys["publication.name"], r.keys["publication.autocreate.mode"] = "p14", "disabled"
		r.exec(`CREATE TABLE c14(id int, public bool, v text, PRIMARY KEY (id, public))`,
			`CREATE PUBLICATION p14 FOR TABLE c14 WHERE (public AND id > 0)`,
			`INSERT INTO c14 VALUES (1,true,'a'),(2,false,'b'),(-3,true,'c')`)
		run := r.streaming()
		r.exec(`UPDATE c14 SET public = true WHERE id = 2`, `UPDATE c14 SET public = false WHERE id = 1`,
			`INSERT INTO c14 VALUES (4,false,'d')`)
		same(t, "event", lines(r.drain(run, "c14")),
			`r NOT_APPLICABLE {id:1 public:true} {id:1 public:true v:"a"}`,
			`c NOT_APPLICABLE {id:2 public:true} {id:2 public:true v:"b"}`,
			`d KEY {id:1 public:true} old{id:1 public:true}`, `x {id:1 public:true}`)
		r.clean(run)
	})
}

// Generated columns are in neither path, unless a publication of 18 says otherwise.
func TestK07GeneratedColumns(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.exec(`CREATE TABLE g(id int PRIMARY KEY, a int, s int GENERATED ALWAYS AS (a*2) STORED)`,
			`INSERT INTO g VALUES (1, 2)`)
		run := r.streaming()
		r.exec(`INSERT INTO g VALUES (2, 3)`, `UPDATE g SET a = 4 WHERE id = 1`)
		same(t, "event", lines(r.drain(run, "g")), `r NOT_APPLICABLE {id:1} {a:2 id:1}`,
			`c NOT_APPLICABLE {id:2} {a:3 id:2}`, `u ABSENT {id:1} {a:4 id:1}`)
		r.clean(run)
	})
}

func TestK07GeneratedColumnsThatArePublished(t *testing.T) {
	onVersions(t, 18, "published generated columns", func(t *testing.T, r *rig) {
		r.keys["publication.name"], r.keys["publication.autocreate.mode"] = "p14", "disabled"
		r.exec(`CREATE TABLE g(id int PRIMARY KEY, a int, s int GENERATED ALWAYS AS (a*2) STORED)`,
			`CREATE PUBLICATION p14 FOR TABLE g WITH (publish_generated_columns = stored)`)
		r.values("g", `INSERT INTO g VALUES (1, 2)`, `{a:2 id:1 s:4}`)
	})
}

// From 18 on, publishing a table with identity FULL without its generated columns breaks the
// application's UPDATE and DELETE; so it is not published.
func TestK07GeneratedColumnsUnderFull(t *testing.T) {
	onVersions(t, 18, "refusal of generated columns in a replica identity",
		func(t *testing.T, r *rig) {
			r.exec(`CREATE TABLE g(id int PRIMARY KEY, a int, s int GENERATED ALWAYS AS (a*2) STORED)`,
				`CREATE TABLE v(id int PRIMARY KEY, a int, s int GENERATED ALWAYS AS (a*2) VIRTUAL)`,
				`ALTER TABLE g REPLICA IDENTITY FULL`, `ALTER TABLE v REPLICA IDENTITY FULL`,
				`INSERT INTO g VALUES (1, 2)`, `INSERT INTO v VALUES (1, 2)`)
			text := r.ends(r.start(), fault.ReplicaIdentityUnusable, "public.g, public.v",
				"publish_generated_columns")
			r.exec(`UPDATE g SET a = 3`, `DELETE FROM v`)
			r.exec(`CREATE PUBLICATION dbz_publication FOR TABLE g
				WITH (publish_generated_columns = stored)`)
			r.keys["table.include.list"], r.keys["publication.name"] = `public\.g`, "dbz_publication"
			run := r.streaming()
			r.exec(`UPDATE g SET a = 4`)
			same(t, "event after "+text, lines(r.drain(run, "g")),
				`r NOT_APPLICABLE {id:1} {a:3 id:1 s:6}`,
				`u FULL {id:1} {a:4 id:1 s:8} before{a:3 id:1 s:6} old{id:1}`)
			r.clean(run)
		})
}

func TestK08NamesThatAreIllegalElsewhere(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		long := strings.Repeat("é", 40) // PostgreSQL cuts it after 31 of them
		kept := strings.Repeat("é", 31)
		r.keys["table.include.list"] = ".*"
		r.exec(`CREATE SCHEMA "Sch.éma"`,
			`CREATE TABLE "Sch.éma"."Weird $Table-名"("Id#" int PRIMARY KEY,"a b" text,"a_b" text,`+
				`"a-b" text,"1st" int,"namespace" int,"Name" text,"name" text,"say ""hi""" text,`+
				`"_x0041_" int)`,
			// words that SQL reserves, and that Avro does
			`CREATE TABLE "user"("select" int PRIMARY KEY, "null" text, "record" int, "long" int)`,
			`CREATE TABLE "foo$bar"(id int PRIMARY KEY)`, `CREATE TABLE "foo@bar"(id int PRIMARY KEY)`,
			`CREATE SCHEMA "a.b"`, `CREATE SCHEMA a`,
			`CREATE TABLE "a.b".c(id int PRIMARY KEY)`, `CREATE TABLE a."b.c"(id int PRIMARY KEY)`,
			`CREATE TABLE "`+long+`"(id int PRIMARY KEY)`)
		fill := func(id int) {
			r.exec(fmt.Sprintf(`INSERT INTO "Sch.éma"."Weird $Table-名" VALUES
				(%d,'sp','us','da',1,2,'N','n','q',3)`, id),
				fmt.Sprintf(`INSERT INTO "user" VALUES (%d,'n',4,5)`, id))
			for i, table := range []string{
				`"foo$bar"`, `"foo@bar"`, `"a.b".c`, `a."b.c"`, `"` + kept + `"`,
			} {
				r.exec(fmt.Sprintf(`INSERT INTO %s VALUES (%d)`, table, 10*id+i))
			}
		}
		fill(1)
		run := r.streaming()
		fill(2)
		r.caughtUp(run)
		wide := r.read("shop.Sch_x002E__x00E9_ma.Weird_x0020__x0024_Table-_x540D_")
		const rest = ` Name:"N" _x0031_st:1 _x005F_x0041_:3 a_b:"us" a_x0020_b:"sp" a_x002D_b:"da"` +
			` name:"n" namespace:2 say_x0020__x0022_hi_x0022_:"q"}`
		same(t, "wide", lines(wide),
			`r NOT_APPLICABLE {Id_x0023_:1} {Id_x0023_:1`+rest,
			`c NOT_APPLICABLE {Id_x0023_:2} {Id_x0023_:2`+rest)
		source := wide[1].value["source"].(map[string]any)
		if source["schema"] != "Sch.éma" || source["table"] != "Weird $Table-名" {
			t.Errorf("source says %v.%v", source["schema"], source["table"])
		}
		same(t, "reserved words", lines(r.read("shop.public.user")),
			`r NOT_APPLICABLE {select:1} {long:5 null:"n" record:4 select:1}`,
			`c NOT_APPLICABLE {select:2} {long:5 null:"n" record:4 select:2}`)
		for i, topic := range []string{
			"shop.public.foo_x0024_bar", "shop.public.foo_x0040_bar", "shop.a_x002E_b.c",
			"shop.a.b_x002E_c", "shop.public." + strings.Repeat("_x00E9_", 31),
		} {
			key := func(id int) string { return fmt.Sprintf("{id:%d}", 10*id+i) }
			same(t, topic, lines(r.read(topic)),
				"r NOT_APPLICABLE "+key(1)+" "+key(1), "c NOT_APPLICABLE "+key(2)+" "+key(2))
		}
		r.clean(run)
	})
}

// Topics that Kafka cannot hold or tell apart are refused before anything is made.
func TestK08TopicsThatCollideOrAreTooLong(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.keys["table.include.list"] = ".*"
		r.exec(`CREATE SCHEMA a`, `CREATE SCHEMA a_b`, `CREATE TABLE a.b_c(id int PRIMARY KEY)`,
			`CREATE TABLE a_b.c(id int PRIMARY KEY)`)
		r.ends(r.start(), fault.TopicsCollide, "a.b_c", "a_b.c")
		r.exec(`DROP SCHEMA a_b CASCADE`,
			`CREATE TABLE "`+strings.Repeat("ü", 31)+`"(id int PRIMARY KEY)`)
		r.keys["topic.prefix"] = strings.Repeat("p", 40)
		r.ends(r.start(), fault.TopicsCollide, "249", strings.Repeat("ü", 31))
		if n := r.query(`SELECT count(*)::text FROM pg_publication`); n != "0" {
			t.Error("a publication was made")
		}
		if n := r.query(`SELECT count(*)::text FROM pg_replication_slots WHERE slot_name = $1`,
			r.slot()); n != "0" {
			t.Error("a slot was made")
		}
	})
}

// The same while the connector streams: a table that comes later stops it instead of sharing.
func TestK08TopicThatCollidesLater(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.keys["table.include.list"], r.keys["publication.autocreate.mode"] = ".*", "all_tables"
		r.exec(`CREATE SCHEMA a`, `CREATE SCHEMA a_b`, `CREATE TABLE a.b_c(id int PRIMARY KEY)`,
			`INSERT INTO a.b_c VALUES (1)`)
		run := r.streaming()
		r.exec(`CREATE TABLE a_b.c(id int PRIMARY KEY)`, `INSERT INTO a_b.c VALUES (2)`)
		r.ends(run, fault.TopicsCollide, "a_b.c")
		if got := ops(r.read("shop.a.b_c")); got != "r" {
			t.Errorf("topic of a.b_c holds %q", got)
		}
	})
}

// A name in the configuration that PostgreSQL has cut is the table's name all the same.
func TestK08LongNameInTheConfiguration(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		long := strings.Repeat("é", 40)
		r.keys["table.include.list"] = "public." + long
		r.exec(`CREATE TABLE "`+long+`"(id int PRIMARY KEY)`, `CREATE TABLE other(id int PRIMARY KEY)`,
			`INSERT INTO "`+long+`" VALUES (1)`)
		run := r.streaming()
		r.caughtUp(run)
		if got := ops(r.read("shop.public." + strings.Repeat("_x00E9_", 31))); got != "r" {
			t.Errorf("topic holds %q, want the one row", got)
		}
		r.clean(run)
	})
}
