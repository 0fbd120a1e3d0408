package cases_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/testenv"
)

// 294247-01-10 04:00:54.775807 is the last that 64-bit microseconds hold; PostgreSQL goes on.
func TestF57K02InfinityInDateAndTimestamps(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.exec(`CREATE TABLE c03(id int PRIMARY KEY, d date, ts timestamp, tz timestamptz,
			da date[], dr daterange)`)
		r.values("c03", `INSERT INTO c03 VALUES
			(1,'infinity','-infinity','infinity','{infinity,2000-01-01}','[2000-01-01,infinity]'),
			(2,'-infinity','infinity','-infinity','{}',NULL),
			(3,'5874897-12-31','294247-01-10 04:00:54.775807','294247-01-10 04:00:54.775808+00',NULL,NULL),
			(4,'4713-01-01 BC','294276-12-31 23:59:59.999999','0001-12-31 BC',NULL,NULL),
			(5,'1969-12-31','1969-12-31 23:59:59.999999','1970-01-01 00:00:00.000001+00',NULL,NULL)`,
			`{d:!infinity da:!{infinity,2000-01-01} dr:"[2000-01-01,infinity]" id:1 ts:!-infinity`+
				` tz:!infinity}`,
			`{d:!-infinity da:[] dr:- id:2 ts:!infinity tz:!-infinity}`,
			`{d:5874897-12-31T00:00:00Z da:- dr:- id:3 ts:9223372036854775807`+
				` tz:!294247-01-10 04:00:54.775808+00}`,
			`{d:-4712-01-01T00:00:00Z da:- dr:- id:4 ts:!294276-12-31 23:59:59.999999`+
				` tz:0000-12-31T00:00:00Z}`,
			`{d:1969-12-31T00:00:00Z da:- dr:- id:5 ts:-1 tz:1970-01-01T00:00:00.000001Z}`,
		)
	})
}

func TestF57K03TimesAndIntervals(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.exec(`CREATE TABLE c05(id int PRIMARY KEY, t time, z timetz, i interval, ta time[])`)
		r.values("c05", `INSERT INTO c05 VALUES
			(1,'24:00','24:00:00+05:30','-1 year -2 mons +3 days -04:05:06.000007','{24:00}'),
			(2,'00:00','13:14:15.123456-15:59:59','1 day -1 sec','{00:00:01,NULL}'),
			(3,'23:59:59.999999','00:00+15:59','178000000 years',NULL),
			(4,NULL,'08:00+00','00:00:00.000001',NULL),
			(5,'12:00:00.1','08:00:00.5+00','25:00:00',NULL),
			(6,NULL,NULL,'0',NULL)`,
			`{i:"P-1Y-2M3DT-4H-5M-6.000007S" id:1 t:!24:00:00 ta:!{24:00:00} z:"24:00:00+05:30"}`,
			`{i:"P1DT-1S" id:2 t:0s ta:[1s -] z:"13:14:15.123456-15:59:59"}`,
			`{i:"P178000000Y" id:3 t:23h59m59.999999s ta:- z:"00:00:00+15:59"}`,
			`{i:"PT0.000001S" id:4 t:- ta:- z:"08:00:00+00"}`,
			`{i:"PT25H" id:5 t:12h0m0.1s ta:- z:"08:00:00.5+00"}`,
			`{i:"PT0S" id:6 t:- ta:- z:-}`,
		)
	})
}

// Infinite intervals are text like any other, and never a finite one.
func TestF57K03InfiniteIntervals(t *testing.T) {
	onVersions(t, 17, "infinite intervals", func(t *testing.T, r *rig) {
		r.exec(`CREATE TABLE c05(id int PRIMARY KEY, i interval)`)
		r.values("c05", `INSERT INTO c05 VALUES (1,'infinity'),(2,'-infinity')`,
			`{i:"infinity" id:1}`, `{i:"-infinity" id:2}`)
	})
}

const c06 = `CREATE TABLE c06(id int PRIMARY KEY, d date, ts timestamp, tz timestamptz, i interval,
	b bytea, f float8, f4 real, s text, m money, tr tstzrange, tza timestamptz[], j jsonb, x xml)`

const c06Row = `INSERT INTO c06 VALUES (1,'2024-03-01','2024-03-01 01:02:03','2024-03-10 07:30+00',
	'-1 mon','\xdeadbeef00',0.1::float8+0.2::float8,0.1,E'\u00e9','-1234.56',
	'[2024-03-10 07:30+00,)','{2024-03-10 07:30+00}','{"a": 0.30}','<?xml version="1.0"?><a/>')`

const c06Want = `{b:0xdeadbeef00 d:2024-03-01T00:00:00Z f:0.30000000000000004 f4:0.1 i:"P-1M" id:1` +
	` j:"{\"a\": 0.30}" m:-1234.56d s:"é" tr:"[\"2024-03-10 07:30:00+00\",)" ts:1709254923000000` +
	` tz:2024-03-10T07:30:00Z tza:[2024-03-10T07:30:00Z] x:"<a/>"}`

// Settings of the database and of the role change no byte: they are pinned on all connections.
func TestK04OutputSettingsOfDatabaseAndRole(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.exec(c06)
		r.hostile()
		r.values("c06", c06Row, c06Want)
	})
}

// The same for values that are read again: all that can be stored out of line is, in a row that is
// too long without.
func TestK04ValuesThatAreReadAgain(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.exec(`CREATE TABLE c06(id int PRIMARY KEY, v int, fill text, b bytea, s text, n numeric,
				na numeric(40,2)[], nr numrange, tza timestamptz[], ia interval[], fa float8[],
				ba bytea[], j jsonb, x xml, ma money[], re regclass[]) WITH (toast_tuple_target = 128)`,
			`ALTER TABLE c06 ALTER fill SET STORAGE PLAIN`,
			`DO $$ DECLARE c text; BEGIN FOREACH c IN ARRAY
				'{b,s,n,na,nr,tza,ia,fa,ba,j,x,ma,re}'::text[] LOOP
				EXECUTE 'ALTER TABLE c06 ALTER ' || c || ' SET STORAGE EXTERNAL'; END LOOP; END $$`)
		r.hostile()
		const insert = `INSERT INTO c06 SELECT 1, 1, repeat('f', 2100),
			'\xdeadbeef00deadbeef00deadbeef00deadbeef00deadbeef00deadbeef00',
			E'q"\\u00e9\t\\\\N {} \u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9',
			'-12345678901234567890123456789012345678901234567890.50', '{1.5,NULL,-2,3,4}',
			'[12345678901234567890123456789.5,)', '{2024-03-10 07:30+00,infinity,-infinity}',
			'{-1 mon,1 day -1 sec}', array[0.1::float8+0.2::float8,'nan','-infinity'],
			array['\xdeadbeef00deadbeef'::bytea,'\xff'], '{"a": 0.30, "b": "0123456789012345"}',
			'<a b="0123456789">0123456789</a>', '{-1234.56,7,8}',
			'{pg_class,pg_type,pg_proc,pg_attribute}'`
		r.exec(insert)
		run := r.streaming()
		r.exec("DELETE FROM c06", insert, "UPDATE c06 SET v = 1")
		var afters []string
		for _, e := range r.drain(run, "c06") {
			if after := e.after(); after != "" {
				afters = append(afters, after)
			}
		}
		if len(afters) != 3 {
			t.Fatalf("%d events: %s", len(afters), afters)
		}
		same(t, "snapshot and insert", afters[:1], afters[1])
		if n := strings.Count(afters[2], ":~"); n != 13 {
			t.Errorf("%d columns were read again, want 13: %s", n, afters[2])
		}
		same(t, "read again", []string{strings.ReplaceAll(afters[2], ":~", ":")}, afters[1])
		r.clean(run)
	})
}

// hostile gives the database, and the role that the connector gets, settings that change what
// PostgreSQL prints.
func (r *rig) hostile() {
	r.t.Helper()
	role := "role_" + r.db
	r.exec(`CREATE ROLE ` + role + ` SUPERUSER LOGIN PASSWORD 'secret'`)
	r.t.Cleanup(func() {
		err := r.pg.Exec(context.Background(), r.db, `DROP OWNED BY `+role+`; DROP ROLE `+role)
		if err != nil {
			r.t.Error(err)
		}
	})
	for setting, value := range map[string]string{
		"datestyle": "'German, DMY'", "intervalstyle": "'sql_standard'", "bytea_output": "'escape'",
		"extra_float_digits": "-2", "timezone": "'America/New_York'",
		"client_encoding": "'LATIN1'",
		"search_path":     "'public'", "standard_conforming_strings": "off", "xmloption": "'document'",
		"quote_all_identifiers":         "on",
		"default_transaction_isolation": "'serializable'",
	} {
		r.exec(`ALTER DATABASE `+r.db+` SET `+setting+` = `+value,
			`ALTER ROLE `+role+` SET `+setting+` = `+value)
	}
	r.keys["database.user"], r.keys["database.password"] = role, "secret"
}

// A session that may only read says what somebody else has to make, and is enough from then on.
func TestK04ReadOnlySessions(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.exec(`CREATE TABLE c06(id int PRIMARY KEY)`,
			`ALTER DATABASE `+r.db+` SET default_transaction_read_only = on`)
		r.ends(r.start(), fault.PrivilegeMissing, "CREATE PUBLICATION", `"public"."c06"`,
			"publication.autocreate.mode")
		r.exec(`CREATE PUBLICATION dbz_publication FOR TABLE c06`)
		r.keys["publication.name"], r.keys["publication.autocreate.mode"] = "dbz_publication", "disabled"
		r.keys["heartbeat.interval.ms"], r.keys["idle.advance.after.ms"] = "100", "-1"
		r.values("c06", `INSERT INTO c06 VALUES (1)`, `{id:1}`)
		if strings.Contains(r.log.String(), "level=ERROR msg=heartbeat") {
			t.Error(r.log.String())
		}
	})
}

func TestK04OnADefaultServer(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.exec(c06)
		r.values("c06", c06Row, c06Want)
	})
}

// newDatabase is a database of another encoding.
func newDatabase(t *testing.T, pg *testenv.Postgres, like, encoding string) string {
	t.Helper()
	name := like + "_" + strings.ToLower(encoding)
	err := pg.Exec(t.Context(), "postgres", `CREATE DATABASE `+name+` TEMPLATE template0 ENCODING '`+
		encoding+`' LC_COLLATE 'C' LC_CTYPE 'C'`)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pg.DropDatabase(context.Background(), name); err != nil {
			t.Error(err)
		}
	})
	return name
}

func TestF57K04Latin1Database(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r = newRigIn(t, r.pg, newDatabase(t, r.pg, r.db, "LATIN1"))
		r.exec(`SET client_encoding = 'UTF8'`, c06, `ALTER TABLE c06 RENAME s TO "sé"`)
		r.values("c06", c06Row, strings.Replace(c06Want, " s:", " s_x00E9_:", 1))
	})
}

// A database without an encoding holds any bytes: what is UTF-8 passes, other bytes are flagged
// with their hexadecimal digits, and an Avro string is never broken.
func TestF57K04DatabaseWithoutEncoding(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r = newRigIn(t, r.pg, newDatabase(t, r.pg, r.db, "SQL_ASCII"))
		r.exec(`CREATE TABLE c06(id int PRIMARY KEY, s text, a text[])`)
		r.values("c06", `INSERT INTO c06 VALUES (1, E'\xc3\xa9', ARRAY[E'\xc3\xa9']),
			(2, E'a\xe9b', ARRAY['ok', E'\xe9'])`,
			`{a:["é"] id:1 s:"é"}`, `{a:!\x7b6f6b2ce97d id:2 s:!\x61e962}`)
	})
}

func TestF57K05Arrays(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.exec(`CREATE TABLE c09(id int PRIMARY KEY, t text[], i int[], b box[], j jsonb[], y bytea[])`)
		r.values("c09", `INSERT INTO c09 VALUES
			(1,ARRAY['a,b','q"x','NULL',NULL,'','back\slash',' sp ','{}'],'{1,NULL,3}',
				ARRAY['(3,4),(1,2)'::box,'(7,8),(5,6)'::box],
				ARRAY['{"k":"v,\"x"}'::jsonb,'null'::jsonb,NULL],ARRAY['\x00'::bytea,'\xff22'::bytea]),
			(2,'{}','[0:2]={7,8,9}',NULL,'{}','{}'),
			(3,ARRAY[''],'{{1,2},{NULL,4}}',NULL,NULL,NULL),
			(4,NULL,'[-1:0][2:3]={{1,2},{3,4}}',NULL,NULL,NULL),
			(5,ARRAY['null','Null',E'tab\t',E'new\nline','[1:1]={x}'],'[1:1]={5}',NULL,NULL,NULL)`,
			`{b:["(3,4),(1,2)" "(7,8),(5,6)"] i:[1 - 3] id:1 j:["{\"k\": \"v,\\\"x\"}" "null" -]`+
				` t:["a,b" "q\"x" "NULL" - "" "back\\slash" " sp " "{}"] y:[0x00 0xff22]}`,
			`{b:- i:![0:2]={7,8,9} id:2 j:[] t:[] y:[]}`,
			`{b:- i:!{{1,2},{NULL,4}} id:3 j:- t:[""] y:-}`,
			`{b:- i:![-1:0][2:3]={{1,2},{3,4}} id:4 j:- t:- y:-}`,
			`{b:- i:[5] id:5 j:- t:["null" "Null" "tab\t" "new\nline" "[1:1]={x}"] y:-}`,
		)
		if n := len(r.schemas(r.topic("c09") + "-value")); n != 1 {
			t.Errorf("%d versions of the schema: it depends on the rows", n)
		}
	})
}

const k06DDL = `CREATE EXTENSION hstore; CREATE EXTENSION ltree; CREATE EXTENSION citext;
	CREATE DOMAIN d1 AS int CHECK(VALUE>0); CREATE DOMAIN d2 AS d1; CREATE DOMAIN amt AS numeric(8,3);
	CREATE TYPE addr AS (street text, zip int); CREATE TYPE mood AS ENUM ('so so', 'ok');
	CREATE DOMAIN list AS int[]; CREATE DOMAIN dmood AS mood;
	CREATE TABLE c11(id int PRIMARY KEY, d d2, m amt, c addr, ca addr[], h hstore, l ltree, ci citext,
		cia citext[], da d1[], r int4range, mr int4multirange, tr tstzrange, x xml, tsv tsvector,
		ch char(5), q "char", o oid, ip inet, p point,
		e mood, ea mood[], dm dmood, li list, ha hstore[], ma amt[], bt bit(3), u uuid[], vb varbit)`

func TestF57K06DomainsCompositesExtensions(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.exec(k06DDL)
		r.values("c11", `INSERT INTO c11 VALUES
			(1,7,1.5,ROW('1 "Q" st, x',NULL),ARRAY[ROW('a',1)::addr,NULL],'a=>1,b=>NULL,"c d"=>"x\"y"',
				'Top.Sci','MiXed','{Ab,NULL}','{1,2}','(0,5]','{[1,3),[5,7)}','[2020-01-01,infinity)',
				'<a/>','fat:2','ab','x',4294967295,'10.0.0.1/8','(1.5,-2)',
				'so so','{ok,"so so",NULL}','ok','{1,NULL}',ARRAY['a=>1'::hstore,NULL],'{1.5,NULL}',
				'101','{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}','01'),
			(2,NULL,NULL,ROW(NULL,NULL),'{}','','','','{}','{}','empty','{}','(,)',NULL,'','','',0,NULL,
				NULL,NULL,'{}',NULL,'{}','{}','{}',NULL,'{}','')`,
			`{bt:"101" c:"(\"1 \"\"Q\"\" st, x\",)" ca:["(a,1)" -] ch:"ab   " ci:"MiXed" cia:["Ab" -]`+
				` d:7 da:[1 2] dm:"ok" e:"so so" ea:["ok" "so so" -] h:map{a:"1" b:- c d:"x\"y"}`+
				` ha:[map{a:"1"} -] id:1 ip:"10.0.0.1/8" l:"Top.Sci" li:[1 -] m:1.5d ma:[1.5d -]`+
				` mr:"{[1,3),[5,7)}" o:4294967295 p:"(1.5,-2)" q:"x" r:"[1,6)"`+
				` tr:"[\"2020-01-01 00:00:00+00\",infinity)" tsv:"'fat':2"`+
				` u:["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]`+
				` vb:"01" x:"<a/>"}`,
			`{bt:- c:"(,)" ca:[] ch:"     " ci:"" cia:[] d:- da:[] dm:- e:- ea:[] h:map{} ha:[] id:2`+
				` ip:- l:"" li:[] m:- ma:[] mr:"{}" o:0 p:- q:"" r:"empty" tr:"(,)" tsv:"" u:[] vb:"" x:-}`,
		)
	})
}

// What the stream does not announce is in no schema: new labels and attributes come as they are,
// and every later row has all of its columns.
func TestF56K06TypesThatChange(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.exec(`CREATE TYPE mood AS ENUM ('a'); CREATE TYPE addr AS (street text)`,
			`CREATE TABLE c11(id int PRIMARY KEY, e mood, c addr, ea mood[])`,
			`INSERT INTO c11 VALUES (1,'a',ROW('s'),'{a}')`)
		run := r.streaming()
		r.exec(`ALTER TYPE mood ADD VALUE 'b'`, `ALTER TYPE addr ADD ATTRIBUTE zip int`,
			`INSERT INTO c11 VALUES (2,'b',ROW('s',5),'{b,a}')`,
			`ALTER TYPE mood RENAME VALUE 'a' TO 'aa'`, `UPDATE c11 SET c = c WHERE id = 1`)
		same(t, "event", lines(r.drain(run, "c11")),
			`r NOT_APPLICABLE {id:1} {c:"(s)" e:"a" ea:["a"] id:1}`,
			`c NOT_APPLICABLE {id:2} {c:"(s,5)" e:"b" ea:["b" "a"] id:2}`,
			`u ABSENT {id:1} {c:"(s,)" e:"aa" ea:["aa"] id:1}`)
		if n := len(r.schemas(r.topic("c11") + "-value")); n != 1 {
			t.Errorf("%d versions of the schema, want 1", n)
		}
		r.clean(run)
	})
}

// A type that is made while the connector streams is resolved like one that was there before.
func TestF56K06TypeMadeWhileStreaming(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.exec(`CREATE TABLE c11(id int PRIMARY KEY)`)
		run := r.streaming()
		r.exec(`CREATE DOMAIN amt AS numeric(8,3); CREATE TYPE mood AS ENUM ('a')`,
			`ALTER TABLE c11 ADD COLUMN m amt, ADD COLUMN e mood[], ADD COLUMN ma amt[]`,
			`INSERT INTO c11 VALUES (1, 1.5, '{a}', '{2}')`)
		same(t, "event", lines(r.drain(run, "c11")),
			`c NOT_APPLICABLE {id:1} {e:["a"] id:1 m:1.5d ma:[2d]}`)
		r.clean(run)
	})
}

func TestK06Vector(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		if r.query(`SELECT count(*)::text FROM pg_available_extensions WHERE name = 'vector'`) == "0" {
			t.Skip("the server's distribution has no pgvector")
		}
		r.exec(`CREATE EXTENSION vector`, `CREATE TABLE v(id int PRIMARY KEY, v vector(3))`)
		r.values("v", `INSERT INTO v VALUES (1,'[1,2.5,-3]')`, `{id:1 v:[1 2.5 -3]}`)
	})
}

// hasNoColumn fails if a version of a subject's schema has one of the columns.
func (r *rig) hasNoColumn(subject string, columns ...string) {
	r.t.Helper()
	for _, text := range r.schemas(subject) {
		if i := slices.IndexFunc(columns, func(c string) bool {
			return strings.Contains(text, `"`+c+`"`)
		}); i >= 0 {
			r.t.Errorf("the schema of %s has column %s", subject, columns[i])
		}
	}
}
