package capture

import (
	"encoding/binary"
	"net"
	"sync/atomic"
	"time"

	"github.com/tidemark-cdc/tidemark/offsets"
)

// epochMicros is PostgreSQL's epoch, 2000-01-01 00:00:00 UTC, in microseconds since the Unix epoch.
const epochMicros = 946_684_800_000_000

// statusGap is the least time between two updates that only say that the position moved.
const statusGap = 100 * time.Millisecond

// status is the way back: one goroutine that writes status updates, on a clock of its own. It waits
// for nothing but its own write, which has a deadline; a write that fails ends the stream.
type status struct {
	conn     net.Conn
	interval time.Duration // longest pause between updates
	timeout  time.Duration // longest a write may take
	failed   func(error)   // called once, when a write fails

	flushed atomic.Uint64 // position to report; rises only
	ask     atomic.Bool   // the next update asks the server for a keepalive

	moved chan struct{} // capacity 1: flushed has risen
	now   chan struct{} // capacity 1: an update is due at once
	stop  chan struct{}
	done  chan struct{}
}

func newStatus(conn net.Conn, interval, timeout time.Duration) *status {
	return &status{
		conn:     conn,
		interval: interval,
		timeout:  timeout,
		moved:    make(chan struct{}, 1),
		now:      make(chan struct{}, 1),
		stop:     make(chan struct{}),
		done:     make(chan struct{}),
	}
}

// set raises the position to report.
func (u *status) set(lsn offsets.LSN) {
	for {
		had := u.flushed.Load()
		if uint64(lsn) <= had {
			return
		}
		if u.flushed.CompareAndSwap(had, uint64(lsn)) {
			signal(u.moved)
			return
		}
	}
}

// reply makes an update due at once.
func (u *status) reply() { signal(u.now) }

// request makes an update due at once that asks the server for a keepalive.
func (u *status) request() {
	u.ask.Store(true)
	signal(u.now)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // one is waiting already
	}
}

// run writes updates until stop is closed or a write fails.
func (u *status) run() {
	defer close(u.done)
	var last time.Time
	timer := time.NewTimer(u.interval)
	defer timer.Stop()
	for {
		select {
		case <-u.stop:
			return
		case <-u.now:
		case <-u.moved:
			if left := statusGap - time.Since(last); left > 0 {
				timer.Reset(min(left, u.interval))
				continue
			}
		case <-timer.C:
		}
		if err := u.write(); err != nil {
			u.failed(err)
			return
		}
		last = time.Now()
		timer.Reset(u.interval)
	}
}

// write sends one update.
func (u *status) write() error {
	if err := u.conn.SetWriteDeadline(time.Now().Add(u.timeout)); err != nil {
		return err
	}
	_, err := u.conn.Write(update(offsets.LSN(u.flushed.Load()), u.ask.Swap(false), time.Now()))
	return err
}

// update builds a standby status update within CopyData.
//
//	Byte1('d') Int32  CopyData and its length
//	Byte1('r')
//	Int64  written: end of what was written
//	Int64  flushed: end of what is durable; the slot moves to it
//	Int64  applied: end of what is visible
//	Int64  the client's clock, microseconds since PostgreSQL's epoch
//	Byte1  1 asks for a keepalive
//
// All three positions are given: a library that fills a zero flush position from the written one
// would tell the server of a position that is not durable.
//
// Source: "Streaming Replication Protocol" (protocol-replication), Standby status update.
func update(flushed offsets.LSN, ask bool, now time.Time) []byte {
	const body = 1 + 4*8 + 1
	m := make([]byte, 0, headerBytes+body)
	m = append(m, 'd')
	m = binary.BigEndian.AppendUint32(m, 4+body)
	m = append(m, 'r')
	m = binary.BigEndian.AppendUint64(m, uint64(flushed))
	m = binary.BigEndian.AppendUint64(m, uint64(flushed))
	m = binary.BigEndian.AppendUint64(m, uint64(flushed))
	m = binary.BigEndian.AppendUint64(m, uint64(now.UnixMicro()-epochMicros))
	if ask {
		return append(m, 1)
	}
	return append(m, 0)
}
