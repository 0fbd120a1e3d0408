package cases_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/testenv"
)

// A table as wide as tables can be: 1 600 columns, in snapshot and stream.
func TestATableOf1600Columns(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		columns := []string{"id int PRIMARY KEY"}
		for i := 1; i < 1600; i++ {
			columns = append(columns, fmt.Sprintf("c%d int", i))
		}
		r.exec("CREATE TABLE wide("+strings.Join(columns, ", ")+")",
			"INSERT INTO wide(id, c1, c1599) VALUES (1, 10, 20)")
		run := r.streaming()
		r.exec("UPDATE wide SET c1599 = 21", "DELETE FROM wide")
		got := lines(r.drain(run, "wide"))
		for i, want := range []struct{ begins, holds string }{
			{"r NOT_APPLICABLE {id:1} {c1:10 c10:- ", " c1598:- c1599:20 "},
			{"u ABSENT {id:1} {c1:10 c10:- ", " c1598:- c1599:21 "},
		} {
			if !strings.HasPrefix(got[i], want.begins) || !strings.Contains(got[i], want.holds) ||
				strings.Count(got[i], ":-") != 1597 {
				t.Errorf("event %d is not %s...%s...\n%.200q", i, want.begins, want.holds, got[i])
			}
		}
		if !strings.HasPrefix(got[2], "d KEY {id:1}") {
			t.Errorf("the third event is no delete: %.200q", got[2])
		}
		r.clean(run)
	})
}

// An UPDATE that changes nothing is a change of the log, and an event: who counts versions of a row
// sees it as the server does.
func TestAnUpdateThatChangesNothing(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.exec("CREATE TABLE same(id int PRIMARY KEY, v text)", "INSERT INTO same VALUES (1, 'a')")
		run := r.streaming()
		r.exec("UPDATE same SET v = v", "UPDATE same SET id = id",
			"ALTER TABLE same REPLICA IDENTITY FULL", "UPDATE same SET v = v")
		same(t, "same", lines(r.drain(run, "same")),
			`r NOT_APPLICABLE {id:1} {id:1 v:"a"}`,
			`u ABSENT {id:1} {id:1 v:"a"}`,
			`u ABSENT {id:1} {id:1 v:"a"}`,
			`u FULL {id:1} {id:1 v:"a"} before{id:1 v:"a"} old{id:1}`)
		r.clean(run)
	})
}

// A value of 250 MB, larger than the queue: it passes alone, in snapshot and stream, where the
// topic takes it.
func TestF57AValueOf250Megabytes(t *testing.T) {
	if os.Getenv("TIDEMARK_TEST_ALL") == "" {
		t.Skip("takes a minute and 2 GB; TIDEMARK_TEST_ALL=1 runs it")
	}
	r := newRig(t, testenv.SharedPostgres(t, "18"))
	r.keys["topic.creation.default.max.message.bytes"] = "400000000"
	r.keys["producer.override.max.request.size"] = "400000000"
	r.exec("CREATE TABLE huge(id int PRIMARY KEY, v text)",
		"INSERT INTO huge SELECT 1, repeat('0123456789', 25 * 1024 * 1024)")
	run := r.streaming()
	r.exec("INSERT INTO huge SELECT id + 1, v || 'x' FROM huge", "INSERT INTO huge VALUES (3, 'after')")
	same(t, "huge", lines(r.drain(run, "huge")),
		`r NOT_APPLICABLE {id:1} {id:1 v:<262144000>}`, `c NOT_APPLICABLE {id:2} {id:2 v:<262144001>}`,
		`c NOT_APPLICABLE {id:3} {id:3 v:"after"}`)
	r.clean(run)
}
