package capture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/internal/pgdial"
	"github.com/tidemark-cdc/tidemark/offsets"
)

// Bounds of an orderly end. The server may be amid a large transaction, which it sends to its end
// first; then the connection is cut, which costs nothing but a message in the server's log.
const (
	closeTimeout  = 5 * time.Second
	statusPatient = time.Second
)

// copyDone and terminate are the messages CopyDone and Terminate.
var (
	copyDone  = []byte{'c', 0, 0, 0, 4}
	terminate = []byte{'X', 0, 0, 0, 4}
)

// Close ends the stream: a running Next returns ErrClosed, the last flushed position is reported,
// the server is told and its end awaited, for 5 s or until ctx ends. When it returns, all
// goroutines are gone and the connection is closed, whatever it returns; the server may hold the
// slot for a moment longer if that is an error. It is idempotent; a later call returns what the
// first did.
func (s *Stream) Close(ctx context.Context) error {
	s.closeOnce.Do(func() { s.closeErr = s.close(ctx) })
	return s.closeErr
}

func (s *Stream) close(ctx context.Context) error {
	s.closing.Store(true)
	s.wake()
	s.reading.Lock()
	defer s.reading.Unlock()
	s.stopStatus()
	broken := s.err != nil || s.failure.Load() != nil
	s.err = ErrClosed
	var err error
	if !broken {
		err = s.finish(ctx)
	}
	if closing := s.conn.Close(); err == nil && !broken {
		err = closing
	}
	if err != nil {
		return fmt.Errorf("ending the replication stream: %w", pgdial.Wrap(err))
	}
	return nil
}

// stopStatus ends the status goroutine, and its write if that does not come to an end.
func (s *Stream) stopStatus() {
	close(s.status.stop)
	select {
	case <-s.status.done:
		return
	case <-time.After(statusPatient):
	}
	s.failure.CompareAndSwap(nil, new(error)) // half a message may have gone out
	_ = s.conn.SetWriteDeadline(time.Unix(1, 0))
	<-s.status.done
}

// finish reports the last position and speaks the protocol's end: our CopyDone, then whatever the
// server still sends, its CopyDone, CommandComplete and ReadyForQuery, then Terminate.
func (s *Stream) finish(ctx context.Context) error {
	own, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	deadline, _ := own.Deadline()
	if err := s.conn.SetDeadline(deadline); err != nil {
		return err
	}
	stop := context.AfterFunc(own, func() { _ = s.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	last := update(offsets.LSN(s.status.flushed.Load()), false, time.Now())
	if _, err := s.conn.Write(append(last, copyDone...)); err != nil {
		return err
	}
	if err := s.drain(own, deadline); err != nil {
		return err
	}
	_, err := s.conn.Write(terminate)
	return err
}

// drain reads and drops messages up to ReadyForQuery. A late wake of the last Next may set a read
// deadline in the past once more: unless own has ended, the deadline is set again.
func (s *Stream) drain(own context.Context, deadline time.Time) error {
	for {
		kind, body, ok, err := s.buf.message()
		switch {
		case err != nil:
			return err
		case !ok:
			n, err := s.conn.Read(s.buf.space())
			s.buf.w += n
			if n > 0 || err == nil {
				continue
			}
			if !errors.Is(err, os.ErrDeadlineExceeded) || own.Err() != nil {
				return err
			}
			if err := s.conn.SetReadDeadline(deadline); err != nil {
				return err
			}
		case kind == 'Z':
			return nil
		case kind == 'E':
			pg, err := serverErrorOf(body)
			if err != nil {
				return err
			}
			return streamFault(pg)
		case kind == 'd', kind == 'c', kind == 'C', kind == 'N', kind == 'S', kind == 'A':
		default:
			return fault.New(fault.ProtocolError, fmt.Sprintf(
				"a message of kind 0x%02X does not belong at the end of a stream", kind))
		}
	}
}
