package metrics

import (
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// SlotSample is what pg_replication_slots says of the connector's slot at one moment. A nil
// pointer is the server's NULL: not known, or not limited. It is never to be read as 0.
type SlotSample struct {
	Name               string
	WALStatus          string // reserved, extended, unreserved, lost; empty when the slot is gone
	Active             bool
	InvalidationReason string // 17 and later
	LagBytes           *int64
	RetainedBytes      *int64
	SafeBytes          *int64 // NULL without max_slot_wal_keep_size, and when lost
	CatalogXminAge     *int64
}

// Slot shows a sample. Values that are nil lose their series.
func (c *Connector) Slot(s SlotSample) {
	c.optional(c.set.slotLag, s.LagBytes)
	c.optional(c.set.slotRetained, s.RetainedBytes)
	c.optional(c.set.slotSafe, s.SafeBytes)
	c.optional(c.set.slotXminAge, s.CatalogXminAge)
	c.info(prometheus.Labels{
		labelConnector:        c.name,
		"slot":                s.Name,
		"wal_status":          s.WALStatus,
		"active":              strconv.FormatBool(s.Active),
		"invalidation_reason": s.InvalidationReason,
	})
}

// SlotUnknown removes what is shown of the slot: the server could not be asked.
func (c *Connector) SlotUnknown() {
	for _, vec := range []*prometheus.GaugeVec{
		c.set.slotLag, c.set.slotRetained, c.set.slotSafe, c.set.slotXminAge,
	} {
		vec.DeleteLabelValues(c.name)
	}
	c.info(nil)
}

// info replaces the one slot_info series; nil removes it.
func (c *Connector) info(labels prometheus.Labels) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.slotInfo != nil && !maps.Equal(c.slotInfo, labels) {
		c.set.slotInfo.Delete(c.slotInfo)
	}
	c.slotInfo = labels
	if labels != nil {
		c.set.slotInfo.With(labels).Set(1)
	}
}

func (c *Connector) optional(vec *prometheus.GaugeVec, v *int64) {
	if v == nil {
		vec.DeleteLabelValues(c.name)
		return
	}
	vec.WithLabelValues(c.name).Set(float64(*v))
}

// ages is tidemark_heartbeat_age_seconds: computed when it is read, so that it also grows when the
// goroutine that should move it is stuck.
type ages struct {
	desc *prometheus.Desc
	mu   sync.Mutex
	last map[string]time.Time // by connector
}

func newAges() *ages {
	return &ages{
		desc: prometheus.NewDesc("tidemark_heartbeat_age_seconds",
			"Time since the last heartbeat came back through the stream; absent before the first.",
			[]string{labelConnector}, nil),
		last: make(map[string]time.Time),
	}
}

func (a *ages) put(connector string, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if at.IsZero() {
		delete(a.last, connector)
		return
	}
	a.last[connector] = at
}

// Describe implements prometheus.Collector.
func (a *ages) Describe(ch chan<- *prometheus.Desc) { ch <- a.desc }

// Collect implements prometheus.Collector.
func (a *ages) Collect(ch chan<- prometheus.Metric) {
	a.mu.Lock()
	last := maps.Clone(a.last)
	a.mu.Unlock()
	for name, at := range last {
		ch <- prometheus.MustNewConstMetric(
			a.desc, prometheus.GaugeValue, time.Since(at).Seconds(), name)
	}
}
