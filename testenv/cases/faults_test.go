package cases_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/testenv"
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

// Keepalives amid unconfirmed rows: TestNoKeepaliveMovesTheSlotPastAnUnconfirmedCommit. Here: a
// connection that never carries data reports a position, which never falls and is never 0.
func TestK21IdleFromTheFirstMoment(t *testing.T) {
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

// A session cut amid a transaction: TestASessionLostAmidATransactionLosesNothing. Here: while a part
// of a transaction is confirmed neither record nor slot says that it is done.
func TestK22PositionWithinATransaction(t *testing.T) {
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

// Cuts behind each record: TestASessionLostAmidATransactionLosesNothing. Here: rows that share their
// LSN, and transactions side by side, are told apart; a stop that confirmed all repeats nothing.
func TestK23EqualLSNs(t *testing.T) {
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

// A blocked broker and a registry that is down: TestABlockedBrokerKeepsTheConnectionAndShows and
// TestARegistryThatIsDownIsWaitedFor. Here: a transaction that is decoded for longer than the
// walsender's timeout.
func TestK24SlowSinkAmidALargeTransaction(t *testing.T) {
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

// own starts a server that the test configures.
func own(t *testing.T, version string, settings map[string]string) *testenv.Postgres {
	t.Helper()
	pg, err := testenv.StartPostgres(t.Context(),
		testenv.PostgresOptions{Version: version, Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pg.Close(); err != nil {
			t.Error(err)
		}
	})
	return pg
}

// WAL that is gone: TestALostSlotIsRefused and TestASlotThatIsLostWhileStreamingStopsTheConnector.
// Here: what 18 adds, and that repair, which is not there yet, is refused and not taken for done.
func TestK25SlotThatWasIdleTooLong(t *testing.T) {
	t.Parallel()
	r := newRig(t, own(t, "18", nil))
	r.exec(`CREATE TABLE t(id int PRIMARY KEY)`, `INSERT INTO t VALUES (1)`)
	run := r.streaming()
	r.caughtUp(run)
	r.clean(run)
	if err := r.pg.SetConf(t.Context(), map[string]string{"idle_replication_slot_timeout": "1s"}); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		r.exec(`CHECKPOINT`)
		if r.query(`SELECT coalesce(invalidation_reason, '') FROM pg_replication_slots
			WHERE slot_name = $1`, r.slot()) == "idle_timeout" {
			break
		}
		if time.Now().After(deadline) {
			t.Skip("the server does not invalidate idle slots")
		}
	}
	r.exec(`INSERT INTO t VALUES (2)`, `DELETE FROM t WHERE id = 1`)
	for range 2 {
		r.ends(r.start(), fault.SlotLost, r.slot(), "idle_timeout", "idle_replication_slot_timeout")
	}
	if got := ops(r.read(r.topic("t"))); got != "r" {
		t.Errorf("topic holds %q", got)
	}
	if r.query(`SELECT count(*)::text FROM pg_replication_slots WHERE slot_name = $1`, r.slot()) != "1" {
		t.Error("the slot was dropped")
	}
	r.keys["on.slot.gap"] = "resnapshot"
	if _, err := r.settings(); fault.CodeOf(err) != fault.ConfigInvalid {
		t.Errorf("on.slot.gap: resnapshot gives %v", err)
	}
}

// Answers of the start to each state of a slot: connector's TestASlot... and offsets' matrix. Here: a
// promotion, with a slot that the standby synchronised (c), with none (a), and with a new one (b).
func TestK26Failover(t *testing.T) {
	t.Parallel()
	primary := own(t, "18", nil)
	standby, err := testenv.StartStandby(t.Context(), primary, testenv.PostgresOptions{
		Settings: map[string]string{"sync_replication_slots": "on"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := standby.Close(); err != nil {
			t.Error(err)
		}
	})
	proxy, err := testenv.NewProxy(fmt.Sprintf("%s:%d", primary.Host, primary.Port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	r := newRig(t, primary)
	r.keys["database.hostname"], r.keys["database.port"] = "127.0.0.1", fmt.Sprint(proxy.Port())
	r.keys["slot.failover"] = "true"
	r.exec(`CREATE TABLE t(id int PRIMARY KEY)`)
	run := r.streaming()
	r.exec(`INSERT INTO t SELECT generate_series(1,50)`)
	r.caughtUp(run)
	ask := func(db, sql string, args ...any) (out string) {
		conn, err := standby.Connect(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		if err := conn.QueryRow(t.Context(), sql, args...).Scan(&out); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		return out
	}
	r.until(run, "the standby has the slot", func() bool {
		// A copy becomes usable once the slot itself has moved beyond where the copy began.
		r.exec(`SELECT pg_log_standby_snapshot()`)
		r.caughtUp(run)
		return ask("postgres", `SELECT EXISTS (SELECT FROM pg_replication_slots
			WHERE slot_name = $1 AND synced AND NOT temporary)::text`, r.slot()) == "true"
	})
	release := r.refuseAfter(0) // 50 behind
	for i := 51; i <= 100; i++ {
		r.exec(fmt.Sprintf(`INSERT INTO t VALUES (%d)`, i))
	}
	end := r.query(`SELECT pg_current_wal_insert_lsn()::text`)
	r.until(run, "the standby has all", func() bool {
		return ask("postgres", `SELECT (pg_last_wal_replay_lsn() >= $1::pg_lsn)::text`, end) == "true"
	})
	proxy.Cut()
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}
	proxy.SetTarget(fmt.Sprintf("%s:%d", standby.Host, standby.Port))
	if err := proxy.Heal(); err != nil {
		t.Fatal(err)
	}
	r.until(run, "it waits for the promotion", func() bool { // the address may move first
		return strings.Contains(strings.Join(run.c.Status().Reasons, " "), "after promotion only")
	})
	ask("postgres", `SELECT pg_promote()::text`)
	release()
	r.pg = standby
	r.connect()
	r.until(run, "streaming from the new primary", func() bool {
		return run.c.Status().State == "streaming" && run.c.Status().Ready
	})
	r.exec(`INSERT INTO t VALUES (101)`)
	if n := len(ids(r.drain(run, "t"))); n != 101 {
		t.Errorf("%d of 101 rows", n)
	}
	r.clean(run)
	drop := `SELECT pg_drop_replication_slot('` + r.slot() + `')`
	r.exec(drop)
	r.ends(r.start(), fault.SlotMissing, r.slot())
	r.exec(`INSERT INTO t VALUES (102)`,
		`SELECT pg_create_logical_replication_slot('`+r.slot()+`','pgoutput')`)
	r.ends(r.start(), fault.SlotAhead, r.slot())
}

// Two instances: instances_test.go; a silent server: capture's TestASilentServerIsAskedAndThenGivenUp;
// a restart: TestAServerThatRestartsLosesNothing. Here: a cut on every connection at once, while rows
// flow, as a broken router makes it.
func TestK28Cuts(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		proxy, err := testenv.NewProxy(fmt.Sprintf("%s:%d", r.pg.Host, r.pg.Port))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(proxy.Close)
		r.keys["database.hostname"], r.keys["database.port"] = "127.0.0.1", fmt.Sprint(proxy.Port())
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

// Writers from before the start to after the snapshot, a transaction that is open all the while, a
// column that comes in between: the topic folds to the table.
func TestK29HandOver(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.exec(`CREATE TABLE t(id int PRIMARY KEY, v int)`,
			`INSERT INTO t SELECT g, 0 FROM generate_series(1,20000) g`)
		stop := make(chan struct{})
		const writers = 4
		done := make(chan error, writers)
		for w := range writers {
			go func() { done <- r.write(w, stop) }()
		}
		run := r.start()
		r.until(run, "the snapshot is under way", func() bool {
			return strings.Contains(r.log.String(), "reading a table")
		})
		long, err := r.pg.Connect(t.Context(), r.db)
		if err != nil {
			t.Fatal(err)
		}
		defer long.Close(context.Background())
		for _, sql := range []string{
			`BEGIN`, `INSERT INTO t VALUES (-1, 1)`, `UPDATE t SET v = 99 WHERE id = 20000`,
		} {
			if _, err := long.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
		r.until(run, "streaming", func() bool { return run.c.Status().State == "streaming" })
		if _, err := long.Exec(t.Context(), `COMMIT`); err != nil {
			t.Fatal(err)
		}
		r.exec(`ALTER TABLE t ADD COLUMN n int`, `UPDATE t SET n = 7 WHERE id <= 20000 AND id % 100 = 0`)
		close(stop)
		for range writers {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		r.exec(`UPDATE t SET v = v`) // every row once more has the column that came
		r.foldsTo(run, "t", `SELECT format('{id:%s n:%s v:%s}', id, coalesce(n::text, '-'), v) FROM t`)
		r.clean(run)
	})
}

// write changes rows of its own number until stop: inserts, updates, deletes, and changes of key.
func (r *rig) write(w int, stop chan struct{}) error {
	conn, err := r.pg.Connect(context.Background(), r.db)
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	for i := 0; ; i++ {
		select {
		case <-stop:
			return nil
		default:
		}
		id := w + 4*(i%4000) // below 20000, of which each writer has every fourth
		for _, sql := range []string{
			fmt.Sprintf(`UPDATE t SET v = v + 1 WHERE id = %d`, id),
			fmt.Sprintf(`UPDATE t SET id = id + 100000 WHERE id = %d`, id+4),
			fmt.Sprintf(`DELETE FROM t WHERE id = %d`, id+8),
			fmt.Sprintf(`INSERT INTO t(id, v) VALUES (%d, %d) ON CONFLICT DO NOTHING`, id+8, i),
		} {
			if _, err := conn.Exec(context.Background(), sql); err != nil {
				return err
			}
		}
	}
}

// Kills amid a snapshot: TestASnapshotThatWasInterruptedBeginsAgain and testenv/proof. Here: limits
// that a role has for its sessions end neither snapshot nor stream, however long those take.
func TestK30LimitsOfTheRole(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.keys["max.queue.bytes"] = "1048576"
		r.exec(`CREATE TABLE t(id int PRIMARY KEY, v text)`, `CREATE TABLE z(id int PRIMARY KEY)`,
			`INSERT INTO t SELECT g, repeat('x', 500) FROM generate_series(1,5000) g`)
		limits := []string{
			"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout",
			"idle_session_timeout",
		}
		if r.major >= 17 {
			limits = append(limits, "transaction_timeout")
		}
		for _, name := range limits {
			r.exec(`ALTER DATABASE ` + r.db + ` SET ` + name + ` = '500ms'`)
		}
		release := r.refuseAfter(100)
		run := r.start()
		time.Sleep(1500 * time.Millisecond) // longer than every limit, in the snapshot
		release()
		r.until(run, "streaming", func() bool { return run.c.Status().State == "streaming" })
		pid := r.walsender()
		release = r.refuseAfter(100)
		r.exec(`INSERT INTO t SELECT g, repeat('x', 500) FROM generate_series(5001,10000) g`)
		time.Sleep(1500 * time.Millisecond) // and amid a transaction of the stream
		release()
		r.exec(`INSERT INTO z VALUES (1)`) // asks the catalog, on a session that was idle
		if n := len(ids(r.drain(run, "t"))); n != 10000 {
			t.Errorf("%d of 10000 rows", n)
		}
		if got := ops(r.read(r.topic("z"))); got != "c" {
			t.Errorf("table z: %q", got)
		}
		if log := r.log.String(); strings.Contains(log, "another one begins") || r.walsender() != pid {
			t.Errorf("a limit ended a session:\n%s", log)
		}
		r.clean(run)
	})
}

// A record that says nothing of its snapshot is not taken for one whose snapshot is done; a table
// that was made again under the same name is another table.
func TestK30InterruptedSnapshotIsNotDone(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.exec(`CREATE TABLE a(id int PRIMARY KEY)`, `CREATE TABLE b(id int PRIMARY KEY, v int)`,
			`INSERT INTO a SELECT generate_series(1,2000)`,
			`INSERT INTO b SELECT g, 1 FROM generate_series(1,2000) g`)
		release := r.refuseAfter(2500)
		run := r.start()
		r.until(run, "the second table is under way", func() bool {
			return len(r.read(r.topic("b"))) > 0 || strings.Contains(r.log.String(), "table=public.b")
		})
		run.stop()
		release()
		r.exec(`DELETE FROM a WHERE id <= 10`, `DROP TABLE b`, `CREATE TABLE b(id int PRIMARY KEY, w int)`,
			`ALTER PUBLICATION tidemark ADD TABLE b`, `INSERT INTO b SELECT g, 2 FROM generate_series(1,5) g`)
		run = r.streaming()
		if n := len(fold(t, r.drain(run, "a"))); n != 1990 {
			t.Errorf("table a folds to %d rows, want 1990", n)
		}
		r.clean(run)
	})
}
