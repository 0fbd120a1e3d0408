package connector_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/testenv"
)

// K21: keepalives that come while rows wait for the broker move nothing.
func TestF60NoKeepaliveMovesTheSlotPastAnUnconfirmedCommit(t *testing.T) {
	t.Parallel()
	onVersions(t, func(t *testing.T, r *rig) {
		r.extra["idle.advance.after.ms"] = "1000" // asks for keepalives each second
		r.extra["heartbeat.interval.ms"] = "1000"
		r.exec(numbers, "CREATE TABLE other (id int)")
		r.extra["table.include.list"] = "public.t"
		run := r.start()
		r.streaming(run)
		release := r.hold()
		r.exec(insertNumbers(1, 1))
		advances := metric(t, run, "tidemark_idle_advances_total")
		// Not before its end, though up to it a position is safe: others write in between.
		first := r.lsn("SELECT pg_current_wal_insert_lsn()::text")
		for i := range 9 {
			r.exec(insertNumbers(i+2, i+2))
		}
		r.holds(5*time.Second, "the slot stays below the first unconfirmed commit", func() bool {
			r.exec("INSERT INTO other VALUES (1)")
			return r.confirmedFlush() <= first && r.record().LSN <= first
		})
		if got := metric(t, run, "tidemark_idle_advances_total") - advances; got > 1 {
			t.Errorf("%v idle advances while rows were outstanding", got)
		}
		r.clean(run) // gives up after a while: nothing is confirmed
		release()
		run = r.start()
		r.streaming(run)
		r.caughtUp(run)
		r.clean(run)
		seen := map[int]bool{}
		for _, id := range ids(r.all("shop.public.t"), "id") {
			seen[id] = true
		}
		if len(seen) != 10 {
			t.Errorf("rows %v", seen)
		}
	})
}

// A broker that is away for longer than wal_sender_timeout costs no connection: status updates
// go out on their own clock.
func TestF19F48ABlockedBrokerKeepsTheConnectionAndShows(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, set func(*rig) *rig) {
		blockedBroker(t, set(newRigOn(t, ownServer(t, "18", map[string]string{
			"wal_sender_timeout": "2s",
		}))))
	})
}

func blockedBroker(t *testing.T, r *rig) {
	r.extra["max.queue.bytes"] = "1048576"
	r.extra["exactly.once.batch.bytes"] = "262144"
	r.exec(numbers)
	run := r.start()
	r.streaming(run)
	sender := r.walsender()
	release := r.holdEvents()
	r.exec("INSERT INTO t SELECT g, repeat('x', 1000) FROM generate_series(1, 4000) g")
	r.until("a person is told", func() bool { return !run.c.Status().Ready })
	var most float64
	r.holds(8*time.Second, "the walsender is the same", func() bool {
		most = max(most, metric(t, run, "tidemark_queue_bytes"))
		return r.walsender() == sender
	})
	if most == 0 || most > 1.1*(1<<20) {
		t.Errorf("%v bytes were queued, at most %d may be", most, 1<<20)
	}
	contains(t, strings.Join(run.c.Status().Reasons, " "), "confirmed nothing for")
	release()
	r.until("it recovers", func() bool { return run.c.Status().Ready })
	r.caughtUp(run)
	if r.walsender() != sender {
		t.Error("the session was another")
	}
	r.clean(run)
	sameInts(t, "ids", ids(r.committed("shop.public.t"), "id"), sequence(1, 4000))
}

// K22 and K23: rows of one COPY share their LSN, and a session that is lost after any of them was
// confirmed sends the transaction again whole.
func TestF46ASessionLostAmidATransactionLosesNothing(t *testing.T) {
	t.Parallel()
	for _, k := range []int{1, 40, 99, 100, 101, 102} {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "18")
			r.onePartition()
			r.extra["producer.override.batch.size"] = "300"
			r.exec("CREATE TABLE c (id int PRIMARY KEY)")
			run := r.start()
			r.streaming(run)
			accepted := 0
			release := r.refuse(func(req *kmsg.ProduceRequest) bool {
				accepted += records(req)
				return accepted > k
			})
			var copied strings.Builder
			for i := range 100 {
				fmt.Fprintln(&copied, i+1)
			}
			if _, err := r.sql.PgConn().CopyFrom(t.Context(), strings.NewReader(copied.String()),
				"COPY c FROM STDIN"); err != nil {
				t.Fatal(err)
			}
			r.exec("INSERT INTO c VALUES (101)", "INSERT INTO c VALUES (102)")
			r.until("all are read", func() bool {
				return metric(t, run, "tidemark_events_total") == 102
			})
			r.exec("SELECT pg_terminate_backend(" + r.walsender() + ")")
			r.until("the session is lost", func() bool {
				return strings.Contains(r.log.String(), "another one begins")
			})
			release()
			r.streaming(run)
			r.caughtUp(run)
			r.clean(run)
			seen := map[int]bool{}
			for _, id := range ids(r.all("shop.public.c"), "id") {
				seen[id] = true
			}
			if len(seen) != 102 {
				t.Errorf("%d of 102 rows", len(seen))
			}
		})
	}
}

// records counts the records of a request.
func records(req *kmsg.ProduceRequest) (n int) {
	for _, topic := range req.Topics {
		for _, p := range topic.Partitions {
			var b kmsg.RecordBatch
			if err := b.ReadFrom(p.Records); err == nil {
				n += int(b.NumRecords)
			}
		}
	}
	return n
}

func TestF45AServerThatRestartsLosesNothing(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"fast", "immediate", "kill"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			eachMode(t, func(t *testing.T, set func(*rig) *rig) {
				once := strings.HasSuffix(t.Name(), "exactly_once") == (how == "immediate")
				if os.Getenv("TIDEMARK_TEST_ALL") == "" && !once {
					t.Skip("TIDEMARK_TEST_ALL is not set")
				}
				pg, err := testenv.StartPostgres(t.Context(), testenv.PostgresOptions{Fsync: true})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = pg.Close() })
				set(newRigOn(t, pg)).overRestarts(how)
			})
		})
	}
}

// overRestarts commits rows right before the server goes down, three times.
func (r *rig) overRestarts(how string) {
	r.t.Helper()
	r.exec(numbers)
	run := r.start()
	r.streaming(run)
	for i := range 3 {
		r.exec(insertNumbers(1000*i+1, 1000*i+1000))
		r.sql.Close(r.t.Context())
		began := time.Now()
		err := r.restart(how)
		if took := time.Since(began); how == "fast" && took > 20*time.Second {
			r.t.Errorf("the connector held up a fast shutdown for %s", took)
		}
		if err == nil {
			r.sql, err = r.pg.Connect(r.t.Context(), r.db)
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
	r.streaming(run)
	r.caughtUp(run)
	r.clean(run)
	r.complete(3000)
	r.sql.Close(r.t.Context())
}

func (r *rig) restart(how string) error {
	if how != "kill" {
		return r.pg.Restart(r.t.Context(), how)
	}
	if err := r.pg.Kill(); err != nil {
		return err
	}
	return r.pg.Start(r.t.Context())
}
