// Package metrics holds every Prometheus metric of Tidemark: names, labels and units in one file
// (names.go), and typed methods to move them (connector.go, table.go, slot.go). A label never holds
// a value of a row.
//
// What is not known is not shown: a lost slot has no lag (PostgreSQL gives NULL), so its series is
// removed. Read as 0 it would clear the very alarm that it should raise; alarms on a slot that is
// lost use tidemark_slot_info{wal_status="lost"}.
package metrics

import (
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// Label names. Every series of a connector has labelConnector first.
const (
	labelConnector = "connector"
	labelTable     = "table"
	labelOp        = "op"
	labelKind      = "kind"
	labelCode      = "code"
	labelResult    = "result"
	labelState     = "state"
	labelTarget    = "target"
	labelReason    = "reason"
)

// ackBuckets are the bounds of commit-to-acknowledgement in seconds: from a quiet local pair (1 ms)
// to a connector that catches up on hours of WAL.
var ackBuckets = []float64{
	0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200,
}

// Set holds the metric families of a process. Make one with New and one Connector of it per
// connector.
type Set struct {
	state          *prometheus.GaugeVec
	events         *prometheus.CounterVec
	transactions   *prometheus.CounterVec
	lsn            *prometheus.GaugeVec
	slotLag        *prometheus.GaugeVec
	slotRetained   *prometheus.GaugeVec
	slotSafe       *prometheus.GaugeVec
	slotXminAge    *prometheus.GaugeVec
	slotInfo       *prometheus.GaugeVec
	unmatched      *prometheus.CounterVec
	repartitioned  *prometheus.CounterVec
	commitToAck    *prometheus.HistogramVec
	queueBytes     *prometheus.GaugeVec
	queueLimit     *prometheus.GaugeVec
	backpressure   *prometheus.CounterVec
	heartbeats     *prometheus.CounterVec
	heartbeatAges  *ages
	idleAdvances   *prometheus.CounterVec
	reselected     *prometheus.CounterVec
	unreread       *prometheus.CounterVec
	unavailable    *prometheus.CounterVec
	unrepresented  *prometheus.CounterVec
	truncated      *prometheus.CounterVec
	reconnects     *prometheus.CounterVec
	registrations  *prometheus.CounterVec
	snapshotRows   *prometheus.CounterVec
	snapshotTables *prometheus.GaugeVec
	gaps           *prometheus.CounterVec
	errors         *prometheus.CounterVec
	logicalChanges *prometheus.CounterVec
	buildInfo      *prometheus.GaugeVec
}

// New makes the metric families and registers them; it panics when a name is already registered
// with another shape, which is a programming error.
func New(reg prometheus.Registerer) *Set {
	s := &Set{
		state: gauge("tidemark_connector_state",
			"1 for the state that the connector is in, 0 for those it was in before.", labelState),
		events: counter("tidemark_events_total",
			"Events handed to the producer, tombstones not counted; positions say what is confirmed.",
			labelTable, labelOp),
		transactions: counter("tidemark_transactions_total",
			"Transactions received completely from the stream."),
		lsn: gauge("tidemark_lsn",
			"Positions in the WAL in bytes: flushed <= stored <= confirmed <= received <= server.",
			labelKind),
		slotLag: gauge("tidemark_slot_lag_bytes",
			"WAL written by the server after the slot's confirmed_flush_lsn; absent when unknown."),
		slotRetained: gauge("tidemark_slot_retained_wal_bytes",
			"WAL that the slot keeps the server from removing; absent when unknown."),
		slotSafe: gauge("tidemark_slot_safe_wal_bytes",
			"WAL that can be written before the slot may be lost; absent without a limit."),
		slotXminAge: gauge("tidemark_slot_catalog_xmin_age",
			"Transactions since the slot's catalog_xmin; absent when unknown."),
		slotInfo: gauge("tidemark_slot_info",
			"1, labelled with what pg_replication_slots says of the slot.",
			"slot", "wal_status", "active", "invalidation_reason"),
		unmatched: counter("tidemark_unmatched_relations_total",
			"Published relations that no rule includes or excludes, as they were first seen."),
		repartitioned: counter("tidemark_partition_changes_total",
			"Times that a topic was seen with another number of partitions: keys go to others."),
		commitToAck: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "tidemark_commit_to_ack_seconds",
			Help:    "From the source's commit to the broker's confirmation of the event.",
			Buckets: ackBuckets,
		}, []string{labelConnector}),
		queueBytes: gauge("tidemark_queue_bytes",
			"Bytes read from the source and not yet confirmed by the broker."),
		queueLimit: gauge("tidemark_queue_limit_bytes", "max.queue.bytes."),
		backpressure: counter("tidemark_backpressure_seconds_total",
			"Time in which reading was paused because the queue was full."),
		heartbeats: counter("tidemark_heartbeats_total",
			"Heartbeats by outcome.", labelResult),
		heartbeatAges: newAges(),
		idleAdvances: counter("tidemark_idle_advances_total",
			"Times that a keepalive's position was stored and acknowledged."),
		reselected: counter("tidemark_reselected_total",
			"Values that the log did not carry and that were read again.", labelTable),
		unreread: counter("tidemark_reselect_failures_total",
			"Values that the log did not carry and that could not be read again, by reason.",
			labelTable, labelReason),
		unavailable: counter("tidemark_unavailable_values_total",
			"Values that the log did not carry and that could not be had.", labelTable),
		unrepresented: counter("tidemark_unrepresentable_values_total",
			"Values that the Avro type cannot hold, sent as text.", labelTable),
		truncated: counter("tidemark_truncated_records_total",
			"Records that were too large and left values out (record.too.large).", labelTable),
		reconnects: counter("tidemark_reconnects_total",
			"Connections made again after a failure.", labelTarget),
		registrations: counter("tidemark_schema_registrations_total",
			"Requests to register a schema.", labelResult),
		snapshotRows: counter("tidemark_snapshot_rows_total",
			"Rows read by snapshots.", labelTable),
		snapshotTables: gauge("tidemark_snapshot_tables_remaining",
			"Tables that the running snapshot has still to finish."),
		gaps: counter("tidemark_gaps_total",
			"Findings that history may be missing.", labelCode),
		errors: counter("tidemark_errors_total",
			"Errors that ended a session or the connector.", labelCode),
		logicalChanges: counter("tidemark_schema_logical_changes_total",
			"Columns whose logical type, precision or scale changed.", labelTable),
		buildInfo: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tidemark_build_info", Help: "1, labelled with what was built.",
		}, []string{"version", "commit", "goversion"}),
	}
	reg.MustRegister(s.all()...)
	return s
}

func (s *Set) all() []prometheus.Collector {
	return []prometheus.Collector{
		s.state, s.events, s.transactions, s.lsn, s.slotLag, s.slotRetained, s.slotSafe,
		s.slotXminAge, s.slotInfo, s.unmatched, s.repartitioned, s.commitToAck, s.queueBytes,
		s.queueLimit, s.backpressure, s.heartbeats, s.heartbeatAges, s.idleAdvances, s.reselected,
		s.unreread, s.unavailable, s.unrepresented, s.truncated, s.reconnects, s.registrations,
		s.snapshotRows, s.snapshotTables, s.gaps, s.errors, s.logicalChanges, s.buildInfo,
	}
}

// BuildInfo sets tidemark_build_info, with the commit that the Go toolchain noted.
func (s *Set) BuildInfo(version string) {
	commit := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				commit = setting.Value
			}
		}
	}
	s.buildInfo.WithLabelValues(version, commit, runtime.Version()).Set(1)
}

func gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, withConnector(labels))
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(
		prometheus.CounterOpts{Name: name, Help: help}, withConnector(labels))
}

func withConnector(labels []string) []string {
	return append([]string{labelConnector}, labels...)
}
