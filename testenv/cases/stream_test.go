package cases_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// A stray STREAM ABORT in protocol 1 is in decode's TestTypeAndStreamAbortAreConsumed.
func TestF58K19SavepointsInALargeTransaction(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.exec(`ALTER DATABASE `+r.db+` SET logical_decoding_work_mem = '64kB'`,
			`CREATE TABLE c37(id int PRIMARY KEY, v text)`)
		run := r.streaming()
		r.exec(`BEGIN; INSERT INTO c37 SELECT g,repeat('x',100) FROM generate_series(1,400) g;
			SAVEPOINT a;
			INSERT INTO c37 SELECT g,repeat('y',100) FROM generate_series(1001,1400) g; ROLLBACK TO a;
			INSERT INTO c37 SELECT g,'z' FROM generate_series(2001,2005) g; COMMIT`,
			`BEGIN; INSERT INTO c37 VALUES (99999,'never'); ROLLBACK`)
		events := r.drain(run, "c37")
		var want []string
		for i := 1; i <= 400; i++ {
			want = append(want, fmt.Sprintf(`c NOT_APPLICABLE {id:%d} {id:%d v:<100>}`, i, i))
		}
		for i := 2001; i <= 2005; i++ {
			want = append(want, fmt.Sprintf(`c NOT_APPLICABLE {id:%d} {id:%d v:"z"}`, i, i))
		}
		same(t, "event", lines(events), want...)
		for i, e := range events {
			if index := e.value["source"].(map[string]any)["event_index"]; index != int64(i) {
				t.Fatalf("event %d has event_index %v", i, index)
			}
		}
		r.clean(run)
	})
}

// Exception blocks, savepoints in savepoints, and DDL that is rolled back with its savepoint: its
// column never was, in no schema.
func TestF58K19NestedSavepointsAndDDL(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.exec(`ALTER DATABASE `+r.db+` SET logical_decoding_work_mem = '64kB'`,
			`CREATE TABLE c37(id int PRIMARY KEY, v text)`)
		run := r.streaming()
		r.exec(`BEGIN;
			INSERT INTO c37 VALUES (1,'a'); SAVEPOINT a;
			INSERT INTO c37 SELECT g,repeat('y',1000) FROM generate_series(100,300) g; SAVEPOINT b;
			INSERT INTO c37 VALUES (2,'b'); RELEASE b; SAVEPOINT c; INSERT INTO c37 VALUES (3,'c');
			ROLLBACK TO a; INSERT INTO c37 VALUES (4,'d'); SAVEPOINT e;
			ALTER TABLE c37 ADD COLUMN gone int; INSERT INTO c37 VALUES (5,'e',5); ROLLBACK TO e;
			INSERT INTO c37 VALUES (6,'f'); SAVEPOINT g; ALTER TABLE c37 ADD COLUMN kept int;
			INSERT INTO c37 VALUES (7,'g',7); RELEASE g; INSERT INTO c37 VALUES (8,'h',8); COMMIT`,
			`DO $$ BEGIN
				INSERT INTO c37 VALUES (9,'i',9);
				BEGIN INSERT INTO c37 VALUES (10,'j',10); RAISE 'no'; EXCEPTION WHEN OTHERS THEN NULL; END;
				BEGIN INSERT INTO c37 VALUES (11,'k',11); EXCEPTION WHEN OTHERS THEN NULL; END;
			END $$`)
		same(t, "event", lines(r.drain(run, "c37")),
			`c NOT_APPLICABLE {id:1} {id:1 v:"a"}`, `c NOT_APPLICABLE {id:4} {id:4 v:"d"}`,
			`c NOT_APPLICABLE {id:6} {id:6 v:"f"}`, `c NOT_APPLICABLE {id:7} {id:7 kept:7 v:"g"}`,
			`c NOT_APPLICABLE {id:8} {id:8 kept:8 v:"h"}`, `c NOT_APPLICABLE {id:9} {id:9 kept:9 v:"i"}`,
			`c NOT_APPLICABLE {id:11} {id:11 kept:11 v:"k"}`)
		r.hasNoColumn(r.topic("c37")+"-value", "gone")
		r.clean(run)
	})
}

func TestF59K20MessageKinds(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.keys["message.prefix.include.list"] = "ctx|only"
		r.exec(`CREATE TYPE e39 AS ENUM('a')`, `CREATE TABLE c39(id int PRIMARY KEY, e e39)`,
			`INSERT INTO c39 VALUES (0,'a')`)
		run := r.streaming()
		g1, g2, o1 := "g1_"+r.db, "g2_"+r.db, "o1_"+r.db
		r.exec(`INSERT INTO c39 VALUES (1,'a')`,
			`BEGIN; SELECT pg_logical_emit_message(true,'ctx','tx'); INSERT INTO c39 VALUES (2,'a');
				SELECT pg_logical_emit_message(false,'ctx','now'); COMMIT`,
			`BEGIN; SELECT pg_logical_emit_message(false,'ctx','kept');
				SELECT pg_logical_emit_message(true,'ctx','gone'); ROLLBACK`,
			`SELECT pg_logical_emit_message(true,'only','x')`,
			`SELECT pg_logical_emit_message(true,'other','not asked for')`,
			`BEGIN; INSERT INTO c39 VALUES (3,'a'); PREPARE TRANSACTION '`+g1+`'`,
			`BEGIN; INSERT INTO c39 VALUES (4,'a'); PREPARE TRANSACTION '`+g2+`'`,
			`ROLLBACK PREPARED '`+g2+`'`, `COMMIT PREPARED '`+g1+`'`,
			`SELECT pg_replication_origin_create('`+o1+`')`,
			`SELECT pg_replication_origin_session_setup('`+o1+`')`, `INSERT INTO c39 VALUES (5,'a')`,
			`SELECT pg_replication_origin_session_reset()`, `SELECT pg_replication_origin_drop('`+o1+`')`)
		events := r.drain(run, "c39")
		var want []string
		for _, id := range []int{1, 2, 3, 5} {
			want = append(want, fmt.Sprintf(`c NOT_APPLICABLE {id:%d} {e:"a" id:%d}`, id, id))
		}
		same(t, "event", lines(events[1:]), want...)
		if got := show(events[4].value["source"].(map[string]any)["origin"]); got != `"`+o1+`"` {
			t.Errorf("origin of the last row is %s", got)
		}
		var messages []string
		for _, e := range r.read("shop.message") {
			m := row(e.value["message"])
			messages = append(messages, fmt.Sprint(e.value["op"], " ", inner(m["prefix"]), " ",
				show(m["content"]), " in a transaction: ", e.value["source"].(map[string]any)["txId"] != nil))
		}
		same(t, "message", messages, `m ctx 0x6e6f77 in a transaction: false`,
			`m ctx 0x7478 in a transaction: true`, `m ctx 0x6b657074 in a transaction: false`,
			`m only 0x78 in a transaction: true`)
		r.clean(run)
		// Nothing comes twice: messages outside of transactions moved no position past a row.
		run = r.streaming()
		if got := ops(r.drain(run, "c39")); got != "rcccc" {
			t.Errorf("after another start the topic holds %s", got)
		}
		r.clean(run)
	})
}

// Names of slots and publications. Foreign slots: connector's TestASlotOfAnotherKindIsRefused.
func TestK27Names(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.exec(`CREATE TABLE c50(id int PRIMARY KEY)`, `INSERT INTO c50 VALUES (1)`)
		for _, name := range []string{"My-Slot", "Slot", "slot.x", strings.Repeat("s", 64)} {
			r.keys["slot.name"] = name
			if _, err := r.settings(); fault.CodeOf(err) != fault.ConfigInvalid ||
				!strings.Contains(err.Error(), "slot.name") {
				t.Errorf("slot.name %s: %v", name, err)
			}
		}
		for i, name := range []string{`MyPub`, `My,"P'ub`} {
			r.keys["slot.name"] = fmt.Sprintf("%s_%d", r.slot(), i)
			r.keys["publication.name"], r.keys["topic.prefix"] = name, fmt.Sprint("shop", i)
			for range 2 { // the second start finds what the first one made
				run := r.streaming()
				r.exec(`DELETE FROM c50`, `INSERT INTO c50 VALUES (1)`)
				r.caughtUp(run)
				r.clean(run)
			}
			if got := ops(r.read(fmt.Sprintf("shop%d.public.c50", i))); got != "rdxcdxc" {
				t.Errorf("publication %s: topic holds %s", name, got)
			}
			if n := r.query(`SELECT count(*)::text FROM pg_publication WHERE pubname = $1`, name); n != "1" {
				t.Errorf("%s publications %s", n, name)
			}
		}
	})
}
