package connector_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/testenv"
)

// schemaEvents are the reasons of the announced changes of schemas, in short.
func (r *rig) schemaEvents() (out []string) {
	r.t.Helper()
	for _, e := range r.seen("shop.tidemark-events") {
		_, changes, _ := strings.Cut(e.value["reason"].(string), "-value: ")
		out = append(out, fmt.Sprintf("%s %s %s %v %s", e.value["kind"], e.value["code"],
			e.value["action"], e.value["tables"], changes))
	}
	return out
}

const announced = "schema schema_logical_change announced [public.t] "

// Registries take each of these changes, and a reader with an earlier schema would not notice. What
// was before is known from the session, after a restart from the registry.
func TestALogicalChangeIsAnnounced(t *testing.T) {
	for _, mode := range []string{"disabled", "required"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "18")
			r.onePartition()
			r.extra["exactly.once.support"] = mode
			r.exec("CREATE TABLE t (id int PRIMARY KEY, a numeric(10,2), b timestamp, c numeric(9,2)[])",
				"INSERT INTO t VALUES (1, 1)")
			run := r.start()
			r.streaming(run)
			r.exec("ALTER TABLE t ADD d int, DROP c", "INSERT INTO t VALUES (2, 2)")
			r.exec("ALTER TABLE t ALTER a TYPE numeric(12,4), ALTER b TYPE timestamptz",
				"INSERT INTO t VALUES (3, 3)", "INSERT INTO t VALUES (4, 4)")
			r.exec("ALTER TABLE t ALTER a TYPE numeric(10,2), ALTER b TYPE timestamp",
				"INSERT INTO t VALUES (5, 5)")
			r.caughtUp(run)
			const local, utc = "long as local-timestamp-micros", "long as timestamp-micros"
			want := []string{
				announced + "a was decimal(10,2) and is decimal(12,4); b was " + local + " and is " + utc,
				announced + "a was decimal(12,4) and is decimal(10,2); b was " + utc + " and is " + local,
			}
			same(t, r.schemaEvents(), want)
			if n := metric(t, run, "tidemark_schema_logical_changes_total"); n != 4 {
				t.Errorf("%v columns are counted, want 4", n)
			}
			if n := strings.Count(r.log.String(), "the types of a table's columns change"); n != 2 {
				t.Errorf("%d warnings, want 2", n)
			}
			r.clean(run)

			r.exec("ALTER TABLE t ALTER a TYPE numeric(10,3)", "INSERT INTO t VALUES (6, 6)",
				"ALTER TABLE t ADD c numeric(9,3)[]", "INSERT INTO t VALUES (7, 7)")
			run = r.start()
			r.streaming(run)
			r.caughtUp(run)
			// The version that the table went back to is not the subject's latest.
			want = append(want, announced+"a was decimal(12,4) and is decimal(10,3); b was "+utc+
				" and is "+local,
				announced+"c was array of decimal(9,2) and is array of decimal(9,3) (it comes back)")
			same(t, r.schemaEvents(), want)
			r.clean(run)

			run = r.start()
			r.streaming(run)
			r.exec("INSERT INTO t VALUES (8, 8)")
			r.caughtUp(run)
			r.clean(run)
			same(t, r.schemaEvents(), want)
			sameInts(t, "ids", ids(r.seen("shop.public.t"), "id"), sequence(1, 8))
		})
	}
}

// What the registry refuses is no change of what readers see.
func TestAChangeThatTheRegistryRefusesIsNotAnnounced(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.exec("CREATE TABLE t (id int PRIMARY KEY, a text)", "INSERT INTO t VALUES (1, 1)")
	run := r.start()
	r.streaming(run)
	r.exec("ALTER TABLE t ALTER a TYPE bigint USING 1", "INSERT INTO t VALUES (2, 2)")
	code(t, run.ended(t), fault.SchemaRejected)
	if got := r.schemaEvents(); len(got) != 0 {
		t.Errorf("announced: %v", got)
	}
}

// A registry whose schemas nobody may read is used as before, with a word in the log.
func TestARegistryThatShowsNoSchemaIsUsed(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.onePartition()
	r.forbidReading()
	r.exec(numbers, insertNumbers(1, 3))
	run := r.start()
	r.streaming(run)
	r.caughtUp(run)
	r.clean(run)
	contains(t, r.log.String(), "a schema cannot be compared")
	sameInts(t, "ids", ids(r.all("shop.public.t"), "id"), sequence(1, 3))
	r.extra["schema.logical.change"] = "fail"
	r.exec(insertNumbers(4, 4))
	r.refused(fault.AuthenticationFailed)
}

// With fail nothing of the new schema is sent, the position stays before it, and once a person has
// acted nothing is missing and nothing comes twice but for what was not stored.
func TestALogicalChangeStopsWhereThatIsAsked(t *testing.T) {
	for _, act := range []string{"warn", "registered"} {
		t.Run(act, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "18")
			r.onePartition()
			r.extra["schema.logical.change"] = "fail"
			r.exec("CREATE TABLE t (id int PRIMARY KEY, a numeric(10,2))", "INSERT INTO t VALUES (1, 1)")
			run := r.start()
			r.streaming(run)
			r.exec("INSERT INTO t VALUES (2, 2)")
			r.caughtUp(run)
			before := r.lsn("SELECT pg_current_wal_insert_lsn()::text")
			r.exec("ALTER TABLE t ALTER a TYPE numeric(12,4)", "INSERT INTO t VALUES (3, 3.0001)")
			contains(t, code(t, run.ended(t), fault.SchemaChanged), "public.t",
				"a was decimal(10,2) and is decimal(12,4)", "schema.logical.change: warn")
			r.refused(fault.SchemaChanged)
			sameInts(t, "ids", ids(r.all("shop.public.t"), "id"), sequence(1, 2))
			if at := r.confirmedFlush(); at > before {
				t.Errorf("the slot is at %s, past %s, where the row that was not sent begins", at, before)
			}
			if got := r.schemaEvents(); len(got) != 0 {
				t.Errorf("announced, though it stops: %v", got)
			}
			if act == "warn" {
				r.extra["schema.logical.change"] = "warn"
			} else {
				r.registerByHand("shop.public.t-value", `"precision":10,"scale":2`, `"precision":12,"scale":4`)
			}
			run = r.start()
			r.streaming(run)
			r.caughtUp(run)
			r.clean(run)
			got := lines(r.all("shop.public.t"))
			same(t, got[2:], []string{"c NOT_APPLICABLE {id:3} {a:30001/10000 id:3}"})
			r.extra["schema.logical.change"] = "fail"
			r.exec("INSERT INTO t VALUES (4, 4)")
			run = r.start()
			r.streaming(run)
			r.caughtUp(run)
			r.clean(run)
		})
	}
}

// forbidReading makes the registry answer 403 to whoever reads a subject.
func (r *rig) forbidReading() {
	r.registry.Inject(testenv.RegistryFault{Method: "GET", Path: "/versions", Count: -1, Status: 403})
}

// registerByHand registers a subject's latest schema anew, with a part replaced.
func (r *rig) registerByHand(subject, old, replacement string) {
	r.t.Helper()
	client, err := sr.NewClient(sr.URLs(r.registry.URL))
	if err != nil {
		r.t.Fatal(err)
	}
	latest, err := client.SchemaByVersion(r.t.Context(), subject, -1)
	if err == nil {
		text := strings.ReplaceAll(latest.Schema.Schema, old, replacement)
		_, err = client.CreateSchema(r.t.Context(), subject, sr.Schema{Schema: text})
	}
	if err != nil {
		r.t.Fatal(err)
	}
}
