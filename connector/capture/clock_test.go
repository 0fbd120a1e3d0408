package capture

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/offsets"
)

// The tests of this file run on a virtual clock, against a server that is the other end of a pipe.

// peer is the server's side: what the client sent is read into updates as it comes.
type peer struct {
	net.Conn
	updates chan sent
	done    chan struct{}
}

type sent struct {
	at    time.Duration // since the start
	lsn   offsets.LSN
	reply bool
}

func pipe(t *testing.T, o StartOptions, walSenderTimeout time.Duration) (*Stream, *peer) {
	t.Helper()
	ours, theirs := net.Pipe()
	st := newStream(&pgconn.HijackedConn{Conn: &socket{Conn: ours}}, o, walSenderTimeout)
	p := &peer{Conn: theirs, updates: make(chan sent, 1000), done: make(chan struct{})}
	go st.status.run()
	return st, p
}

// listen reads what the client sends, to the end of the connection.
func (p *peer) listen() {
	began := time.Now()
	go func() {
		defer close(p.done)
		for {
			m := make([]byte, headerBytes+34)
			if _, err := io.ReadFull(p, m); err != nil {
				return
			}
			lsn := offsets.LSN(binary.BigEndian.Uint64(m[14:]))
			p.updates <- sent{time.Since(began), lsn, m[len(m)-1] == 1}
		}
	}()
}

// asked returns when the client asked for a sign of life, in what it has sent so far.
func (p *peer) asked() (at []time.Duration) {
	synctest.Wait()
	for len(p.updates) > 0 {
		if u := <-p.updates; u.reply {
			at = append(at, u.at)
		}
	}
	return at
}

func (p *peer) end(st *Stream) {
	_ = p.Close()
	_ = st.Close(context.Background())
	<-p.done
}

func keepalive(end offsets.LSN, reply byte) []byte {
	m := []byte{'d', 0, 0, 0, 22, 'k'}
	m = binary.BigEndian.AppendUint64(m, uint64(end))
	m = binary.BigEndian.AppendUint64(m, 0)
	return append(m, reply)
}

func expectUpdate(t *testing.T, p *peer, want sent) {
	t.Helper()
	if got := <-p.updates; got != want {
		t.Errorf("update %+v, want %+v", got, want)
	}
}

func TestStatusUpdatesGoOutOnTheirOwnClock(t *testing.T) {
	for name, c := range map[string]struct {
		walSender, interval, want time.Duration
	}{
		"ten seconds":                      {60 * time.Second, 0, 10 * time.Second},
		"half of the server's timeout":     {2 * time.Second, 0, time.Second},
		"ten seconds without a timeout":    {0, 0, 10 * time.Second},
		"the interval that was configured": {60 * time.Second, 3 * time.Second, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, p := pipe(t, StartOptions{StatusInterval: c.interval}, c.walSender)
				p.listen()
				// Nobody calls Next.
				for i := 1; i <= 3; i++ {
					expectUpdate(t, p, sent{at: time.Duration(i) * c.want})
				}
				p.end(st)
			})
		})
	}
}

func TestAPositionIsReportedAtOnceAndThenTenTimesASecondAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, p := pipe(t, StartOptions{}, time.Minute)
		p.listen()
		time.Sleep(time.Second)
		st.SetFlushed(100)
		expectUpdate(t, p, sent{at: time.Second, lsn: 100})
		for lsn := offsets.LSN(101); lsn <= 150; lsn++ {
			st.SetFlushed(lsn)
			time.Sleep(time.Millisecond)
		}
		expectUpdate(t, p, sent{at: 1100 * time.Millisecond, lsn: 150})
		st.SetFlushed(90) // lower: nothing happens, and the next regular update says 150 again
		expectUpdate(t, p, sent{at: 11100 * time.Millisecond, lsn: 150})
		p.end(st)
	})
}

func TestAKeepaliveThatAsksIsAnsweredAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, p := pipe(t, StartOptions{}, time.Minute)
		p.listen()
		st.SetFlushed(100)
		expectUpdate(t, p, sent{lsn: 100})
		time.Sleep(10 * time.Millisecond)
		go func() {
			_, _ = p.Write(keepalive(0x500, 0))
			_, _ = p.Write(keepalive(0x600, 1))
		}()
		for _, want := range []Frame{
			{Kind: Keepalive, ServerEnd: 0x500},
			{Kind: Keepalive, ServerEnd: 0x600, Reply: true},
		} {
			f, err := st.Next(context.Background())
			if err != nil || f.Kind != want.Kind || f.ServerEnd != want.ServerEnd || f.Reply != want.Reply {
				t.Errorf("frame %+v, %v, want %+v", f, err, want)
			}
		}
		expectUpdate(t, p, sent{at: 10 * time.Millisecond, lsn: 100})
		if st.Received() != 0x600 {
			t.Errorf("received %s", st.Received())
		}
		st.RequestStatus()
		expectUpdate(t, p, sent{at: 10 * time.Millisecond, lsn: 100, reply: true})
		p.end(st)
	})
}

func TestF47ASilentServerIsAskedAndThenGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, p := pipe(t, StartOptions{StatusInterval: time.Hour}, time.Minute)
		p.listen()
		began := time.Now()
		_, err := st.Next(context.Background())
		if fault.CodeOf(err) != fault.PostgresUnreachable || !strings.Contains(err.Error(), "2m0s") {
			t.Errorf("error %v", err)
		}
		// Asked after one wal_sender_timeout, given up two after that.
		if d := time.Since(began); d != 3*time.Minute {
			t.Errorf("given up after %s", d)
		}
		if at := p.asked(); len(at) != 1 || at[0] != time.Minute {
			t.Errorf("asked at %s", at)
		}
		p.end(st)
	})
}

func TestF48TheSilenceOfAServerThatNobodyReadsDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, p := pipe(t, StartOptions{}, time.Minute)
		p.listen()
		for range 10 {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			if _, err := st.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("error %v", err)
			}
			cancel()
			time.Sleep(10 * time.Minute)
		}
		// Fifty seconds were waited in all: the server was not even asked.
		if at := p.asked(); len(at) != 0 {
			t.Errorf("asked at %s", at)
		}
		// Short waits add up, though: another ten seconds are a minute.
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second+time.Millisecond)
		defer cancel()
		_, _ = st.Next(ctx)
		if at := p.asked(); len(at) != 1 {
			t.Errorf("asked at %s after a minute of silence", at)
		}
		p.end(st)
	})
}

func TestAStatusUpdateThatCannotBeWrittenEndsTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, p := pipe(t, StartOptions{}, time.Minute) // nobody listens
		close(p.done)
		began := time.Now()
		_, err := st.Next(context.Background())
		if fault.CodeOf(err) != fault.PostgresUnreachable ||
			!strings.Contains(err.Error(), "writing a status update") {
			t.Errorf("error %v", err)
		}
		if d := time.Since(began); d != 40*time.Second { // ten until it is due, thirty to write it
			t.Errorf("after %s", d)
		}
		p.end(st)
	})
}

func TestCloseDoesNotWaitForAWriteThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, p := pipe(t, StartOptions{}, time.Minute)
		close(p.done)
		st.RequestStatus()
		synctest.Wait()
		began := time.Now()
		if err := st.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
		if d := time.Since(began); d > 2*time.Second {
			t.Errorf("Close took %s", d)
		}
		p.end(st)
	})
}

func TestCloseIsBoundedWhenTheServerDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, p := pipe(t, StartOptions{}, time.Minute)
		p.listen()
		began := time.Now()
		err := st.Close(context.Background())
		if fault.CodeOf(err) != fault.PostgresUnreachable || time.Since(began) != closeTimeout {
			t.Errorf("Close: %v after %s", err, time.Since(began))
		}
		p.end(st)
	})
}
