package connector_test

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/offsets"
	"github.com/tidemark-cdc/tidemark/testenv"
)

// streamedOnce brings a connector to a stored position and stops it.
func (r *rig) streamedOnce() {
	r.t.Helper()
	r.exec(numbers, insertNumbers(1, 3))
	run := r.start()
	r.streaming(run)
	r.exec(insertNumbers(4, 4))
	r.caughtUp(run)
	r.clean(run)
}

func (r *rig) dropSlot() {
	r.t.Helper()
	r.exec(testenv.DropSlot(r.slot()))
}

// nothingNew fails if a refused start has sent anything or touched the record.
func (r *rig) nothingNew(before *offsets.Record) {
	r.t.Helper()
	sameInts(r.t, "ids", ids(r.all("shop.public.t"), "id"), sequence(1, 4))
	if rec := r.record(); rec.LSN != before.LSN || rec.Epoch != before.Epoch {
		r.t.Errorf("the record was %+v and is %+v", before, rec)
	}
}

func TestF52ASlotThatIsGoneIsRefused(t *testing.T) {
	t.Parallel()
	onVersions(t, func(t *testing.T, r *rig) {
		r.streamedOnce()
		r.dropSlot()
		rec := r.record()
		contains(t, r.refused(fault.SlotMissing), r.slot(), rec.LSN.String(), "tidemark offsets")
		r.nothingNew(rec)
		if n := r.query("SELECT count(*)::text FROM pg_replication_slots WHERE slot_name = $1",
			r.slot()); n != "0" {
			t.Error("a slot was made")
		}
	})
}

func TestF52F53ASlotThatWasAdvancedIsRefused(t *testing.T) {
	t.Parallel()
	onVersions(t, func(t *testing.T, r *rig) {
		r.streamedOnce()
		r.exec(insertNumbers(5, 5), "SELECT pg_replication_slot_advance('"+r.slot()+
			"', pg_current_wal_lsn())")
		rec := r.record()
		contains(t, r.refused(fault.SlotAhead), rec.LSN.String(), r.confirmedFlush().String())
		r.nothingNew(rec)
	})
}

// Another consumer reads the slot, and the position in the topic is older than what the slot keeps;
// a server would go forward in silence (capture's TestF53AnOlderStartIsForwardedInSilence).
func TestF52F53ASlotThatAnotherConsumerReadIsRefused(t *testing.T) {
	t.Parallel()
	onVersions(t, func(t *testing.T, r *rig) {
		r.streamedOnce()
		rec := r.record()
		r.exec(insertNumbers(5, 5), "SELECT pg_logical_slot_get_binary_changes('"+r.slot()+
			"', NULL, NULL, 'proto_version', '1', 'publication_names', 'tidemark')")
		contains(t, r.refused(fault.SlotAhead), rec.LSN.String(), r.confirmedFlush().String())
		r.nothingNew(rec)
		// A person puts back an older position yet.
		r.change(func(rec *offsets.Record) { rec.LSN -= 1 << 20 })
		rec = r.record()
		contains(t, r.refused(fault.SlotAhead), rec.LSN.String(), r.confirmedFlush().String())
		r.nothingNew(rec)
	}, "14")
}

func TestF52ASlotThatWasMadeAgainIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.streamedOnce()
	r.dropSlot()
	r.exec(insertNumbers(5, 5),
		"SELECT pg_create_logical_replication_slot('"+r.slot()+"', 'pgoutput')")
	rec := r.record()
	r.refused(fault.SlotAhead)
	r.nothingNew(rec)
}

func TestASlotWithoutAPositionIsRefusedUnlessAdopted(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.exec(numbers, insertNumbers(1, 3), "CREATE PUBLICATION tidemark FOR TABLE t",
		"SELECT pg_create_logical_replication_slot('"+r.slot()+"', 'pgoutput')", insertNumbers(4, 4))
	contains(t, r.refused(fault.SlotWithoutOffset), "slot.adopt", r.slot())
	if rec := r.record(); rec != nil {
		t.Errorf("a record was stored: %+v", rec)
	}
	r.extra["slot.adopt"] = "true"
	run := r.start()
	r.streaming(run)
	r.caughtUp(run)
	r.clean(run)
	sameInts(t, "ids", ids(r.all("shop.public.t"), "id"), sequence(4, 4))
}

func TestF50F54AServerBehindThePositionIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.streamedOnce()
	r.change(func(rec *offsets.Record) { rec.LSN += 1 << 40 })
	rec := r.record()
	contains(t, r.refused(fault.HistoryRewound), rec.LSN.String(), "--new-history")
	r.nothingNew(rec)
}

func TestF54AnOlderTimelineIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.streamedOnce()
	r.change(func(rec *offsets.Record) { rec.Timeline = 7 })
	r.refused(fault.HistoryRewound)
}

func TestF54AnotherClusterIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.streamedOnce()
	other := newRigOn(t, ownServer(t, "18", nil))
	other.broker, other.registry = r.broker, r.registry
	other.exec(numbers)
	stored := r.record().SystemID
	contains(t, other.refused(fault.ClusterChanged), stored,
		other.query("SELECT system_identifier::text FROM pg_control_system()"))
	if n := other.query("SELECT count(*)::text FROM pg_replication_slots"); n != "0" {
		t.Error("a slot was made on the other cluster")
	}
}

func TestASlotOfAnotherKindIsRefused(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]string{
		"plugin":   "SELECT pg_create_logical_replication_slot('%s', 'test_decoding')",
		"physical": "SELECT pg_create_physical_replication_slot('%s')",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "18")
			r.exec(numbers, fmt.Sprintf(make, r.slot()))
			contains(t, r.refused(fault.SlotForeign), "pg_drop_replication_slot('"+r.slot()+"')")
			if n := r.query("SELECT count(*)::text FROM pg_replication_slots WHERE slot_name = $1",
				r.slot()); n != "1" {
				t.Error("the slot of another was dropped")
			}
			r.dropSlot() // a physical one does not belong to the database
		})
	}
	t.Run("database", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, "18")
		r.exec(numbers)
		contains(t, func() string {
			other := newRigOn(t, r.pg)
			other.exec("SELECT pg_create_logical_replication_slot('" + r.slot() + "', 'pgoutput')")
			return r.refused(fault.SlotForeign) + other.db
		}(), "database")
	})
}

func TestF51ALostSlotIsRefused(t *testing.T) {
	t.Parallel()
	for _, v := range versions() {
		t.Run(v, func(t *testing.T) {
			t.Parallel()
			r := newRigOn(t, ownServer(t, v, map[string]string{
				"max_slot_wal_keep_size": "1MB", "min_wal_size": "32MB", "max_wal_size": "32MB",
			}))
			r.streamedOnce()
			lost := func() bool {
				return r.query("SELECT wal_status FROM pg_replication_slots WHERE slot_name = $1",
					r.slot()) == "lost"
			}
			for i := 0; i < 20 && !lost(); i++ {
				r.exec("SELECT pg_logical_emit_message(false, 'x', repeat('x', 1000000))",
					"SELECT pg_switch_wal()", "CHECKPOINT")
			}
			rec := r.record()
			contains(t, r.refused(fault.SlotLost), "max_slot_wal_keep_size", rec.LSN.String())
			r.nothingNew(rec)
		})
	}
}

// A slot that the server invalidates under a running connector ends it with the code, in no loop.
func TestF51ASlotThatIsLostWhileStreamingStopsTheConnector(t *testing.T) {
	t.Parallel()
	r := newRigOn(t, ownServer(t, "18", map[string]string{
		"max_slot_wal_keep_size": "1MB", "min_wal_size": "32MB", "max_wal_size": "32MB",
	}))
	r.exec(numbers)
	run := r.start()
	r.streaming(run)
	release := r.hold()
	defer release()
	r.exec(insertNumbers(1, 1))
	r.until("the slot is lost", func() bool {
		r.exec("SELECT pg_logical_emit_message(false, 'x', repeat('x', 1000000))",
			"SELECT pg_switch_wal()", "CHECKPOINT")
		return r.query("SELECT wal_status FROM pg_replication_slots WHERE slot_name = $1",
			r.slot()) == "lost"
	})
	contains(t, code(t, run.ended(t), fault.SlotLost), "max_slot_wal_keep_size")
}

func TestWhatMustBeSetUpFirst(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sql   []string
		extra map[string]string
		want  fault.Code
		text  []string
	}{
		"publication missing": {
			sql:   []string{numbers},
			extra: map[string]string{"publication.autocreate.mode": "disabled"},
			want:  fault.PublicationMissing, text: []string{"CREATE PUBLICATION", "tidemark"},
		},
		"no tables": {
			sql:   []string{numbers},
			extra: map[string]string{"table.include.list": "public.nothing"},
			want:  fault.NoTables,
		},
		"no identity": {
			sql:  []string{"CREATE TABLE t (a int)"},
			want: fault.ReplicaIdentityUnusable, text: []string{"public.t", "REPLICA IDENTITY FULL"},
		},
		"identity nothing": {
			sql:  []string{numbers, "ALTER TABLE t REPLICA IDENTITY NOTHING"},
			want: fault.ReplicaIdentityUnusable, text: []string{"public.t"},
		},
		"deferrable key": {
			sql:  []string{"CREATE TABLE t (id int PRIMARY KEY DEFERRABLE)"},
			want: fault.ReplicaIdentityUnusable, text: []string{"public.t"},
		},
		"leaf without identity": {
			sql: []string{
				"CREATE TABLE t (id int PRIMARY KEY) PARTITION BY RANGE (id)",
				"CREATE TABLE leaf PARTITION OF t FOR VALUES FROM (0) TO (9)",
				"ALTER TABLE leaf REPLICA IDENTITY NOTHING",
			},
			extra: map[string]string{"publish.via.partition.root": "true"},
			want:  fault.ReplicaIdentityUnusable, text: []string{"public.leaf"},
		},
		"topics collide": {
			sql: []string{
				"CREATE TABLE a_b (id int PRIMARY KEY)", "CREATE SCHEMA public_a",
				"CREATE TABLE public_a.b (id int PRIMARY KEY)",
			},
			extra: map[string]string{"table.include.list": "public.a_b,public_a.b"},
			want:  fault.TopicsCollide, text: []string{"public.a_b", "public_a.b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "18")
			r.exec(c.sql...)
			for k, v := range c.extra {
				r.extra[k] = v
			}
			contains(t, r.refused(c.want), c.text...)
			if n := r.query("SELECT count(*)::text FROM pg_replication_slots WHERE slot_name = $1",
				r.slot()); n != "0" {
				t.Error("a slot was made")
			}
			if n := r.query("SELECT count(*)::text FROM pg_publication"); n != "0" {
				t.Error("a publication was made")
			}
		})
	}
}

func TestAServerWithoutLogicalWALIsRefused(t *testing.T) {
	t.Parallel()
	r := newRigOn(t, ownServer(t, "18", map[string]string{"wal_level": "replica"}))
	r.exec(numbers)
	contains(t, r.refused(fault.WALLevel), "ALTER SYSTEM SET wal_level")
}

func TestF31AnOffsetsTopicThatIsNotCompactedIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	b, err := testenv.StartFakeBroker(testenv.FakeBrokerOptions{
		Options: []kfake.Opt{kfake.SeedTopics(1, "tidemark-offsets")},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	r.broker = b
	r.exec(numbers)
	contains(t, r.refused(fault.OffsetsTopicNotCompact), "tidemark-offsets", "compact")
}
