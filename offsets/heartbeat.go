package offsets

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// HeartbeatPrefix is the prefix of our own logical messages.
const HeartbeatPrefix = "tidemark.heartbeat"

// HeartbeatContent is the content of a heartbeat's message.
type HeartbeatContent struct {
	Connector string `json:"connector"`
	// Instance tells the heartbeats of this process from those of an earlier one.
	Instance string `json:"instance"`
	ID       int64  `json:"id"`
}

// Marshal returns the JSON that is emitted.
func (c HeartbeatContent) Marshal() string {
	b, err := json.Marshal(c)
	if err != nil {
		panic("offsets: heartbeat content: " + err.Error()) // strings and a number cannot fail
	}
	return string(b)
}

// ParseHeartbeat reads a message's content. An error means that it is no heartbeat of Tidemark's;
// such a message is progress like any other application's.
func ParseHeartbeat(content []byte) (HeartbeatContent, error) {
	var c HeartbeatContent
	if err := json.Unmarshal(content, &c); err != nil {
		return HeartbeatContent{}, fmt.Errorf("heartbeat content of %d bytes is not JSON", len(content))
	}
	if c.Instance == "" || c.ID <= 0 {
		return HeartbeatContent{}, fmt.Errorf("heartbeat content has no instance or no id")
	}
	return c, nil
}

// HeartbeatOutcome is what is known of a heartbeat that was emitted.
type HeartbeatOutcome string

// The outcomes.
const (
	HeartbeatNone   HeartbeatOutcome = "none"   // none is outstanding
	HeartbeatOK     HeartbeatOutcome = "ok"     // it came back
	HeartbeatYoung  HeartbeatOutcome = "young"  // not yet back, and not late
	HeartbeatBehind HeartbeatOutcome = "behind" // late, but the stream is delivering what is before it
	HeartbeatLost   HeartbeatOutcome = "lost"   // late, and the stream is silent: reconnect
	// HeartbeatPassed: the position went past it without it. Messages are not in this stream: a
	// configuration error.
	HeartbeatPassed HeartbeatOutcome = "passed"
)

// HeartbeatOptions are the settings of section 3 of the algorithms.
type HeartbeatOptions struct {
	Connector, Instance string
	// Interval: a heartbeat when no position could be stored for this long; 0 is off.
	Interval time.Duration
	// Verify: one also when no transaction came through for this long; 0 is off.
	Verify time.Duration
	// Timeout: no echo for this long with a silent stream is lost.
	Timeout time.Duration
}

// Heartbeat says when to emit a heartbeat and what became of it. It has no clock and no lock: each
// method is given the time, and all belong to one goroutine.
//
//	          Start                Emitted
//	idle ---------------> starting --------> waiting --- Seen -----> idle (ok)
//	  ^                      |                  |---- passed ------> idle
//	  |------ Failed --------+                  |---- lost: the caller reconnects; Reset -> idle
//
// Its clock stands still while Hold(true): reading is paused or a transaction is open, and what
// does not arrive then is back-pressure, not a dead connection.
type Heartbeat struct {
	opts HeartbeatOptions

	elapsed time.Duration // the clock up to since
	since   time.Time     // the wall clock's moment of elapsed
	held    bool

	// Moments on the clock above.
	lastProgress time.Duration // a position was stored, or there was none to store
	lastTx       time.Duration // a transaction came through the stream
	lastData     time.Duration // the stream delivered something
	lastStart    time.Duration // the last heartbeat was started

	nextID   int64
	pending  int64 // id of the one that is outstanding, 0 for none
	emitted  bool  // lsn and emittedAt are known
	seen     bool  // its echo came before Emitted
	lsn      LSN
	begun    time.Duration
	hasBegun bool
}

// NewHeartbeat starts the clocks at now.
func NewHeartbeat(opts HeartbeatOptions, now time.Time) *Heartbeat {
	return &Heartbeat{opts: opts, since: now}
}

// Reset is for a new session: nothing is outstanding and the clocks start again. Ids go on.
func (h *Heartbeat) Reset(now time.Time) {
	*h = Heartbeat{opts: h.opts, since: now, nextID: h.nextID}
}

// Hold stops the clock (true) and lets it go on (false).
func (h *Heartbeat) Hold(held bool, now time.Time) {
	h.elapsed = h.clock(now)
	h.since = now
	h.held = held
}

func (h *Heartbeat) clock(now time.Time) time.Duration {
	if h.held || now.Before(h.since) {
		return h.elapsed
	}
	return h.elapsed + now.Sub(h.since)
}

// Progress says that a position was stored, or that a keepalive showed that there is none to
// store (IdleNothingNew while nothing is outstanding).
func (h *Heartbeat) Progress(now time.Time) { h.lastProgress = h.clock(now) }

// Data says that the stream delivered something: a data frame, or a keepalive whose WAL end moved.
func (h *Heartbeat) Data(now time.Time) { h.lastData = h.clock(now) }

// Transaction says that a Commit was read.
func (h *Heartbeat) Transaction(now time.Time) {
	h.lastTx = h.clock(now)
	h.lastData = h.lastTx
}

// Due reports whether a heartbeat is to be emitted now. A failed emission is not tried again
// before another interval has passed.
func (h *Heartbeat) Due(now time.Time) bool {
	if h.held || h.pending != 0 {
		return false
	}
	c := h.clock(now)
	return h.past(c, h.lastProgress, h.opts.Interval) || h.past(c, h.lastTx, h.opts.Verify)
}

func (h *Heartbeat) past(clock, last, interval time.Duration) bool {
	if interval <= 0 {
		return false
	}
	if h.hasBegun && h.lastStart > last {
		last = h.lastStart
	}
	return clock-last >= interval
}

// Start reserves the next heartbeat: from here on it is the one that is outstanding.
func (h *Heartbeat) Start(now time.Time) HeartbeatContent {
	h.nextID++
	h.pending, h.emitted, h.seen, h.lsn = h.nextID, false, false, 0
	h.begun = h.clock(now)
	h.lastStart, h.hasBegun = h.begun, true
	return HeartbeatContent{h.opts.Connector, h.opts.Instance, h.nextID}
}

// Emitted says that the heartbeat was committed on the server. lsn is a WAL insert position that
// was read after that commit: once the stream's position has reached it, the echo must have come.
// The echo may have come before this call; then it reports true and the outcome was ok.
func (h *Heartbeat) Emitted(id int64, lsn LSN, now time.Time) bool {
	if id != h.pending {
		return false
	}
	if h.seen {
		h.pending = 0
		return true
	}
	h.emitted, h.lsn, h.begun = true, lsn, h.clock(now)
	return false
}

// Failed says that the heartbeat could not be emitted: a warning, never the end of the stream.
func (h *Heartbeat) Failed(id int64) {
	if id == h.pending {
		h.pending = 0
	}
}

// Seen takes a heartbeat's content from the stream and reports whether it was the one outstanding.
func (h *Heartbeat) Seen(c HeartbeatContent) bool {
	if c.Connector != h.opts.Connector || c.Instance != h.opts.Instance || c.ID != h.pending ||
		h.pending == 0 || h.seen {
		return false
	}
	if !h.emitted {
		h.seen = true // Emitted clears it
		return true
	}
	h.pending = 0
	return true
}

// Age returns how long the outstanding heartbeat has been waiting, on the clock that stands still.
func (h *Heartbeat) Age(now time.Time) time.Duration {
	if h.pending == 0 {
		return 0
	}
	return h.clock(now) - h.begun
}

// Outcome judges the heartbeat that is outstanding. position is the stream's: Tracker.Received.
// After HeartbeatPassed the heartbeat is settled; after HeartbeatLost the caller reconnects.
func (h *Heartbeat) Outcome(position LSN, now time.Time) HeartbeatOutcome {
	switch {
	case h.pending == 0:
		return HeartbeatNone
	case h.seen:
		return HeartbeatOK
	case !h.emitted:
		return HeartbeatYoung // the emission has a deadline of its own
	case position >= h.lsn && !h.held:
		h.pending = 0
		return HeartbeatPassed
	}
	c := h.clock(now)
	switch {
	case c-h.begun < h.opts.Timeout:
		return HeartbeatYoung
	case h.lastData > h.begun && c-h.lastData < h.opts.Timeout:
		return HeartbeatBehind
	}
	return HeartbeatLost
}

// String names the heartbeat in logs.
func (c HeartbeatContent) String() string {
	return c.Instance + "/" + strconv.FormatInt(c.ID, 10)
}
