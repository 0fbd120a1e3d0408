package connector_test

import (
	"strings"
	"testing"
)

// The identity of a table is changed between rows: each old row is what the server sent of it.
func TestF56IdentityThatChangesWhileStreaming(t *testing.T) {
	t.Parallel()
	onVersions(t, func(t *testing.T, r *rig) {
		r.onePartition()
		r.exec("CREATE TABLE t (id int PRIMARY KEY, v text, n int NOT NULL UNIQUE)")
		run := r.start()
		r.streaming(run)
		r.exec("INSERT INTO t VALUES (1, 'a', 10)", "UPDATE t SET v = 'b'",
			"ALTER TABLE t REPLICA IDENTITY FULL", "UPDATE t SET v = 'c'",
			"BEGIN; ALTER TABLE t REPLICA IDENTITY DEFAULT; UPDATE t SET v = 'd'; COMMIT",
			"ALTER TABLE t REPLICA IDENTITY FULL", "DELETE FROM t")
		r.caughtUp(run)
		r.clean(run)
		same(t, lines(r.all("shop.public.t")), []string{
			"c NOT_APPLICABLE {id:1} {id:1 n:10 v:a}", "u ABSENT {id:1} {id:1 n:10 v:b}",
			"u FULL {id:1} {id:1 n:10 v:c} before{id:1 n:10 v:b} old{id:1}", "u ABSENT {id:1} {id:1 n:10 v:d}",
			"d FULL {id:1} before{id:1 n:10 v:d} old{id:1}", "x {id:1}",
		})
	})
}

// With no identity the server refuses UPDATE and DELETE; rows that are inserted still come, without
// a key, as of a table that has none.
func TestF56IdentityThatIsTakenAwayWhileStreaming(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.onePartition()
	r.exec(numbers)
	run := r.start()
	r.streaming(run)
	r.exec(insertNumbers(1, 1), "ALTER TABLE t REPLICA IDENTITY NOTHING", insertNumbers(2, 2))
	if _, err := r.sql.Exec(t.Context(), "DELETE FROM t"); err == nil {
		t.Fatal("the server takes a DELETE without an identity")
	}
	r.exec("ALTER TABLE t REPLICA IDENTITY DEFAULT", "DELETE FROM t WHERE id = 1")
	r.caughtUp(run)
	r.clean(run)
	got := strings.Join(lines(r.all("shop.public.t")), ", ")
	if want := "c NOT_APPLICABLE {id:1} {id:1 v:v1}, c NOT_APPLICABLE - {id:2 v:v2}, " +
		"d KEY {id:1} old{id:1}, x {id:1}"; got != want {
		t.Errorf("events %s, want %s", got, want)
	}
}
