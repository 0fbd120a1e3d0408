package connector_test

import (
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// Each changes the publication while the connector is down, with a row in between that is lost.
func TestF55APublicationThatChangedWhileDownIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sql  []string
		text string
	}{
		"made again": {[]string{
			"DROP PUBLICATION tidemark", insertNumbers(5, 5), "CREATE PUBLICATION tidemark FOR TABLE t",
		}, "publication_recreated"},
		"gone": {[]string{"DROP PUBLICATION tidemark", insertNumbers(5, 5)}, "publication_gone"},
		"other operations": {[]string{
			"ALTER PUBLICATION tidemark SET (publish = 'insert')", "DELETE FROM t WHERE id = 1",
			"ALTER PUBLICATION tidemark SET (publish = 'insert, update, delete, truncate')",
		}, "publication_altered"},
		"table out and back": {[]string{
			"ALTER PUBLICATION tidemark DROP TABLE t", insertNumbers(5, 5),
			"ALTER PUBLICATION tidemark ADD TABLE t",
		}, "table_changed public.t"},
		"published through leaves": {[]string{
			"ALTER PUBLICATION tidemark SET (publish_via_partition_root = false)", insertNumbers(5, 5),
			"ALTER PUBLICATION tidemark SET (publish_via_partition_root = true)",
		}, "publication_altered"},
		"column list": {[]string{
			"ALTER PUBLICATION tidemark SET TABLE t (id)", insertNumbers(5, 5),
			"ALTER PUBLICATION tidemark SET TABLE t",
		}, "table_changed public.t"},
		"row filter": {[]string{
			"ALTER PUBLICATION tidemark SET TABLE t WHERE (id > 100)", insertNumbers(5, 5),
			"ALTER PUBLICATION tidemark SET TABLE t",
		}, "table_changed public.t"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "18")
			r.streamedOnce()
			r.exec(c.sql...)
			rec := r.record()
			contains(t, r.refused(fault.PublicationChanged), c.text, "--accept-publication")
			r.nothingNew(rec)
		})
	}
}

// Up to 17 the stream fails, on 18 it skips with a warning: both end the connector before the
// rows are told to the slot.
func TestF55APublicationMadeAgainWhileStreamingStopsTheConnector(t *testing.T) {
	t.Parallel()
	for _, v := range []string{"15", "18"} {
		t.Run(v, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, v)
			r.extra["catalog.check.interval.ms"] = "3600000" // it is the stream that tells
			r.exec(numbers, insertNumbers(1, 4))
			run := r.start()
			r.streaming(run)
			r.caughtUp(run)
			r.exec("DROP PUBLICATION tidemark", insertNumbers(5, 5),
				"CREATE PUBLICATION tidemark FOR TABLE t", insertNumbers(6, 6))
			code(t, run.ended(t), fault.PublicationChanged)
			sameInts(t, "ids", ids(r.all("shop.public.t"), "id"), sequence(1, 4))
			r.refused(fault.PublicationChanged)
		})
	}
}

func TestF55ATableOutAndBackWhileStreamingStopsTheConnector(t *testing.T) {
	t.Parallel()
	onVersions(t, func(t *testing.T, r *rig) {
		r.extra["catalog.check.interval.ms"] = "200"
		r.exec(numbers, insertNumbers(1, 4))
		run := r.start()
		r.streaming(run)
		r.caughtUp(run)
		r.exec("BEGIN", "ALTER PUBLICATION tidemark DROP TABLE t", insertNumbers(5, 5),
			"ALTER PUBLICATION tidemark ADD TABLE t", "COMMIT")
		contains(t, code(t, run.ended(t), fault.PublicationChanged), "public.t")
	})
}

func TestF55ATableThatIsTakenOutIsRememberedAndItsReturnIsAGap(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.extra["catalog.check.interval.ms"] = "200"
	r.exec(numbers, insertNumbers(1, 4), "CREATE TABLE other (id int PRIMARY KEY)")
	run := r.start()
	r.streaming(run)
	r.exec("ALTER PUBLICATION tidemark DROP TABLE t")
	r.until("the change is stored", func() bool { return len(r.record().Publication.Tables) == 1 })
	r.exec(insertNumbers(5, 5), "INSERT INTO other VALUES (1)")
	r.caughtUp(run)
	if !strings.Contains(r.log.String(), "table_out public.t") {
		t.Errorf("the log does not say that the table is out:\n%s", r.log.String())
	}
	r.exec("ALTER PUBLICATION tidemark ADD TABLE t")
	contains(t, code(t, run.ended(t), fault.PublicationChanged), "public.t")
	sameInts(t, "t", ids(r.all("shop.public.t"), "id"), sequence(1, 4))
	sameInts(t, "other", ids(r.all("shop.public.other"), "id"), sequence(1, 1))
}

func TestATableThatIsNewInThePublicationIsCapturedFromThereOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.extra["catalog.check.interval.ms"] = "200"
	r.exec(numbers, insertNumbers(1, 2))
	run := r.start()
	r.streaming(run)
	r.exec("CREATE TABLE late (id int PRIMARY KEY)", "INSERT INTO late VALUES (1)",
		"ALTER PUBLICATION tidemark ADD TABLE late", "INSERT INTO late VALUES (2)")
	r.until("a person is told", func() bool {
		return strings.Contains(strings.Join(run.c.Status().Reasons, " "), "table public.late is new")
	})
	r.caughtUp(run)
	r.clean(run)
	sameInts(t, "late", ids(r.all("shop.public.late"), "id"), sequence(2, 2))
	run = r.start()
	r.streaming(run)
	r.clean(run)
}
