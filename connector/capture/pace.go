package capture

import "time"

// The bounds of pacing. Measured on two cores with a million waiting rows and a receive buffer of
// 4 MiB: a reader that reads eagerly gets 144 k rows/s, one that lets the socket fill for 10 ms
// before each read 350 k, for 30 ms 378 k.
const (
	paceWindow  = 5 * time.Millisecond  // the rate is looked at this often
	paceRate    = 4 << 20               // bytes a second that are "much": 12 000 small transactions
	paceLate    = 64 << 10              // the same, while what comes is old anyhow
	lateAfter   = time.Second / 4       // how old that is: a wait of paceMax adds an eighth
	paceWindows = 2                     // busy windows in a row before the first wait
	paceStart   = 10 * time.Millisecond // first wait
	paceStep    = 5 * time.Millisecond
	paceMax     = 30 * time.Millisecond
	paceMin     = time.Millisecond
	paceRoom    = 64 << 10 // what a socket is taken to hold when the kernel does not say
)

// pacer decides how long the socket is left to fill before the next read.
//
// The server writes every row to the socket by itself, and on few cores a reader that wakes up for
// each takes the processor from the server that decodes. So while much is coming, the reader stays
// away for a while after it has emptied the socket. A quiet stream never waits: waiting begins
// after two windows of 5 ms in a row that each carried more than 4 MiB/s, and ends with the first
// window that carried less. Time that the caller spent on the last bytes counts as waiting, and a
// read that filled its buffer is followed by another at once.
//
// The rate alone does not tell a backlog: on a loaded machine an eager reader makes the server so
// slow that it never reaches it. So when the stream's transactions were committed a quarter of a
// second ago or more (late), 64 KiB/s are much.
//
// A wait must not fill the socket, or the server stands still: when more than half of the room was
// used the next wait is half as long, when less than a quarter was it is 5 ms longer. Where the
// kernel gives no large buffer, waits become short by that, and pacing gains less.
type pacer struct {
	windowStart time.Time
	windowBytes int
	busy        int // busy windows in a row
	wait        time.Duration
	filled      int       // bytes read since the last wait
	emptied     time.Time // when the last read emptied the socket; zero: it did not
	late        bool      // what comes was committed long ago

	room  func() int // bytes that the socket holds; asked before each wait; nil: paceRoom
	now   func() time.Time
	sleep func(time.Duration)
}

// before waits as long as the socket should still be left alone.
func (p *pacer) before() {
	if p.busy < paceWindows || p.emptied.IsZero() {
		return
	}
	p.adjust()
	if left := p.wait - p.clock().Sub(p.emptied); left > 0 {
		if p.sleep != nil {
			p.sleep(left)
			return
		}
		time.Sleep(left)
	}
}

// adjust sets the next wait by what the last one filled.
func (p *pacer) adjust() {
	room := paceRoom
	if p.room != nil {
		room = p.room()
	}
	switch {
	case p.wait == 0:
		p.wait = paceStart
	case p.filled > room/2:
		p.wait = max(p.wait/2, paceMin)
	case p.filled < room/4:
		p.wait = min(p.wait+paceStep, paceMax)
	}
	p.filled = 0
}

// after is told of a read of n bytes, and whether it filled its buffer, so that more is there.
func (p *pacer) after(n int, full bool) {
	now := p.clock()
	p.emptied = now
	if full {
		p.emptied = time.Time{}
	}
	p.filled += n
	p.windowBytes += n
	elapsed := now.Sub(p.windowStart)
	if elapsed < paceWindow {
		return
	}
	rate := int64(paceRate)
	if p.late {
		rate = paceLate
	}
	much := elapsed < time.Second && int64(p.windowBytes)*int64(time.Second) >= rate*int64(elapsed)
	if much {
		p.busy++
	} else {
		p.busy, p.wait = 0, 0
	}
	p.windowStart, p.windowBytes = now, 0
}

func (p *pacer) clock() time.Time {
	if p.now != nil {
		return p.now()
	}
	return time.Now()
}
