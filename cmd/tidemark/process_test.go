package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/testenv"
)

// set adds a key of the connector to the configuration.
func (s *site) set(key, value string) {
	s.t.Helper()
	b, err := os.ReadFile(s.file)
	if err == nil {
		text := fmt.Sprintf("%s    %s: %s\n", b, key, value)
		err = os.WriteFile(s.file, []byte(text), 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// inBothModes runs a test at least once and exactly once.
func inBothModes(t *testing.T, test func(t *testing.T, s *site)) {
	t.Helper()
	for i, mode := range []string{"at_least_once", "exactly_once"} {
		support := []string{"disabled", "required"}[i]
		t.Run(mode, func(t *testing.T) {
			testenv.OneModeIsEnough(t, i)
			s := newSite(t)
			s.set("exactly.once.support", support)
			test(t, s)
		})
	}
}

// Asked to stop under load, the process sends what it has read of a transaction, stores that, tells
// the slot, and ends in order; the next one repeats nothing.
func TestF10AskedToStopUnderLoad(t *testing.T) {
	inBothModes(t, func(t *testing.T, s *site) {
		p := s.start()
		const rows = 4000
		done := make(chan error, 1)
		go func() {
			done <- s.pg.Exec(t.Context(), s.db, fmt.Sprintf(
				"INSERT INTO t SELECT g, repeat('v', 500) FROM generate_series(2, %d) g", rows))
		}()
		p.until("rows are being sent", func() bool {
			_, text := s.get("/metrics")
			return strings.Contains(text, `op="c"`)
		})
		if status := p.stop(); status != 0 {
			t.Errorf("exit %d\n%s", status, p.stderr.String())
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		p = s.start()
		end := s.ask("SELECT pg_current_wal_insert_lsn()::text")
		s.exec("INSERT INTO t VALUES (0, 'last')")
		p.until("all is told to the slot", func() bool {
			return s.ask("SELECT (confirmed_flush_lsn > '"+end+"')::text FROM pg_replication_slots "+
				"WHERE slot_name = 's_"+s.db+"'") == "true"
		})
		if status := p.stop(); status != 0 {
			t.Errorf("exit %d\n%s", status, p.stderr.String())
		}
		if n := len(s.events()); n != rows+1 {
			t.Errorf("%d events, want one of each of %d rows", n, rows+1)
		}
	})
}

// ask returns the one text that a query gives.
func (s *site) ask(sql string) (out string) {
	s.t.Helper()
	conn, err := s.pg.Connect(s.t.Context(), s.db)
	if err == nil {
		defer conn.Close(s.t.Context())
		err = conn.QueryRow(s.t.Context(), sql).Scan(&out)
	}
	if err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
	return out
}

// While it waits for a broker at its end, a second signal ends the process at once, with the
// status of that signal; what was not confirmed comes again.
func TestF10AskedTwice(t *testing.T) {
	s := newSite(t)
	p := s.start()
	release := s.refuse()
	s.exec("INSERT INTO t VALUES (2, 'two')")
	p.until("the row is read", func() bool {
		_, text := s.get("/metrics")
		return strings.Contains(text, `op="c",table="public.t"} 1`)
	})
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.until("nobody is told of its health any more", func() bool {
		status, _ := s.get("/readyz")
		return status == 0
	})
	began := time.Now()
	p.stopAgain()
	status := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if took := time.Since(began); took > 5*time.Second || status.Signal() != syscall.SIGTERM {
		t.Errorf("after %s it ended with %v", took, p.cmd.ProcessState)
	}
	release()
	p = s.start()
	p.until("the row", func() bool { return len(s.events()) == 2 })
	if status := p.stop(); status != 0 {
		t.Errorf("exit %d\n%s", status, p.stderr.String())
	}
}

// stopAgain asks the process to stop until it has ended, as an impatient person does.
func (p *process) stopAgain() {
	p.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case <-p.done:
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
	p.t.Fatal("the process did not end")
}

// refuse makes the broker refuse everything, with an error that the client tries again after.
func (s *site) refuse() (release func()) {
	var off atomic.Bool
	cluster := s.broker.Cluster()
	cluster.ControlKey(int16(kmsg.Produce), func(k kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if off.Load() {
			return nil, nil, false
		}
		resp := k.(*kmsg.ProduceRequest).ResponseKind().(*kmsg.ProduceResponse)
		for _, topic := range k.(*kmsg.ProduceRequest).Topics {
			answer := kmsg.NewProduceResponseTopic()
			answer.Topic, answer.TopicID = topic.Topic, topic.TopicID
			for _, p := range topic.Partitions {
				part := kmsg.NewProduceResponseTopicPartition()
				part.Partition, part.ErrorCode, part.BaseOffset = p.Partition, kerr.NotEnoughReplicas.Code, -1
				answer.Partitions = append(answer.Partitions, part)
			}
			resp.Topics = append(resp.Topics, answer)
		}
		return resp, nil, true
	})
	return func() { off.Store(true) }
}

// The disk that the log is on is full: every write of the log fails, and rows go on.
func TestF15TheLogCannotBeWritten(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("there is no /dev/full")
	}
	defer full.Close()
	s := newSite(t)
	p := startCommand(t, func(cmd *exec.Cmd) { cmd.Stdout, cmd.Stderr = full, full }, os.Args[0],
		"run", "-c", s.file, "--log-level", "debug")
	s.streams(p)
	s.exec("INSERT INTO t VALUES (2, 'two')", "DELETE FROM t")
	p.until("the changes", func() bool { return len(s.events()) == 4 })
	if status := p.stop(); status != 0 {
		t.Errorf("exit %d", status)
	}
}

// With too few file descriptors there is no session: the process says so, tries again, and stops in
// order when it is asked to. With enough of them nothing is missing.
func TestF16TooFewFileDescriptors(t *testing.T) {
	s := newSite(t)
	if status := s.start().stop(); status != 0 {
		t.Fatalf("exit %d", status)
	}
	s.exec("INSERT INTO t VALUES (2, 'two')")
	p := startCommand(t, nil, "sh", "-c", `ulimit -n 12 && exec "$0" "$@"`, os.Args[0],
		"run", "-c", s.file)
	p.until("it says that it cannot reach a server", func() bool {
		status, body := s.get("/readyz")
		return status == http.StatusServiceUnavailable && strings.Contains(body, "_unreachable")
	})
	if status := p.stop(); status != 0 {
		t.Errorf("exit %d", status)
	}
	if says := p.stderr.String(); !strings.Contains(says, "too many open files") ||
		!strings.Contains(says, "another one begins") {
		t.Errorf("the log does not say what is wrong and that it tries again:\n%s", says)
	}
	p = s.start()
	p.until("the row", func() bool { return len(s.events()) == 2 })
	if status := p.stop(); status != 0 {
		t.Errorf("exit %d\n%s", status, p.stderr.String())
	}
}
