package cases_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The cases of this file are about faults of processes. Most of each is in tests of the connector,
// which a comment names; here is what those leave out.

// refuseAfter makes the broker refuse events, with an error that the client tries again after, once
// it has taken n records of a topic; release ends that.
func (r *rig) refuseAfter(n int) (release func()) {
	var off atomic.Bool
	taken := 0
	cluster := r.broker.Cluster()
	cluster.ControlKey(0, func(k kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		req := k.(*kmsg.ProduceRequest)
		if off.Load() || req.TransactionID != nil {
			return nil, nil, false
		}
		if taken += records(req); taken <= n {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.ProduceResponse)
		for _, rt := range req.Topics {
			t := kmsg.NewProduceResponseTopic()
			t.Topic, t.TopicID = rt.Topic, rt.TopicID
			for _, rp := range rt.Partitions {
				p := kmsg.NewProduceResponseTopicPartition()
				p.Partition, p.ErrorCode, p.BaseOffset = rp.Partition, kerr.NotEnoughReplicas.Code, -1
				t.Partitions = append(t.Partitions, p)
			}
			resp.Topics = append(resp.Topics, t)
		}
		return resp, nil, true
	})
	return func() { off.Store(true) }
}

func records(req *kmsg.ProduceRequest) (n int) {
	for _, topic := range req.Topics {
		for _, p := range topic.Partitions {
			var b kmsg.RecordBatch
			if b.ReadFrom(p.Records) == nil {
				n += int(b.NumRecords)
			}
		}
	}
	return n
}

func (r *rig) confirmed() string {
	r.t.Helper()
	return r.query(`SELECT coalesce(confirmed_flush_lsn, '0/0')::text FROM pg_replication_slots
		WHERE slot_name = $1`, r.slot())
}

func (r *rig) walsender() string {
	r.t.Helper()
	return r.query(`SELECT coalesce(active_pid, 0)::text FROM pg_replication_slots
		WHERE slot_name = $1`, r.slot())
}

// ids are the ids of a topic's rows without repeats, in order of first arrival.
func ids(events []event) (list []string) {
	seen := map[string]bool{}
	for _, e := range events {
		if id := fields(e.key, nil); !seen[id] {
			seen[id] = true
			list = append(list, id)
		}
	}
	return list
}

// Keepalives amid unconfirmed rows: TestF60NoKeepaliveMovesTheSlotPastAnUnconfirmedCommit. Here: a
// connection that never carries data reports a position, which never falls and is never 0.
func TestF60K21IdleFromTheFirstMoment(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.keys["heartbeat.interval.ms"], r.keys["idle.advance.after.ms"] = "0", "200"
		r.exec(`CREATE TABLE c(id int PRIMARY KEY)`)
		run := r.streaming()
		last := r.confirmed()
		target := r.lsn(`SELECT pg_current_wal_insert_lsn()::text`)
		r.exec(`CREATE TABLE elsewhere AS SELECT generate_series(1,1000)`)
		r.until(run, "the slot follows the server", func() bool {
			now := r.confirmed()
			if older := r.query(`SELECT ($1::pg_lsn < $2::pg_lsn OR $1::pg_lsn = '0/0')::text`,
				now, last); older == "true" {
				t.Fatalf("the slot went from %s to %s", last, now)
			}
			last = now
			return r.lsn(`SELECT $1::text`, now) > target
		})
		r.clean(run)
	})
}

// A session cut amid a transaction: TestF46ASessionLostAmidATransactionLosesNothing. Here: while a
// part of a transaction is confirmed neither record nor slot says that it is done.
func TestF46K22PositionWithinATransaction(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.keys["producer.override.max.request.size"] = "10000" // some batches
		r.exec(`CREATE TABLE t(id int PRIMARY KEY)`)
		run := r.streaming()
		release := r.refuseAfter(200)
		before := r.lsn(`SELECT pg_current_wal_insert_lsn()::text`)
		r.exec(`INSERT INTO t SELECT generate_series(1,1000)`)
		r.until(run, "a part is there", func() bool { return len(r.read(r.topic("t"))) > 0 })
		for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); {
			stored := r.lsn(`SELECT $1::text`, run.c.Status().Positions["stored"])
			if stored > before || r.lsn(`SELECT $1::text`, r.confirmed()) > before {
				t.Fatalf("stored %s, slot at %s: the transaction begins behind %s", stored, r.confirmed(),
					before)
			}
		}
		if n := len(r.read(r.topic("t"))); n == 1000 {
			t.Fatal("all of it is there")
		}
		r.exec(`SELECT pg_terminate_backend(` + r.walsender() + `)`)
		r.until(run, "the session is lost", func() bool {
			return strings.Contains(r.log.String(), "another one begins")
		})
		release()
		r.caughtUp(run)
		if n := len(ids(r.read(r.topic("t")))); n != 1000 {
			t.Errorf("%d of 1000 rows", n)
		}
		r.clean(run)
	})
}

// Cuts behind each record: TestF46ASessionLostAmidATransactionLosesNothing. Here: rows that share
// their LSN, and transactions side by side, are told apart; a stop that confirmed all repeats
// nothing.
func TestF60K23EqualLSNs(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.exec(`CREATE TABLE c43(id int PRIMARY KEY)`)
		run := r.streaming()
		var text strings.Builder
		for i := 1; i <= 100; i++ {
			fmt.Fprintln(&text, i)
		}
		if _, err := r.sql.PgConn().CopyFrom(t.Context(), strings.NewReader(text.String()),
			"COPY c43 FROM STDIN"); err != nil {
			t.Fatal(err)
		}
		r.exec(`INSERT INTO c43 VALUES (101)`, `INSERT INTO c43 VALUES (102)`)
		for range 2 {
			events := r.drain(run, "c43")
			if len(events) != 102 || len(ids(events)) != 102 {
				t.Fatalf("%d events of %d rows, want 102", len(events), len(ids(events)))
			}
			var last [2]int64
			for i, e := range events {
				source := e.value["source"].(map[string]any)
				at := [2]int64{inner(source["commit_lsn"]).(int64), source["event_index"].(int64)}
				if at[0] < last[0] || at[0] == last[0] && at[1] <= last[1] {
					t.Fatalf("event %d has the pair %v behind %v", i, at, last)
				}
				last = at
			}
			r.clean(run)
			run = r.streaming()
		}
		r.clean(run)
	})
}

// A blocked broker and a registry that is down: TestF19F48ABlockedBrokerKeepsTheConnectionAndShows
// and TestF40ARegistryThatIsDownIsWaitedFor. Here: a transaction that is decoded for longer than the
// walsender's timeout.
func TestF48F58K24SlowSinkAmidALargeTransaction(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.keys["max.queue.bytes"] = "1048576"
		r.exec(`ALTER DATABASE `+r.db+` SET wal_sender_timeout = '1s'`,
			`CREATE TABLE t(id int PRIMARY KEY, v text)`)
		run := r.streaming()
		pid := r.walsender()
		release := r.refuseAfter(1000)
		r.exec(`INSERT INTO t SELECT g, repeat('x', 500) FROM generate_series(1,20000) g`)
		r.until(run, "the connector waits for the broker", func() bool { return !run.c.Status().Ready })
		for deadline := time.Now().Add(3 * time.Second); time.Now().Before(deadline); {
			if now := r.walsender(); now != pid {
				t.Fatalf("walsender %s became %s\n%s", pid, now, r.log.String())
			}
			time.Sleep(50 * time.Millisecond)
		}
		release()
		if n := len(ids(r.drain(run, "t"))); n != 20000 {
			t.Errorf("%d of 20000 rows", n)
		}
		if r.walsender() != pid {
			t.Error("the session is another")
		}
		r.clean(run)
	})
}

// Two instances: instances_test.go; a silent server: TestF47ASilentServerIsAskedAndThenGivenUp of
// capture; a restart: TestF45AServerThatRestartsLosesNothing. Here: a cut on every connection at
// once, while rows flow, as a broken router makes it.
func TestF47K28Cuts(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		proxy := r.viaProxy()
		r.exec(`CREATE TABLE t(id int PRIMARY KEY)`)
		run := r.streaming()
		for i := range 3 {
			r.exec(fmt.Sprintf(`INSERT INTO t SELECT generate_series(%d,%d)`, 1000*i+1, 1000*i+500))
			proxy.ResetAll()
			r.exec(fmt.Sprintf(`INSERT INTO t SELECT generate_series(%d,%d)`, 1000*i+501, 1000*i+1000))
			r.until(run, "it streams again", func() bool {
				return strings.Count(r.log.String(), "msg=streaming") > i+1
			})
		}
		if n := len(ids(r.drain(run, "t"))); n != 3000 {
			t.Errorf("%d of 3000 rows", n)
		}
		r.clean(run)
	})
}
