package metrics

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

func ptr(n int64) *int64 { return &n }

func compare(t *testing.T, reg prometheus.Gatherer, want string, names ...string) {
	t.Helper()
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

func TestLostSlotHasNoLagInsteadOfZero(t *testing.T) {
	reg := prometheus.NewRegistry()
	c := New(reg).Connector("shop")
	c.Slot(SlotSample{
		Name: "tidemark", WALStatus: "reserved", Active: true,
		LagBytes: ptr(1024), RetainedBytes: ptr(16 << 20), CatalogXminAge: ptr(0),
	})
	names := []string{
		"tidemark_slot_lag_bytes", "tidemark_slot_retained_wal_bytes",
		"tidemark_slot_safe_wal_bytes", "tidemark_slot_catalog_xmin_age", "tidemark_slot_info",
	}
	compare(t, reg, `
# HELP tidemark_slot_catalog_xmin_age Transactions since the slot's catalog_xmin; absent when unknown.
# TYPE tidemark_slot_catalog_xmin_age gauge
tidemark_slot_catalog_xmin_age{connector="shop"} 0
# HELP tidemark_slot_info 1, labelled with what pg_replication_slots says of the slot.
# TYPE tidemark_slot_info gauge
tidemark_slot_info{active="true",connector="shop",invalidation_reason="",slot="tidemark",wal_status="reserved"} 1
# HELP tidemark_slot_lag_bytes WAL written by the server after the slot's confirmed_flush_lsn; absent when unknown.
# TYPE tidemark_slot_lag_bytes gauge
tidemark_slot_lag_bytes{connector="shop"} 1024
# HELP tidemark_slot_retained_wal_bytes WAL that the slot keeps the server from removing; absent when unknown.
# TYPE tidemark_slot_retained_wal_bytes gauge
tidemark_slot_retained_wal_bytes{connector="shop"} 1.6777216e+07
`, names...)

	c.Slot(SlotSample{
		Name: "tidemark", WALStatus: "lost", InvalidationReason: "wal_removed",
	})
	compare(t, reg, `
# HELP tidemark_slot_info 1, labelled with what pg_replication_slots says of the slot.
# TYPE tidemark_slot_info gauge
tidemark_slot_info{active="false",connector="shop",invalidation_reason="wal_removed",slot="tidemark",wal_status="lost"} 1
`, names...)

	c.SlotUnknown()
	compare(t, reg, "", names...)
}

func TestStateShowsTheFormerOnesAsZero(t *testing.T) {
	reg := prometheus.NewRegistry()
	c := New(reg).Connector("shop")
	c.State("snapshot")
	c.State("streaming")
	c.State("streaming")
	compare(t, reg, `
# HELP tidemark_connector_state 1 for the state that the connector is in, 0 for those it was in before.
# TYPE tidemark_connector_state gauge
tidemark_connector_state{connector="shop",state="snapshot"} 0
tidemark_connector_state{connector="shop",state="streaming"} 1
`, "tidemark_connector_state")
}

func TestPositionsAppearWhenTheyAreKnown(t *testing.T) {
	reg := prometheus.NewRegistry()
	c := New(reg).Connector("shop")
	c.LSN(LSNStored, 0)
	compare(t, reg, "", "tidemark_lsn")
	c.LSN(LSNReceived, 0x2000)
	c.LSN(LSNFlushed, 0x1000)
	compare(t, reg, `
# HELP tidemark_lsn Positions in the WAL in bytes: flushed <= stored <= confirmed <= received <= server.
# TYPE tidemark_lsn gauge
tidemark_lsn{connector="shop",kind="flushed"} 4096
tidemark_lsn{connector="shop",kind="received"} 8192
`, "tidemark_lsn")
}

func TestTableCountersAreResolvedOnce(t *testing.T) {
	reg := prometheus.NewRegistry()
	c := New(reg).Connector("shop")
	table := c.Table("public.orders")
	if c.Table("public.orders") != table {
		t.Error("a second look-up gave other counters")
	}
	table.Event('c')
	table.Events('d', 3)
	table.Unavailable(2)
	compare(t, reg, `
# HELP tidemark_events_total Events handed to the producer, tombstones not counted; positions say what is confirmed.
# TYPE tidemark_events_total counter
tidemark_events_total{connector="shop",op="c",table="public.orders"} 1
tidemark_events_total{connector="shop",op="d",table="public.orders"} 3
tidemark_events_total{connector="shop",op="m",table="public.orders"} 0
tidemark_events_total{connector="shop",op="r",table="public.orders"} 0
tidemark_events_total{connector="shop",op="t",table="public.orders"} 0
tidemark_events_total{connector="shop",op="u",table="public.orders"} 0
# HELP tidemark_unavailable_values_total Values that the log did not carry and that could not be had.
# TYPE tidemark_unavailable_values_total counter
tidemark_unavailable_values_total{connector="shop",table="public.orders"} 2
`, "tidemark_events_total", "tidemark_unavailable_values_total")
	if allocs := testing.AllocsPerRun(100, func() { table.Event('u') }); allocs != 0 {
		t.Errorf("counting an event allocates %v times", allocs)
	}
}

func TestHeartbeatAgeGrowsByItself(t *testing.T) {
	reg := prometheus.NewRegistry()
	c := New(reg).Connector("shop")
	if n, _ := testutil.GatherAndCount(reg, "tidemark_heartbeat_age_seconds"); n != 0 {
		t.Error("an age is shown before the first heartbeat")
	}
	c.HeartbeatEchoed(time.Now().Add(-time.Minute))
	if age := testutil.ToFloat64(c.set.heartbeatAges); age < 60 || age > 120 {
		t.Errorf("age of a heartbeat one minute old is %v", age)
	}
}

func TestRemoveLeavesOtherConnectorsAlone(t *testing.T) {
	reg := prometheus.NewRegistry()
	set := New(reg)
	for _, name := range []string{"shop", "stock"} {
		c := set.Connector(name)
		c.State("streaming")
		c.Error(fault.Fenced)
		c.Table("public.orders").Event('c')
		c.CommitToAck(-time.Second)
		c.HeartbeatEchoed(time.Now())
		if name == "shop" {
			c.Remove()
		}
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == labelConnector {
					seen[l.GetValue()] = true
				}
			}
		}
	}
	if seen["shop"] || !seen["stock"] {
		t.Errorf("series left of: %v", seen)
	}
}

// TestEveryNameOfTheContract holds the names of the contract: a rename breaks dashboards.
func TestEveryNameOfTheContract(t *testing.T) {
	reg := prometheus.NewRegistry()
	set := New(reg)
	set.BuildInfo("1.0.0")
	c := set.Connector("shop")
	c.State("streaming")
	c.LSN(LSNServer, 1)
	c.Slot(SlotSample{
		LagBytes: ptr(1), RetainedBytes: ptr(1), SafeBytes: ptr(1), CatalogXminAge: ptr(1),
	})
	c.QueueLimit(1)
	c.Heartbeat(HeartbeatOK)
	c.HeartbeatEchoed(time.Now())
	c.Reconnect(TargetPostgres)
	c.SchemaRegistration(RegistrationOK)
	c.Gap(fault.SlotMissing)
	c.Error(fault.Internal)
	c.UnmatchedRelation()
	c.PartitionChange()
	c.Table("public.orders").Unread("row_gone", 1)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "tidemark_") {
			got = append(got, f.GetName())
		}
	}
	want := []string{
		"tidemark_backpressure_seconds_total",
		"tidemark_build_info",
		"tidemark_commit_to_ack_seconds",
		"tidemark_connector_state",
		"tidemark_errors_total",
		"tidemark_events_total",
		"tidemark_gaps_total",
		"tidemark_heartbeat_age_seconds",
		"tidemark_heartbeats_total",
		"tidemark_idle_advances_total",
		"tidemark_lsn",
		"tidemark_partition_changes_total",
		"tidemark_queue_bytes",
		"tidemark_queue_limit_bytes",
		"tidemark_reconnects_total",
		"tidemark_reselect_failures_total",
		"tidemark_reselected_total",
		"tidemark_schema_logical_changes_total",
		"tidemark_schema_registrations_total",
		"tidemark_slot_catalog_xmin_age",
		"tidemark_slot_info",
		"tidemark_slot_lag_bytes",
		"tidemark_slot_retained_wal_bytes",
		"tidemark_slot_safe_wal_bytes",
		"tidemark_snapshot_rows_total",
		"tidemark_snapshot_tables_remaining",
		"tidemark_transactions_total",
		"tidemark_truncated_records_total",
		"tidemark_unavailable_values_total",
		"tidemark_unmatched_relations_total",
		"tidemark_unrepresentable_values_total",
	}
	if !slices.Equal(got, want) {
		t.Errorf("names are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
