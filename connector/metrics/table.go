package metrics

import "github.com/prometheus/client_golang/prometheus"

// eventOps are the operations of tidemark_events_total, as in the envelope's op.
const eventOps = "cudrtm"

// TableCounters holds one table's counters, resolved once so that counting an event costs one
// atomic addition.
type TableCounters struct {
	events         [len(eventOps)]prometheus.Counter
	reselected     prometheus.Counter
	unread         func(reason string) prometheus.Counter
	unavailable    prometheus.Counter
	unrepresented  prometheus.Counter
	truncated      prometheus.Counter
	snapshotRows   prometheus.Counter
	logicalChanges prometheus.Counter
}

// Table returns the counters of a table, named "schema.table"; logical messages count under the
// empty name. Keep the result: it takes a lock.
func (c *Connector) Table(name string) *TableCounters {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t, ok := c.tables[name]; ok {
		return t
	}
	t := &TableCounters{
		reselected: c.set.reselected.WithLabelValues(c.name, name),
		unread: func(reason string) prometheus.Counter {
			return c.set.unreread.WithLabelValues(c.name, name, reason)
		},
		unavailable:    c.set.unavailable.WithLabelValues(c.name, name),
		unrepresented:  c.set.unrepresented.WithLabelValues(c.name, name),
		truncated:      c.set.truncated.WithLabelValues(c.name, name),
		snapshotRows:   c.set.snapshotRows.WithLabelValues(c.name, name),
		logicalChanges: c.set.logicalChanges.WithLabelValues(c.name, name),
	}
	for i := range eventOps {
		t.events[i] = c.set.events.WithLabelValues(c.name, name, eventOps[i:i+1])
	}
	c.tables[name] = t
	return t
}

// Event counts an event; op is the envelope's ('c', 'u', 'd', 'r', 't', 'm').
func (t *TableCounters) Event(op byte) { t.Events(op, 1) }

// Events counts n events of one op.
func (t *TableCounters) Events(op byte, n int) {
	i := opIndex(op)
	if i < 0 {
		panic("metrics: event with an op that the envelope does not have")
	}
	t.events[i].Add(float64(n))
}

func opIndex(op byte) int {
	for i := range eventOps {
		if eventOps[i] == op {
			return i
		}
	}
	return -1
}

// Reselected counts values that were read again.
func (t *TableCounters) Reselected(n int) { t.reselected.Add(float64(n)) }

// Unread counts values that could not be read again, by reason. It takes a lock.
func (t *TableCounters) Unread(reason string, n int) { t.unread(reason).Add(float64(n)) }

// Unavailable counts values that the log did not carry and that were flagged.
func (t *TableCounters) Unavailable(n int) { t.unavailable.Add(float64(n)) }

// Unrepresentable counts values that were sent as text with a flag.
func (t *TableCounters) Unrepresentable(n int) { t.unrepresented.Add(float64(n)) }

// Truncated counts records that left values out because they were too large.
func (t *TableCounters) Truncated(n int) { t.truncated.Add(float64(n)) }

// SnapshotRows counts rows that a snapshot read.
func (t *TableCounters) SnapshotRows(n int) { t.snapshotRows.Add(float64(n)) }

// LogicalChange counts columns whose logical type, precision or scale changed.
func (t *TableCounters) LogicalChange(n int) { t.logicalChanges.Add(float64(n)) }
