package connector_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/testenv"
)

// Two processes begin with nothing at the same time: one does the work, the other one waits for
// it, and goes on when it stops.
func TestF11TwoFreshStartsAtOnce(t *testing.T) {
	t.Parallel()
	for round := range 3 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "18")
			r.extra["slot.takeover.timeout.ms"] = "60000"
			r.exec(numbers, insertNumbers(1, 100))
			runs := []*running{r.start(), r.start()}
			var first, second *running
			r.until("one of them streams", func() bool {
				for i, run := range runs {
					select {
					case <-run.done:
						t.Fatalf("instance %d ended: %v\nlog:\n%s", i, run.err, r.log.String())
					default:
					}
					if run.c.Status().State == "streaming" {
						first, second = run, runs[1-i]
						return true
					}
				}
				return false
			})
			r.exec(insertNumbers(101, 110))
			r.caughtUp(first)
			r.clean(first)
			r.exec(insertNumbers(111, 120))
			r.streaming(second)
			r.caughtUp(second)
			r.clean(second)
			seen := map[int]bool{}
			for _, id := range ids(r.all("shop.public.t"), "id") {
				seen[id] = true
			}
			if len(seen) != 120 {
				t.Errorf("%d of 120 rows", len(seen))
			}
			// Nobody is left with a transaction open in the slot's first snapshot; sessions end a moment
			// after their clients, and vacuum's own workers come and go.
			r.until("no session holds a snapshot", func() bool {
				return r.query("SELECT count(*)::text FROM pg_stat_activity WHERE datname = "+
					"current_database() AND backend_xmin IS NOT NULL AND pid <> pg_backend_pid() "+
					"AND backend_type <> 'autovacuum worker'") == "0"
			})
		})
	}
}

// While it streams, a connector holds no snapshot that would keep vacuum away.
func TestAStreamingConnectorHoldsNoSnapshot(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.exec(numbers, insertNumbers(1, 3))
	run := r.start()
	r.streaming(run)
	r.caughtUp(run)
	r.until("no snapshot is held", func() bool {
		return r.query("SELECT count(*)::text FROM pg_stat_activity WHERE datname = current_database() "+
			"AND (backend_xmin IS NOT NULL AND backend_type = 'client backend' "+
			"OR state LIKE 'idle in%') AND pid <> pg_backend_pid()") == "0"
	})
	r.clean(run)
}

// TestAStopIsHeardInEveryState: an ordered stop ends whatever the connector waits for.
func TestAStopIsHeardInEveryState(t *testing.T) {
	t.Parallel()
	ends := func(t *testing.T, r *rig, run *running) {
		t.Helper()
		began := time.Now()
		r.clean(run)
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("the stop took %s", took)
		}
	}
	t.Run("slot in use", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, "18")
		r.extra["slot.takeover.timeout.ms"] = "60000"
		r.exec(numbers)
		first := r.start()
		r.streaming(first)
		second := r.start()
		r.until("it waits", func() bool { return strings.Contains(r.log.String(), "the slot is in use") })
		ends(t, r, second)
		ends(t, r, first)
	})
	t.Run("registry away in the snapshot", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, "18")
		r.registry.Inject(testenv.RegistryFault{Count: -1, Status: 503})
		r.exec(numbers, insertNumbers(1, 1))
		run := r.start()
		r.until("it waits", func() bool {
			return strings.Contains(r.log.String(), "the registry does not")
		})
		ends(t, r, run)
	})
	t.Run("registry away in the stream", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, "18")
		r.exec(numbers)
		run := r.start()
		r.streaming(run)
		r.registry.Inject(testenv.RegistryFault{Count: -1, Status: 503})
		r.exec("ALTER TABLE t ADD COLUMN n int", "INSERT INTO t VALUES (1, 'v', 1)")
		r.until("it waits", func() bool {
			return strings.Contains(r.log.String(), "the registry does not")
		})
		ends(t, r, run)
		r.registry.ClearFaults()
		run = r.start()
		r.streaming(run)
		r.caughtUp(run)
		r.clean(run)
		sameInts(t, "ids", ids(r.all("shop.public.t"), "id"), []int{1})
	})
	t.Run("broker away", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, "18")
		r.exec(numbers)
		r.broker.Stop()
		run := r.start()
		r.until("it waits", func() bool { return strings.Contains(r.log.String(), "another one begins") })
		ends(t, r, run)
	})
	t.Run("snapshot held by a lock", func(t *testing.T) {
		t.Parallel()
		r := newRigOn(t, ownServer(t, "18", nil))
		r.exec(numbers, "CREATE TABLE z (id int PRIMARY KEY)", insertNumbers(1, 1))
		release := r.hold()
		run := r.start()
		r.snapshotBegun(run)
		r.exec("BEGIN", "LOCK TABLE z")
		release()
		r.until("it waits", func() bool { return strings.Contains(r.log.String(), "table=public.z") })
		ends(t, r, run)
		r.exec("COMMIT")
	})
}

// A row that is larger than the whole queue passes alone.
func TestARowLargerThanTheQueuePasses(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.extra["max.queue.bytes"] = "1048576"
	r.extra["producer.override.max.request.size"] = "8000000"
	r.extra["topic.creation.default.max.message.bytes"] = "8000000"
	r.exec(numbers, "INSERT INTO t SELECT 1, repeat('s', 3000000)")
	run := r.start()
	r.streaming(run)
	r.exec("INSERT INTO t SELECT g, repeat('c', 3000000) FROM generate_series(2, 5) g")
	r.caughtUp(run)
	r.clean(run)
	sameInts(t, "ids", ids(r.all("shop.public.t"), "id"), sequence(1, 5))
}

func TestF25ARowLargerThanTheBrokerTakesStopsBeforeWhatFollows(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.onePartition()
	r.extra["topic.creation.default.max.message.bytes"] = "1000000"
	r.exec(numbers)
	run := r.start()
	r.streaming(run)
	r.exec(insertNumbers(1, 1), "INSERT INTO t SELECT 2, string_agg(md5(random()::text), '') "+
		"FROM generate_series(1, 60000)", insertNumbers(3, 3))
	contains(t, code(t, run.ended(t), fault.RecordTooLarge), "public.t")
	sameInts(t, "ids", ids(r.all("shop.public.t"), "id"), []int{1})
	r.refused(fault.RecordTooLarge)
	r.alterTopic("shop.public.t", "max.message.bytes", "8000000")
	r.extra["producer.override.max.request.size"] = "8000000"
	run = r.start()
	r.streaming(run)
	r.caughtUp(run)
	r.clean(run)
	got := ids(r.all("shop.public.t"), "id")
	sameInts(t, "the last two", got[len(got)-2:], []int{2, 3})
}

func (r *rig) alterTopic(topic, key, value string) {
	r.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(r.broker.Addrs()...))
	if err != nil {
		r.t.Fatal(err)
	}
	defer client.Close()
	if _, err := kadm.NewClient(client).AlterTopicConfigs(r.t.Context(), []kadm.AlterConfig{{
		Op: kadm.SetConfig, Name: key, Value: kadm.StringPtr(value),
	}}, topic); err != nil {
		r.t.Fatal(err)
	}
}

func TestF56ATableInASchemaOfThePublicationIsCapturedFromItsCreation(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.extra["catalog.check.interval.ms"] = "200"
	r.extra["publication.autocreate.mode"] = "disabled"
	r.exec(numbers, insertNumbers(1, 1), "CREATE PUBLICATION tidemark FOR TABLES IN SCHEMA public")
	run := r.start()
	r.streaming(run)
	r.exec("CREATE TABLE late (id int PRIMARY KEY)", "INSERT INTO late VALUES (1)",
		"DROP TABLE t", numbers, insertNumbers(2, 2))
	r.caughtUp(run)
	r.clean(run)
	run = r.start()
	r.streaming(run)
	r.exec("INSERT INTO late VALUES (2)", insertNumbers(3, 3))
	r.caughtUp(run)
	r.clean(run)
	sameInts(t, "late", ids(r.all("shop.public.late"), "id"), sequence(1, 2))
	sameInts(t, "t", ids(r.all("shop.public.t"), "id"), sequence(1, 3))
}

// A table that is dropped behind rows that are still to be read: they come as they were.
func TestF56RowsOfATableThatIsGoneMeanwhileStillCome(t *testing.T) {
	t.Parallel()
	onVersions(t, func(t *testing.T, r *rig) {
		r.exec(numbers, "CREATE TABLE other (id int PRIMARY KEY)")
		run := r.start()
		r.streaming(run)
		r.clean(run)
		r.exec("INSERT INTO t VALUES (1, 'a')", "ALTER TABLE t RENAME COLUMN v TO w",
			"INSERT INTO t VALUES (2, 'b')", "ALTER TABLE t RENAME TO later",
			"INSERT INTO later VALUES (3, 'c')", "DROP TABLE later", "INSERT INTO other VALUES (1)")
		run = r.start()
		r.streaming(run)
		r.caughtUp(run)
		r.clean(run)
		sameInts(t, "t", ids(r.all("shop.public.t"), "id"), sequence(1, 2))
		sameInts(t, "later", ids(r.all("shop.public.later"), "id"), sequence(3, 3))
		sameInts(t, "other", ids(r.all("shop.public.other"), "id"), sequence(1, 1))
	})
}
