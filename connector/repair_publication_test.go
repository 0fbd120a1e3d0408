package connector_test

import (
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/offsets"
)

// Only the table whose row in the publication changed is read again; the others go on.
func TestRepairOfATableThatWasOutOfThePublication(t *testing.T) {
	t.Parallel()
	onVersions(t, func(t *testing.T, r *rig) {
		r.repairing()
		r.exec("CREATE TABLE other (id int PRIMARY KEY)", "INSERT INTO other VALUES (1)")
		r.lives()
		r.exec("INSERT INTO other VALUES (2)", "ALTER PUBLICATION tidemark DROP TABLE t")
		r.exec(while...)
		r.exec("ALTER PUBLICATION tidemark ADD TABLE t", "INSERT INTO other VALUES (3)",
			"DELETE FROM t WHERE id = 8")
		r.repairs()
		sameInts(t, "other", ids(r.all("shop.public.other"), "id"), sequence(1, 3))
		same(t, r.gapEvents(), []string{
			"gap publication_changed resnapshot_begun [public.t]",
			"gap publication_changed resnapshot_done [public.t]",
		})
		r.repairsNothing()
	})
}

func TestRepairOfATableThatWasOutWhileStreaming(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.repairing()
	r.exec(numbers, insertNumbers(1, 10))
	run := r.start()
	r.streaming(run)
	r.caughtUp(run)
	r.exec("BEGIN", "ALTER PUBLICATION tidemark DROP TABLE t", "COMMIT")
	r.exec(while...)
	r.exec("ALTER PUBLICATION tidemark ADD TABLE t")
	r.until("the repair is done", func() bool {
		return strings.Contains(r.log.String(), "the gap is repaired")
	})
	r.streaming(run)
	r.caughtUp(run)
	r.clean(run)
	r.converged()
}

// A publication that was dropped: on 15 the slot's WAL cannot be decoded any more, on 18 it would
// be skipped. Made again by hand or, when it is missing, by the connector.
func TestRepairOfAPublicationThatWasDropped(t *testing.T) {
	t.Parallel()
	for _, v := range []string{"15", "18"} {
		for _, made := range []string{"by hand", "by the connector", "not"} {
			t.Run(v+" made "+made, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, v)
				r.repairing()
				r.lives()
				r.exec("DROP PUBLICATION tidemark")
				r.exec(while...)
				switch made {
				case "by hand":
					r.exec("CREATE PUBLICATION tidemark FOR TABLE t")
				case "not":
					r.extra["publication.autocreate.mode"] = "disabled"
					contains(t, r.refused(fault.PublicationMissing), "CREATE PUBLICATION")
					if rec := r.record(); rec.Intent == nil || rec.Intent.Kind != offsets.IntentRepair {
						t.Errorf("the intent is not stored: %+v", rec)
					}
					r.exec("CREATE PUBLICATION tidemark FOR TABLE t")
				}
				r.repairs()
				r.repairsNothing()
			})
		}
	}
}

func TestRepairOfAPublicationThatWasDroppedWhileStreaming(t *testing.T) {
	t.Parallel()
	for _, v := range []string{"15", "18"} {
		t.Run(v, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, v)
			r.repairing()
			r.extra["catalog.check.interval.ms"] = "3600000" // it is the stream that tells
			r.exec(numbers, insertNumbers(1, 10))
			run := r.start()
			r.streaming(run)
			r.caughtUp(run)
			r.exec("DROP PUBLICATION tidemark")
			r.exec(while...)
			r.exec("CREATE PUBLICATION tidemark FOR TABLE t")
			r.until("the repair is done", func() bool {
				return strings.Contains(r.log.String(), "the gap is repaired")
			})
			r.streaming(run)
			r.caughtUp(run)
			r.clean(run)
			r.converged()
		})
	}
}
