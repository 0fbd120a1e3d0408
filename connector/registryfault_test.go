package connector_test

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/testenv"
)

// deleteSubjects deletes both subjects of the table for good: the registry in the process takes
// nothing for one that is deleted halfway, where Confluent's does.
func (r *rig) deleteSubjects() {
	r.t.Helper()
	client, err := sr.NewClient(sr.URLs(r.registry.URL))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, subject := range []string{tableTopic + "-key", tableTopic + "-value"} {
		for _, how := range []sr.DeleteHow{sr.SoftDelete, sr.HardDelete} {
			if _, err := client.DeleteSubject(r.t.Context(), subject, how); err != nil {
				r.t.Fatal(err)
			}
		}
	}
}

// Subjects that are deleted while rows flow are registered again at the next start. A registry that
// is read-only takes no new schema: those that it has go on, over a start too, and a new one stops
// the connector by name, to go on without loss when the registry takes it.
func TestF43SubjectsAreDeletedAndTheRegistryIsReadOnly(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, r *rig) {
		r.exec(numbers)
		run := r.start()
		r.streaming(run)
		r.exec(insertNumbers(1, 3))
		r.caughtUp(run)
		r.deleteSubjects()
		r.exec(insertNumbers(4, 6))
		r.caughtUp(run)
		r.clean(run)
		registered := func() bool { return r.registry.Registry().SubjectExists(tableTopic + "-value") }
		if registered() {
			t.Error("the subject is not deleted")
		}
		run = r.start()
		r.streaming(run)
		r.exec(insertNumbers(7, 9))
		r.caughtUp(run)
		r.clean(run)
		if !registered() {
			t.Error("the subject was not registered again")
		}
		r.registry.Inject(testenv.RegistryFault{
			Method: "POST", Path: "/versions", Count: -1, Status: 422, ErrorCode: 42205,
			Message: "Subject is in READONLY mode",
		})
		run = r.start()
		r.streaming(run)
		r.exec(insertNumbers(10, 12))
		r.caughtUp(run)
		r.exec("ALTER TABLE t ADD COLUMN n int", "INSERT INTO t VALUES (13, 'v13', 13)")
		contains(t, code(t, run.ended(t), fault.SchemaRejected), tableTopic+"-value", "READONLY", "mode")
		at := r.confirmedFlush()
		r.refused(fault.SchemaRejected)
		if now := r.confirmedFlush(); now > at+1<<16 {
			t.Errorf("the slot went from %s to %s", at, now)
		}
		r.registry.ClearFaults()
		run = r.start()
		r.streaming(run)
		r.caughtUp(run)
		r.clean(run)
		r.inOrder(13)
	})
}

// The registry is restored from a backup that lacks the table's schemas, and gives their ids to
// others. The next session registers anew, so that what it sends can be read, and says that the ids
// of before are no longer those schemas'.
func TestF44TheRegistryIsRestoredWithOtherIDs(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, r *rig) {
		r.exec(numbers)
		run := r.start()
		r.streaming(run)
		r.exec(insertNumbers(1, 3))
		r.caughtUp(run)
		r.registry.Registry().Reset()
		for i, other := range []string{`"int"`, `"long"`, `"string"`} {
			r.registry.Registry().SeedSchema("other", i+1, i+1, sr.Schema{Schema: other})
		}
		r.exec("SELECT pg_terminate_backend(" + r.walsender() + ")")
		r.until("another session streams", func() bool {
			return strings.Count(r.log.String(), "msg=streaming") == 2
		})
		before := r.stored()
		r.exec(insertNumbers(4, 6))
		r.caughtUp(run)
		contains(t, strings.Join(run.c.Status().Reasons, " "), tableTopic+"-value",
			"restored or replaced")
		if !run.c.Status().Ready {
			t.Error("the connector is not ready")
		}
		r.clean(run)
		if r.stored() <= before {
			t.Error("nothing was sent")
		}
		value, ok := r.registry.Registry().GetSchema(tableTopic+"-value", 1)
		if !ok {
			t.Fatal("the schema was not registered again")
		}
		used := map[int]bool{}
		for _, id := range r.valueIDs() {
			used[id] = true
		}
		if len(used) != 2 || !used[value.ID] {
			t.Errorf("events have schemas %v, the registry has %d", used, value.ID)
		}
	})
}
