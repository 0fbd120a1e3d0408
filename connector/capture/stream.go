package capture

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/internal/pgdial"
	"github.com/tidemark-cdc/tidemark/offsets"
)

// Stream is a replication connection after START_REPLICATION. One goroutine calls Next; all other
// methods may be called from any goroutine.
//
//	streaming --error--> failed (Next returns the same error for ever)
//	    |                   |
//	    +------ Close ------+--> closed (Next returns ErrClosed)
type Stream struct {
	conn   net.Conn
	sock   *socket
	pid    uint32
	status *status

	received atomic.Uint64 // highest LSN that any frame of this session carried

	reading sync.Mutex // held by Next; Close takes it to read the rest itself
	buf     buffer
	onWait  func()
	err     error // what ended the stream; sticky

	// The dead-connection detector. Only time that Next spends waiting for bytes counts, so a
	// caller that does not call it, because Kafka is slow, is not taken for a dead server.
	limit  time.Duration // silence after the server was asked that means it is dead
	silent time.Duration // waited for bytes since the last byte, and since asked
	asked  bool

	failure   atomic.Pointer[error] // of the status goroutine
	closing   atomic.Bool
	closeOnce sync.Once
	closeErr  error
}

// PID returns the process id of the server's walsender of this stream.
func (s *Stream) PID() uint32 { return s.pid }

// SetFlushed says that everything up to lsn is durable. It is reported to the server as written,
// flushed and applied, soon: within 100 ms at most once. A lower position than before is ignored.
func (s *Stream) SetFlushed(lsn offsets.LSN) { s.status.set(lsn) }

// Flushed returns the position of the last SetFlushed that counted; 0 when there was none.
func (s *Stream) Flushed() offsets.LSN { return offsets.LSN(s.status.flushed.Load()) }

// Received returns the highest LSN that a frame of this session carried, keepalives included.
func (s *Stream) Received() offsets.LSN { return offsets.LSN(s.received.Load()) }

// RequestStatus asks the server for a keepalive, which comes in its place among the data.
func (s *Stream) RequestStatus() { s.status.request() }

// Next returns the next frame; its payload is borrowed until the next call. It waits for one until
// ctx ends: then it returns ctx's error, and the stream goes on with the next call. A frame that is
// in the buffer already is returned whatever ctx is. Any other error has ended the stream:
// ErrClosed, or a fault (protocol_error, publication_changed, slot_lost, those of pgdial.Wrap).
func (s *Stream) Next(ctx context.Context) (Frame, error) {
	s.reading.Lock()
	defer s.reading.Unlock()
	for s.err == nil {
		kind, body, ok, err := s.buf.message()
		if err != nil {
			s.err = err
			break
		}
		if !ok {
			if s.onWait != nil {
				s.onWait()
			}
			if err := s.fill(ctx); err != nil {
				return Frame{}, err
			}
			continue
		}
		f, err := s.frame(kind, body)
		if err != nil {
			s.err = err
			break
		}
		if f.Kind != 0 {
			return f, nil
		}
	}
	return Frame{}, s.err
}

// Age tells how old what the stream carries is, by the server's own clock: a frame's ServerMicros
// less the commit time of its transaction. A backlog is read with fewer and larger reads. It is for
// the goroutine that calls Next. A standby's clock may not be its primary's: what a wrong age costs
// is a wait of some milliseconds.
func (s *Stream) Age(age time.Duration) { s.sock.pace.late = age >= lateAfter }

// OnWait has f called each time that Next is about to read from the network, and so perhaps to
// wait, by its goroutine. It is called before the first Next; f must not call the Stream.
func (s *Stream) OnWait(f func()) { s.onWait = f }

// Buffered reports whether the next Next is certain to return a frame without waiting.
func (s *Stream) Buffered() bool {
	s.reading.Lock()
	defer s.reading.Unlock()
	have := s.buf.bytes[s.buf.r:s.buf.w]
	return len(have) >= headerBytes && have[0] == 'd' &&
		len(have) > int(binary.BigEndian.Uint32(have[1:]))
}

// frame interprets a message; a Frame of kind 0 is nothing for the caller.
func (s *Stream) frame(kind byte, body []byte) (Frame, error) {
	switch kind {
	case 'd':
		return s.copyData(body)
	case 'N':
		pg, err := serverErrorOf(body)
		if err != nil || !severe(pg.SeverityUnlocalized) {
			return Frame{}, err
		}
		return Frame{Kind: Notice, Warning: Warning{
			Severity: pg.SeverityUnlocalized, Code: pg.Code, Message: pgdial.Clean(pg).Message,
		}}, nil
	case 'E':
		pg, err := serverErrorOf(body)
		if err != nil {
			return Frame{}, err
		}
		return Frame{}, streamFault(pg)
	case 'S', 'A':
		return Frame{}, nil
	case 'c', 'C', 'Z':
		return Frame{}, fault.New(fault.PostgresUnreachable,
			"the server ended the stream, as it does when it shuts down")
	}
	return Frame{}, fault.New(fault.ProtocolError,
		fmt.Sprintf("a message of kind 0x%02X does not belong in a stream", kind))
}

// copyData parses what the server sends within CopyData.
//
//	Byte1('w')                            Byte1('k')
//	Int64 start LSN                       Int64 end of what was decoded and sent
//	Int64 server's end of WAL             Int64 server's clock
//	Int64 server's clock                  Byte1 1 asks for a status update
//	Byten one message of the plugin
//
// Clocks are microseconds since PostgreSQL's epoch.
//
// Source: "Streaming Replication Protocol" (protocol-replication), XLogData and Primary keepalive.
func (s *Stream) copyData(body []byte) (Frame, error) {
	switch {
	case len(body) >= 1+3*8 && body[0] == 'w':
		f := Frame{
			Kind:         Data,
			Start:        offsets.LSN(binary.BigEndian.Uint64(body[1:])),
			ServerEnd:    offsets.LSN(binary.BigEndian.Uint64(body[9:])),
			ServerMicros: int64(binary.BigEndian.Uint64(body[17:])) + epochMicros,
			Payload:      body[25:],
		}
		s.saw(max(f.Start, f.ServerEnd))
		return f, nil
	case len(body) == 1+2*8+1 && body[0] == 'k':
		f := Frame{
			Kind:         Keepalive,
			ServerEnd:    offsets.LSN(binary.BigEndian.Uint64(body[1:])),
			ServerMicros: int64(binary.BigEndian.Uint64(body[9:])) + epochMicros,
			Reply:        body[17] != 0,
		}
		s.saw(f.ServerEnd)
		if f.Reply {
			s.status.reply()
		}
		return f, nil
	}
	kind := byte(0)
	if len(body) > 0 {
		kind = body[0]
	}
	return Frame{}, fault.New(fault.ProtocolError, fmt.Sprintf(
		"a frame of kind 0x%02X has a header that is not of that kind (%d bytes)", kind, len(body)))
}

// saw raises received; only the reader writes it.
func (s *Stream) saw(lsn offsets.LSN) {
	if uint64(lsn) > s.received.Load() {
		s.received.Store(uint64(lsn))
	}
}

// fill reads what is there, waiting for at least a byte or a reason to stop. It returns ctx's error
// without ending the stream; every other error is s.err too.
func (s *Stream) fill(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	began, patience := time.Now(), s.patience()
	if err := s.conn.SetReadDeadline(began.Add(patience)); err != nil {
		return s.end(err)
	}
	// From here on whoever wants the reader's attention sets a deadline in the past.
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, s.wake)
		defer stop()
	}
	if err := s.attention(); err != nil {
		return err
	}
	n, err := s.read()
	if n > 0 {
		s.silent, s.asked = 0, false
		return nil // an error comes again with the next read
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return s.end(err)
	}
	if err := s.waited(min(time.Since(began), patience)); err != nil {
		return err
	}
	if err := s.attention(); err != nil {
		return err
	}
	return ctx.Err()
}

// read reads once, and under TLS on, as long as more records are at hand: a record is one row.
func (s *Stream) read() (int, error) {
	total := 0
	for {
		n, err := s.conn.Read(s.buf.space())
		s.buf.w += n
		total += n
		if n == 0 || err != nil || s.sock.buffered() == 0 || s.buf.w-s.buf.r >= bufferBytes/2 {
			return total, err
		}
	}
}

// patience is how long to wait for a byte before the silence is looked at. It is a fraction of the
// limit, and no wait counts for more than it lasted: a process that was suspended for minutes finds
// its read timed out with the server's bytes waiting, and must read again before it judges.
func (s *Stream) patience() time.Duration {
	until := s.limit / 2
	if s.asked {
		until = s.limit
	}
	return min(until-s.silent, s.limit/8)
}

// waited counts a silence. After half the limit the server is asked for a sign of life; when none
// came for the whole limit after that, it is dead.
func (s *Stream) waited(d time.Duration) error {
	s.silent += d
	switch {
	case s.asked && s.silent >= s.limit:
		return s.end(fault.New(fault.PostgresUnreachable, fmt.Sprintf(
			"the server has sent nothing for %s after it was asked for a sign of life", s.limit)))
	case !s.asked && s.silent >= s.limit/2:
		s.asked, s.silent = true, 0
		s.status.request()
	}
	return nil
}

// attention returns why the reader should stop, if it should.
func (s *Stream) attention() error {
	if s.closing.Load() {
		return ErrClosed
	}
	if failure := s.failure.Load(); failure != nil {
		return s.end(fmt.Errorf("writing a status update: %w", *failure))
	}
	return nil
}

// end ends the stream with err, for good.
func (s *Stream) end(err error) error {
	s.err = pgdial.Wrap(err)
	return s.err
}

// interrupt is called by the status goroutine when its write failed.
func (s *Stream) interrupt(err error) {
	s.failure.Store(&err)
	s.wake()
}

// wake makes a running read return. The error is of a connection that is broken anyhow.
func (s *Stream) wake() { _ = s.conn.SetReadDeadline(time.Unix(1, 0)) }
