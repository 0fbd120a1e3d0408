package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// LSNKind names one of the positions of tidemark_lsn.
type LSNKind int

// The kinds, in descending order of their positions.
const (
	LSNServer    LSNKind = iota // end of WAL as the server last said
	LSNReceived                 // handed on by capture
	LSNConfirmed                // everything up to it is confirmed by the broker
	LSNStored                   // in the offsets topic, confirmed there
	LSNFlushed                  // told to PostgreSQL
	lsnKinds
)

var lsnNames = [lsnKinds]string{"server", "received", "confirmed", "stored", "flushed"}

// Results of Connector.Heartbeat (4-algorithms section 3) and of its emission.
const (
	HeartbeatSent       = "sent"
	HeartbeatOK         = "ok"
	HeartbeatBehind     = "behind"
	HeartbeatYoung      = "young"
	HeartbeatLost       = "lost"
	HeartbeatPassed     = "passed"
	HeartbeatEmitFailed = "emit_failed"
)

// Targets of Connector.Reconnect.
const (
	TargetPostgres = "postgres"
	TargetBroker   = "broker"
	TargetRegistry = "registry"
)

// Results of Connector.SchemaRegistration.
const (
	RegistrationOK      = "ok"
	RegistrationRefused = "refused"
	RegistrationFailed  = "failed"
)

// Connector moves one connector's series. It is safe for concurrent use; the methods that the way
// of a row calls take no lock and look nothing up.
type Connector struct {
	set  *Set
	name string

	transactions   prometheus.Counter
	lsn            [lsnKinds]prometheus.Gauge
	queueBytes     prometheus.Gauge
	backpressure   prometheus.Counter
	commitToAck    prometheus.Observer
	idleAdvances   prometheus.Counter
	snapshotTables prometheus.Gauge

	mu       sync.Mutex
	state    string // guarded by mu
	tables   map[string]*TableCounters
	slotInfo prometheus.Labels // labels of the slot_info series that exists, nil when none does
}

// Connector returns the series of the connector with this name. Positions, lags and states appear
// when they are first set; call it once per connector.
func (s *Set) Connector(name string) *Connector {
	return &Connector{
		set:            s,
		name:           name,
		transactions:   s.transactions.WithLabelValues(name),
		queueBytes:     s.queueBytes.WithLabelValues(name),
		backpressure:   s.backpressure.WithLabelValues(name),
		commitToAck:    s.commitToAck.WithLabelValues(name),
		idleAdvances:   s.idleAdvances.WithLabelValues(name),
		snapshotTables: s.snapshotTables.WithLabelValues(name),
		tables:         make(map[string]*TableCounters),
	}
}

// State says which state the connector is in now; the former one's series goes to 0.
func (c *Connector) State(state string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != "" {
		c.set.state.WithLabelValues(c.name, c.state).Set(0)
	}
	c.state = state
	c.set.state.WithLabelValues(c.name, state).Set(1)
}

// Transaction counts a transaction whose Commit was received.
func (c *Connector) Transaction() { c.transactions.Inc() }

// LSN sets a position (an offsets.LSN). The zero LSN is "none" and sets nothing: a position that is
// not known has no series. A float64 holds LSNs exactly up to 8 PiB of WAL.
func (c *Connector) LSN(kind LSNKind, lsn uint64) {
	if lsn == 0 {
		return
	}
	c.mu.Lock()
	g := c.lsn[kind]
	if g == nil {
		g = c.set.lsn.WithLabelValues(c.name, lsnNames[kind])
		c.lsn[kind] = g
	}
	c.mu.Unlock()
	g.Set(float64(lsn))
}

// QueueBytes sets what is read and not yet confirmed.
func (c *Connector) QueueBytes(n int64) { c.queueBytes.Set(float64(n)) }

// QueueLimit sets max.queue.bytes, so that a dashboard can show how full the queue is.
func (c *Connector) QueueLimit(n int64) {
	c.set.queueLimit.WithLabelValues(c.name).Set(float64(n))
}

// Backpressure adds time in which reading was paused.
func (c *Connector) Backpressure(d time.Duration) { c.backpressure.Add(d.Seconds()) }

// CommitToAck observes the time from an event's commit to its confirmation. Clocks of two machines
// may disagree: a negative time counts as zero.
func (c *Connector) CommitToAck(d time.Duration) {
	c.commitToAck.Observe(max(d, 0).Seconds())
}

// Heartbeat counts an outcome, one of the Heartbeat constants.
func (c *Connector) Heartbeat(result string) {
	c.set.heartbeats.WithLabelValues(c.name, result).Inc()
}

// HeartbeatEchoed says when the last heartbeat came back; tidemark_heartbeat_age_seconds is the
// time since, taken when it is read. The zero time removes the series.
func (c *Connector) HeartbeatEchoed(at time.Time) { c.set.heartbeatAges.put(c.name, at) }

// IdleAdvance counts a keepalive's position that was stored.
func (c *Connector) IdleAdvance() { c.idleAdvances.Inc() }

// Reconnect counts a connection that is made again; target is one of the Target constants.
func (c *Connector) Reconnect(target string) {
	c.set.reconnects.WithLabelValues(c.name, target).Inc()
}

// SchemaRegistration counts a registration's result, one of the Registration constants.
func (c *Connector) SchemaRegistration(result string) {
	c.set.registrations.WithLabelValues(c.name, result).Inc()
}

// SnapshotTablesRemaining sets how many tables the snapshot has still to finish; 0 when none runs.
func (c *Connector) SnapshotTablesRemaining(n int) { c.snapshotTables.Set(float64(n)) }

// Gap counts a finding that history may be missing.
func (c *Connector) Gap(code fault.Code) {
	c.set.gaps.WithLabelValues(c.name, string(code)).Inc()
}

// Error counts an error that ended a session or the connector.
func (c *Connector) Error(code fault.Code) {
	c.set.errors.WithLabelValues(c.name, string(code)).Inc()
}

// UnmatchedRelation counts a published relation that no rule includes or excludes.
func (c *Connector) UnmatchedRelation() { c.set.unmatched.WithLabelValues(c.name).Inc() }

// PartitionChange counts a topic that has another number of partitions than before.
func (c *Connector) PartitionChange() { c.set.repartitioned.WithLabelValues(c.name).Inc() }

// Remove takes all series of the connector away; c must not be used after it.
func (c *Connector) Remove() {
	match := prometheus.Labels{labelConnector: c.name}
	for _, family := range c.set.all() {
		if vec, ok := family.(interface{ DeletePartialMatch(prometheus.Labels) int }); ok {
			vec.DeletePartialMatch(match)
		}
	}
	c.set.heartbeatAges.put(c.name, time.Time{})
}
