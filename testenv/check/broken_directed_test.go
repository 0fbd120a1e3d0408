package check_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/offsets"
	"github.com/tidemark-cdc/tidemark/testenv"
	"github.com/tidemark-cdc/tidemark/testenv/check"
	"github.com/tidemark-cdc/tidemark/testenv/proof"
	"github.com/tidemark-cdc/tidemark/testenv/workload"
)

// The faults of this file show in situations that a run meets rarely: each test makes the
// situation, once with the fault and once without.

// withAndWithout runs a scenario with a fault, which has to be noticed, and without one, when
// nothing may be.
func withAndWithout(t *testing.T, fault string, want check.Kind,
	scenario func(t *testing.T, s *scene, fault string),
) {
	for name, fault := range map[string]string{"with " + fault: fault, "without": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &scene{t: t}
			scenario(t, s, fault)
			t.Log(s.report)
			switch noticed := s.refused || s.report.Counts[want] > 0; {
			case fault == "" && (s.refused || !s.report.OK()):
				t.Errorf("something is wrong without a fault\n%s", s.LogTail())
			case fault != "" && !noticed:
				t.Errorf("%s was not noticed: want a failure of %s", fault, want)
			}
		})
	}
}

// scene is a rig in the situation that a fault needs.
type scene struct {
	*proof.Rig
	t       *testing.T
	report  *check.Report
	refused bool // the connector noticed it itself
	broker  *testenv.FakeBroker
}

func (s *scene) prepare(configure func(*proof.Rig)) {
	s.t.Helper()
	s.Rig, s.broker = brokenRig(s.t, workload.Options{Seed: 8, Keys: 100}, configure)
}

// sampler looks at what is stored and told only: two processes answer for one connector here.
func (s *scene) sampler() *check.Sampler {
	o := s.SamplerOptions()
	o.ReadyURL = ""
	return check.StartSampler(o)
}

func (s *scene) start(env ...string) {
	s.t.Helper()
	if err := s.Start(env...); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	if err := s.AwaitStreaming(ctx); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) write(changes int64) {
	s.t.Helper()
	if err := s.Workload.Run(s.t.Context(), changes); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) scalar(sql string) (text string) {
	s.t.Helper()
	conn, err := s.Postgres.Connect(s.t.Context(), s.Database)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close(s.t.Context())
	err = conn.QueryRow(s.t.Context(), sql, pgx.QueryExecModeSimpleProtocol).Scan(&text)
	if err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
	return text
}

// told reports whether the slot was told a position.
func (s *scene) told(lsn string) bool {
	return s.scalar("SELECT (confirmed_flush_lsn >= '"+lsn+"')::text FROM pg_replication_slots "+
		"WHERE slot_name = '"+s.Slot()+"'") == "true"
}

// streamed reports whether somebody has the slot.
func (s *scene) streamed() bool {
	return s.scalar("SELECT active::text FROM pg_replication_slots "+
		"WHERE slot_name = '"+s.Slot()+"'") == "true"
}

func (s *scene) now() string { return s.scalar("SELECT pg_current_wal_insert_lsn()::text") }

// until waits for a condition; after limit it returns false.
func until(limit time.Duration, ok func() bool) bool {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if ok() {
			return true
		}
	}
	return false
}

func (s *scene) must(what string, ok func() bool) {
	s.t.Helper()
	if !until(time.Minute, ok) {
		second, _ := os.ReadFile(filepath.Join(s.Dir, "second.log")) // there is none, mostly
		s.t.Fatalf("not within a minute: %s\n%s\n%s", what, s.LogTail(), second)
	}
}

// judge checks everything, and adds what a sampler saw.
func (s *scene) judge(sampler *check.Sampler) {
	s.t.Helper()
	report, err := s.Check(s.t.Context(), 15*time.Second)
	if err != nil {
		s.t.Fatal(err)
	}
	if sampler != nil {
		report.Add(sampler.Stop())
	}
	s.report = report
}

// A keepalive's position is taken while the brokers have not confirmed what came before it.
func TestBrokenNoK3(t *testing.T) {
	withAndWithout(t, "no_k3", check.Hole, func(t *testing.T, s *scene, fault string) {
		s.prepare(nil)
		refuse, _ := s.refuseEvents()
		s.start("TIDEMARK_FAULT=" + fault)
		s.write(200)
		before := s.now()
		s.must("everything is confirmed", func() bool { return s.told(before) })
		refuse.Store(true)
		s.write(50)
		behind := s.now()
		limit := time.Minute
		if fault == "" {
			limit = 2 * time.Second // it must not come, and is not waited for
		}
		moved := until(limit, func() bool {
			s.scalar("SELECT pg_logical_emit_message(true, 'noise', '')::text")
			return s.told(behind)
		})
		if moved != (fault != "") {
			t.Errorf("with %q the slot was told a position behind what is unconfirmed: %t", fault, moved)
		}
		s.Kill()
		refuse.Store(false)
		s.start()
		s.judge(nil)
	})
}

// refuseEvents lets the broker refuse events, but not positions, while refuse is set; asked counts
// how often it did.
func (s *scene) refuseEvents() (refuse *atomic.Bool, asked *atomic.Int64) {
	refuse, asked = new(atomic.Bool), new(atomic.Int64)
	cluster := s.broker.Cluster()
	s.broker.Control(int16(kmsg.Produce), func(k kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if req := k.(*kmsg.ProduceRequest); req.TransactionID == nil && refuse.Load() {
			asked.Add(1)
			return refused(req), nil, true
		}
		return nil, nil, false
	})
	return refuse, asked
}

func refused(req *kmsg.ProduceRequest) *kmsg.ProduceResponse {
	resp := req.ResponseKind().(*kmsg.ProduceResponse)
	for _, rt := range req.Topics {
		topic := kmsg.NewProduceResponseTopic()
		topic.Topic, topic.TopicID = rt.Topic, rt.TopicID
		for _, rp := range rt.Partitions {
			p := kmsg.NewProduceResponseTopicPartition()
			p.Partition, p.ErrorCode, p.BaseOffset = rp.Partition, kerr.NotEnoughReplicas.Code, -1
			topic.Partitions = append(topic.Partitions, p)
		}
		resp.Topics = append(resp.Topics, topic)
	}
	return resp
}

// A process stands still while another one takes over, and wakes up without a word from the server:
// it stores what it had, over the newer position.
func TestBrokenNoFence(t *testing.T) {
	withAndWithout(t, "no_fence", check.Positions, func(t *testing.T, s *scene, fault string) {
		var proxy *testenv.Proxy
		s.prepare(func(r *proof.Rig) {
			var err error
			proxy, err = testenv.NewProxy(fmt.Sprintf("%s:%d", r.Postgres.Host, r.Postgres.Port))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(proxy.Close)
			r.Keys = map[string]string{
				"database.port": fmt.Sprint(proxy.Port()), "offset.flush.interval.ms": "50",
			}
		})
		refuse, asked := s.refuseEvents()
		s.start("TIDEMARK_FAULT=" + fault)
		sampler := s.sampler()
		written := make(chan error, 1)
		go func() { written <- s.Workload.Run(t.Context(), 1<<40) }()
		s.must("positions are stored under load", func() bool {
			r, err := s.Record(t.Context())
			return err == nil && r != nil && r.TxID != 0
		})
		// It stands still with events that it will send, and have confirmed, when it wakes up.
		refuse.Store(true)
		s.must("events are on their way", func() bool { return asked.Load() > 2 })
		first := s.Process()
		first.Signal(syscall.SIGSTOP)
		refuse.Store(false)
		proxy.Stall(testenv.BothWays)
		s.scalar("SELECT coalesce(pg_terminate_backend(active_pid), true)::text " +
			"FROM pg_replication_slots WHERE slot_name = '" + s.Slot() + "'")
		delete(s.Keys, "database.port")
		second, err := s.StartSecond(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(second.Kill)
		behind := s.now()
		s.must("the second process has gone on", func() bool { return s.told(behind) })
		first.Signal(syscall.SIGCONT)
		if fault == "" {
			if err := first.Wait(time.Minute); err == nil {
				t.Error("the first process ended well")
			}
			if !strings.Contains(s.LogTail(), `"code":"fenced"`) {
				t.Errorf("the first process does not say that it was fenced:\n%s", s.LogTail())
			}
		} else if err := second.Wait(time.Minute); err == nil {
			t.Error("the second process has not found its position to be gone")
		}
		s.Workload.Finish()
		if err := <-written; err != nil {
			t.Fatal(err)
		}
		// Records that the first process still held may come between those of the second, in this mode:
		// positions are what the fence protects.
		s.report = &check.Report{Counts: map[check.Kind]int{}}
		s.report.Add(sampler.Stop())
	})
}

// A process looks, and waits before it streams; another one streams meanwhile, stores, and is gone.
func TestBrokenNoSecondLook(t *testing.T) {
	withAndWithout(t, "no_second_look", check.Positions, func(t *testing.T, s *scene, fault string) {
		s.prepare(nil)
		s.start()
		s.write(200)
		sampler := s.sampler()
		caughtUp := func() {
			t.Helper()
			now := s.now()
			s.must("everything is told", func() bool { return s.told(now) })
			s.Kill()
			// Or the next one finds the slot taken, and begins anew.
			s.must("nobody streams", func() bool { return !s.streamed() })
		}
		caughtUp()
		hold := filepath.Join(s.Dir, "hold")
		second, err := s.StartSecond(t.Context(), "TIDEMARK_FAULT="+fault, "TIDEMARK_HOLD="+hold)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(second.Kill)
		s.must("the second process has looked", func() bool {
			_, err := os.Stat(hold)
			return err == nil
		})
		s.start()
		s.write(200)
		caughtUp()
		before := s.stored()
		s.must("it goes on", func() bool {
			_ = os.Remove(hold) // it may look and wait more than once
			return s.streamed() && s.stored().TsUsec > before.TsUsec
		})
		second.Kill()
		if fault != "" { // whoever comes next finds the slot ahead of what is stored
			s.report = &check.Report{Counts: map[check.Kind]int{}}
			s.report.Add(sampler.Stop())
			return
		}
		s.start()
		s.judge(sampler)
	})
}

func (s *scene) stored() *offsets.Record {
	s.t.Helper()
	r, err := s.Record(s.t.Context())
	if err != nil || r == nil {
		s.t.Fatalf("the stored record: %v, %v", r, err)
	}
	return r
}

// A source transaction was cut between two rows, and its next part begins one row too late.
func TestBrokenSkipOneMore(t *testing.T) {
	withAndWithout(t, "skip_one_more", check.Hole, offByOne)
}

// The same, and one row too early.
func TestBrokenSkipOneLess(t *testing.T) {
	withAndWithout(t, "skip_one_less", check.Once, offByOne)
}

// offByOne cuts a COPY, whose rows share LSNs: only then does the row before the cut not tell.
// Where it does, at the edge of a page, the connector refuses.
func offByOne(t *testing.T, s *scene, fault string) {
	s.prepare(func(r *proof.Rig) {
		r.ExactlyOnce = true
		r.Keys = map[string]string{"exactly.once.batch.bytes": "2048"}
	})
	s.start()
	if err := s.Process().Stop(time.Minute); err != nil {
		t.Fatal(err)
	}
	s.copy(4000)
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	s.must("a transaction is cut", func() bool { return s.stored().LSNCommit != 0 })
	s.Kill()
	if s.stored().LSNCommit == 0 {
		t.Fatal("the transaction came whole before the connector was killed")
	}
	if err := s.Start("TIDEMARK_FAULT=" + fault); err != nil {
		t.Fatal(err)
	}
	behind := s.now()
	s.must("it has gone on, or refused", func() bool {
		ended, _ := s.Process().Ended()
		s.refused = s.refused || ended
		return ended || s.told(behind)
	})
	if s.refused {
		s.report = &check.Report{}
		if !strings.Contains(s.LogTail(), `"code":"transaction_changed"`) {
			t.Errorf("the connector ended, and not for the cut:\n%s", s.LogTail())
		}
		return
	}
	s.judge(nil)
}

// copy writes rows with one COPY.
func (s *scene) copy(rows int) {
	s.t.Helper()
	conn, err := s.Postgres.Connect(s.t.Context(), s.Database)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close(s.t.Context())
	var b strings.Builder
	for n := range rows {
		fmt.Fprintf(&b, "%d\t1\tcopied\n", n+1)
	}
	_, err = conn.PgConn().CopyFrom(s.t.Context(), strings.NewReader(b.String()),
		"COPY w.copied (id, v, note) FROM STDIN")
	if err != nil {
		s.t.Fatal(err)
	}
}
