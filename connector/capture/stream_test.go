package capture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/offsets"
	"github.com/tidemark-cdc/tidemark/testenv"
)

func TestAKeepaliveComesWhenAskedForBehindTheData(t *testing.T) {
	t.Parallel()
	s := newSource(t, testenv.SharedPostgres(t, "18"), table)
	_, point := s.slot()
	s.exec("INSERT INTO t VALUES (1, 'a')")
	st := s.start(point)
	r := read(t, st)
	r.expect("begin", "relation t", "insert t1 ta", "commit")
	s.exec("CREATE TABLE unpublished (); DROP TABLE unpublished")
	r.quiet(s.lsn("SELECT pg_current_wal_lsn()"))
	if st.Received() < r.commits[0] {
		t.Errorf("received %s, the commit's end was %s", st.Received(), r.commits[0])
	}
}

func TestTheSlotFollowsSetFlushedAndNeverFalls(t *testing.T) {
	t.Parallel()
	s := newSource(t, testenv.SharedPostgres(t, "18"), table)
	_, point := s.slot()
	s.exec("INSERT INTO t VALUES (1, 'a')", "INSERT INTO t VALUES (2, 'b')")
	st := s.start(point)
	if st.Flushed() != 0 {
		t.Fatalf("flushed is %s before anything was", st.Flushed())
	}
	r := read(t, st)
	r.expect("begin", "relation t", "insert t1 ta", "commit", "begin", "insert t2 tb", "commit")
	if got := s.confirmed(); got != point {
		t.Fatalf("the slot moved to %s though nothing was flushed", got)
	}
	st.SetFlushed(r.commits[1])
	eventually(t, "the slot is at the second commit", func() bool {
		return s.confirmed() == r.commits[1]
	})
	st.SetFlushed(r.commits[0])
	if st.Flushed() != r.commits[1] {
		t.Errorf("flushed fell to %s", st.Flushed())
	}
	r.quiet(r.commits[1]) // a status update went out
	for _, column := range []string{"write_lsn", "flush_lsn", "replay_lsn"} {
		if got := s.lsn(fmt.Sprintf("SELECT %s FROM pg_stat_replication WHERE pid = %d",
			column, st.PID())); got != r.commits[1] {
			t.Errorf("%s is %s, want %s", column, got, r.commits[1])
		}
	}
}

func TestF48AReaderThatStandsStillKeepsItsConnection(t *testing.T) {
	t.Parallel()
	s := newSource(t, testenv.SharedPostgres(t, "18"), table)
	_, point := s.slot()
	// More than all buffers between server and reader hold, so that the server has to wait.
	s.exec("INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(1, 60000) i")
	s.exec("ALTER DATABASE " + quoteIdent(s.db.Name) + " SET wal_sender_timeout = '2s'")
	st := s.start(point)
	r := read(t, st)
	r.expect("begin", "relation t")
	time.Sleep(6 * time.Second) // three timeouts without a read: the time itself is the condition
	for i := 1; i <= 60000; i++ {
		if got := r.next(); !strings.HasPrefix(got, fmt.Sprintf("insert t%d ", i)) {
			t.Fatalf("row %d: %.40s", i, got)
		}
		r.frames, r.starts = nil, nil
	}
	r.expect("commit")
	if got := s.confirmed(); got != point {
		t.Errorf("the slot moved to %s though nothing was flushed", got)
	}
}

func TestACancelledNextLosesNothing(t *testing.T) {
	t.Parallel()
	s := newSource(t, testenv.SharedPostgres(t, "18"), table)
	_, point := s.slot()
	st := s.start(point)
	ctx, cancel := context.WithCancel(timeout(t))
	go cancel()
	for {
		_, err := st.Next(ctx)
		if err == nil {
			continue // a keepalive
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		break
	}
	s.exec("INSERT INTO t VALUES (1, 'a')")
	read(t, st).expect("begin", "relation t", "insert t1 ta", "commit")
}

func TestCloseEndsARunningNextAndFreesTheSlot(t *testing.T) {
	t.Parallel()
	s := newSource(t, testenv.SharedPostgres(t, "18"), table)
	_, point := s.slot()
	st := s.start(point)
	ended := make(chan error, 1)
	go func() {
		for {
			if _, err := st.Next(context.Background()); err != nil {
				ended <- err
				return
			}
		}
	}()
	st.SetFlushed(point)
	if err := st.Close(timeout(t)); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, ErrClosed) {
		t.Errorf("Next: %v", err)
	}
	if err := st.Close(timeout(t)); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if _, err := st.Next(timeout(t)); !errors.Is(err, ErrClosed) {
		t.Errorf("Next after Close: %v", err)
	}
	eventually(t, "the slot is free", func() bool {
		return query[bool](s, "SELECT NOT active FROM pg_replication_slots WHERE slot_name = "+
			quoteLiteral(s.db.Name))
	})
}

func TestCloseAmidALargeTransaction(t *testing.T) {
	t.Parallel()
	s := newSource(t, testenv.SharedPostgres(t, "18"), table)
	_, point := s.slot()
	s.exec("INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(1, 30000) i")
	st := s.start(point)
	read(t, st).expect("begin", "relation t")
	if err := st.Close(timeout(t)); err != nil {
		t.Fatal(err)
	}
	st = s.start(point)
	read(t, st).expect("begin", "relation t", "insert t1 t"+strings.Repeat("x", 1000))
}

func TestF46ATerminatedWalsenderEndsTheStreamAsUnreachable(t *testing.T) {
	t.Parallel()
	s := newSource(t, testenv.SharedPostgres(t, "18"), table)
	_, point := s.slot()
	st := s.start(point)
	s.exec(fmt.Sprintf("SELECT pg_terminate_backend(%d)", st.PID()))
	err := read(t, st).fails()
	if fault.CodeOf(err) != fault.PostgresUnreachable || !strings.Contains(err.Error(), "57P01") {
		t.Fatalf("error %v", err)
	}
	if _, again := st.Next(timeout(t)); !errors.Is(again, err) {
		t.Errorf("the next call gives %v", again)
	}
	if err := st.Close(timeout(t)); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func TestF57ALargeValueComesWhole(t *testing.T) {
	t.Parallel()
	s := newSource(t, testenv.SharedPostgres(t, "18"), table,
		"ALTER TABLE t ALTER v SET STORAGE EXTERNAL")
	_, point := s.slot()
	s.exec("INSERT INTO t VALUES (1, repeat('abcdefg', 3000000))", "INSERT INTO t VALUES (2, 'b')")
	st := s.start(point)
	r := read(t, st)
	r.expect("begin", "relation t")
	if got := r.next(); got != "insert t1 t"+strings.Repeat("abcdefg", 3_000_000) {
		t.Fatalf("a line of %d bytes that begins with %.40s", len(got), got)
	}
	r.expect("commit", "begin", "insert t2 tb", "commit")
}

func TestAStreamOverTLS(t *testing.T) {
	t.Parallel()
	pg, err := testenv.StartPostgres(timeout(t), testenv.PostgresOptions{TLS: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pg.Close(); err != nil {
			t.Error(err)
		}
	})
	s := newSource(t, pg, table)
	_, point := s.slot()
	s.exec("INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(1, 20000) i",
		"INSERT INTO t VALUES (0, 'b')")
	st := s.start(point)
	r := read(t, st)
	r.expect("begin", "relation t")
	for i := 1; i <= 20000; i++ {
		r.expect(fmt.Sprintf("insert t%d t%s", i, strings.Repeat("x", 100)))
	}
	r.expect("commit", "begin", "insert t0 tb", "commit")
	st.SetFlushed(r.commits[1])
	if err := st.Close(timeout(t)); err != nil {
		t.Fatal(err)
	}
	if got := s.confirmed(); got != r.commits[1] {
		t.Errorf("the slot is at %s, want %s", got, r.commits[1])
	}
}

func TestF45AServerThatShutsDownEndsTheStream(t *testing.T) {
	t.Parallel()
	pg, err := testenv.StartPostgres(timeout(t), testenv.PostgresOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pg.Close(); err != nil {
			t.Error(err)
		}
	})
	s := newSource(t, pg, table)
	_, point := s.slot()
	st := s.start(point)
	stopped := make(chan error, 1)
	go func() { stopped <- pg.Stop(context.Background(), "fast") }()
	// A keepalive's position is reported as durable, as the connector does when nothing is open:
	// the server waits for that before it stops.
	for {
		f, err := st.Next(timeout(t))
		if err == nil {
			st.SetFlushed(f.ServerEnd)
			continue
		}
		if fault.CodeOf(err) != fault.PostgresUnreachable {
			t.Errorf("error %v", err)
		}
		break
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestStatusUpdateIsByteForByteTheProtocols(t *testing.T) {
	t.Parallel()
	at := time.Date(2000, 1, 1, 0, 0, 1, 0, time.UTC)
	want := []byte{
		'd', 0, 0, 0, 38, 'r',
		0, 0, 0, 0x16, 0xB3, 0x74, 0xD8, 0x48,
		0, 0, 0, 0x16, 0xB3, 0x74, 0xD8, 0x48,
		0, 0, 0, 0x16, 0xB3, 0x74, 0xD8, 0x48,
		0, 0, 0, 0, 0, 0x0F, 0x42, 0x40,
		1,
	}
	if got := update(offsets.LSN(0x16B374D848), true, at); !bytes.Equal(got, want) {
		t.Errorf("% x", got)
	}
	want[len(want)-1] = 0
	if got := update(offsets.LSN(0x16B374D848), false, at); !bytes.Equal(got, want) {
		t.Errorf("% x", got)
	}
}
