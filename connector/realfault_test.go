package connector_test

import (
	"os"
	"testing"

	"github.com/tidemark-cdc/tidemark/testenv"
)

// realKafka puts a real cluster in the place of the broker in the process.
func (r *rig) realKafka(o testenv.KafkaOptions) {
	r.t.Helper()
	kafka, err := testenv.StartKafka(r.t.Context(), o)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if err := kafka.Close(); err != nil {
			r.t.Error(err)
		}
	})
	r.kafka = kafka
}

// inBothModesReal is inBothModes for real clusters, one after the other.
func inBothModesReal(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	if os.Getenv("TIDEMARK_REALBROKER") == "" {
		t.Skip("TIDEMARK_REALBROKER is not set: the real-broker stage runs this")
	}
	if os.Getenv("TIDEMARK_TEST_ALL") == "" {
		t.Skip("takes minutes; TIDEMARK_TEST_ALL=1 runs it")
	}
	testenv.RequireJava(t)
	for _, mode := range []string{"at_least_once", "exactly_once"} {
		t.Run(mode, func(t *testing.T) {
			r := newRig(t, "18")
			if mode == "exactly_once" {
				r.exactlyOnce(16 << 10)
			}
			test(t, r)
		})
	}
}

// Three brokers with three replicas, two of which must be in sync. The one that leads the table's
// first partition is killed under load; then a second one, and nothing is taken until it is back.
func TestF18F21RealBrokersAreKilled(t *testing.T) {
	inBothModesReal(t, func(t *testing.T, r *rig) {
		r.realKafka(testenv.KafkaOptions{Brokers: 3, Settings: map[string]string{
			"default.replication.factor": "3", "min.insync.replicas": "2",
		}})
		r.extra["topic.creation.default.replication.factor"] = "3"
		r.extra["topic.creation.default.min.insync.replicas"] = "2"
		r.exec(numbers)
		run := r.start()
		r.streaming(run)
		r.exec(insertNumbers(1, 100))
		r.caughtUp(run)
		leader := r.leader()
		load := r.concurrently(manyNumbers(101, 5000))
		if err := r.kafka.Kill(leader); err != nil {
			t.Fatal(err)
		}
		load()
		r.caughtUp(run)
		second := leader%3 + 1
		if err := r.kafka.Kill(second); err != nil {
			t.Fatal(err)
		}
		confirmed := position(t, run, "confirmed")
		r.exec(manyNumbers(5001, 6000))
		r.until("a person is told", func() bool { return !run.c.Status().Ready })
		if now := position(t, run, "confirmed"); now > confirmed+1<<16 {
			t.Errorf("confirmed went from %s to %s with one broker of three", confirmed, now)
		}
		if err := r.kafka.Start(t.Context(), leader, second); err != nil {
			t.Fatal(err)
		}
		r.caughtUp(run)
		r.clean(run)
		r.inOrder(6000)
	})
}

// manyNumbers inserts rows in a transaction of ten each.
func manyNumbers(from, to int) (sql string) {
	for ; from <= to; from += 10 {
		sql += "BEGIN; " + insertNumbers(from, min(from+9, to)) + "; COMMIT; "
	}
	return sql
}

// leader returns the number of the broker that leads the table's first partition.
func (r *rig) leader() int {
	r.t.Helper()
	topics, err := r.admin().ListTopics(r.t.Context(), tableTopic)
	if err != nil {
		r.t.Fatal(err)
	}
	p := topics[tableTopic].Partitions[0]
	return int(p.Leader)
}

// A real broker forgets the transactional id of a connector that does nothing for long enough.
func TestF37RealTheTransactionalIDExpired(t *testing.T) {
	inBothModesReal(t, func(t *testing.T, r *rig) {
		r.realKafka(testenv.KafkaOptions{Settings: map[string]string{
			"transactional.id.expiration.ms":                             "3000",
			"transaction.remove.expired.transaction.cleanup.interval.ms": "500",
		}})
		r.extra["idle.advance.after.ms"] = "3600000"
		r.extra["heartbeat.interval.ms"] = "0"
		r.extra["heartbeat.verify.interval.ms"] = "0"
		r.exec(numbers)
		run := r.start()
		r.streaming(run)
		r.exec(insertNumbers(1, 10))
		r.caughtUp(run)
		r.until("the broker forgets the id", func() bool {
			listed, err := r.admin().ListTransactions(t.Context(), nil, nil)
			return err == nil && len(listed) == 0
		})
		r.exec(insertNumbers(11, 20))
		r.caughtUp(run)
		r.clean(run)
		r.inOrder(20)
	})
}
