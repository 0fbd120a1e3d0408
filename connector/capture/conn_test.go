package capture

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/testenv"
)

func TestIdentifySaysWhatTheServerIs(t *testing.T) {
	t.Parallel()
	s := newSource(t, testenv.SharedPostgres(t, "18"))
	before := s.lsn("SELECT pg_current_wal_flush_lsn()")
	c := s.dial()
	got, err := c.Identify(timeout(t))
	if err != nil {
		t.Fatal(err)
	}
	id := query[string](s, "SELECT system_identifier::text FROM pg_control_system()")
	if got.SystemID != id || got.Timeline != 1 || got.Database != s.db.Name || got.WAL < before {
		t.Fatalf("%+v, want system %s, timeline 1, database %s, WAL from %s on",
			got, id, s.db.Name, before)
	}
	v := query[int](s, "SELECT current_setting('server_version_num')::int")
	if c.ServerVersion() != v {
		t.Errorf("version %d, want %d", c.ServerVersion(), v)
	}
	if pid := query[int](s, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walsender'"+
		" AND datname = current_database()"); c.PID() != uint32(pid) {
		t.Errorf("PID %d, want %d", c.PID(), pid)
	}
	if h, err := c.TimelineHistory(timeout(t), 1); err != nil || h != nil {
		t.Errorf("history of the first timeline: %v, %v", h, err)
	}
}

func TestASlotBeginsWithAnExportedSnapshot(t *testing.T) {
	t.Parallel()
	s := newSource(t, testenv.SharedPostgres(t, "18"), table, "INSERT INTO t VALUES (1, 'a')")
	c := s.dial()
	created, err := c.CreateSlot(timeout(t), s.db.Name, false)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.confirmed(); got != created.ConsistentPoint {
		t.Errorf("the slot is at %s, CreateSlot says %s", got, created.ConsistentPoint)
	}
	s.exec("INSERT INTO t VALUES (2, 'b')", "BEGIN ISOLATION LEVEL REPEATABLE READ",
		"SET TRANSACTION SNAPSHOT "+quoteLiteral(created.Snapshot))
	if n := query[int](s, "SELECT count(*) FROM t"); n != 1 {
		t.Errorf("the snapshot sees %d rows, want 1", n)
	}
	s.exec("COMMIT")
	if _, err := s.dial().CreateSlot(timeout(t), s.db.Name, false); fault.CodeOf(err) !=
		fault.SlotWithoutOffset {
		t.Errorf("the slot exists, error %v", err)
	}
}

func TestAFailoverSlot(t *testing.T) {
	t.Parallel()
	s := newSource(t, testenv.SharedPostgres(t, "18"))
	if _, err := s.dial().CreateSlot(timeout(t), s.db.Name, true); err != nil {
		t.Fatal(err)
	}
	if !query[bool](s, "SELECT failover FROM pg_replication_slots WHERE slot_name = "+
		quoteLiteral(s.db.Name)) {
		t.Error("the slot is not a failover slot")
	}
}

func TestACancelledSlotIsNotLeftBehind(t *testing.T) {
	t.Parallel()
	s := newSource(t, testenv.SharedPostgres(t, "18"), table)
	// An open transaction with an xid anywhere on the server makes the command wait.
	s.exec("BEGIN; INSERT INTO t VALUES (1, 'a')")
	look := newSource(t, testenv.SharedPostgres(t, "18"))
	c := s.dial()
	ctx, cancel := context.WithCancel(timeout(t))
	failed := make(chan error, 1)
	go func() {
		_, err := c.CreateSlot(ctx, s.db.Name, false)
		failed <- err
	}()
	where := " FROM pg_replication_slots WHERE slot_name = " + quoteLiteral(s.db.Name)
	eventually(t, "the slot is being made and waits", func() bool {
		return query[int](look, "SELECT count(*) FROM pg_stat_activity WHERE pid = "+
			query[string](look, "SELECT COALESCE(max(active_pid), 0)::text"+where)+
			" AND wait_event_type = 'Lock'") == 1
	})
	cancel()
	select {
	case err := <-failed:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	case <-time.After(patience):
		t.Fatal("the wait for the slot was not interrupted")
	}
	if n := query[int](look, "SELECT count(*)"+where); n != 0 {
		t.Error("a slot was left behind")
	}
	s.exec("COMMIT")
	if _, err := c.CreateSlot(timeout(t), s.db.Name, false); err != nil {
		t.Errorf("the connection does not go on: %v", err)
	}
}

func TestALateCancelDropsTheSlotThatWasMade(t *testing.T) {
	t.Parallel()
	s := newSource(t, testenv.SharedPostgres(t, "18"))
	c := s.dial()
	s.slotOn(c)
	ctx, cancel := context.WithCancel(timeout(t))
	cancel()
	if err := c.abandon(ctx, s.db.Name, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if n := query[int](s, "SELECT count(*) FROM pg_replication_slots WHERE slot_name = "+
		quoteLiteral(s.db.Name)); n != 0 {
		t.Error("the slot was left behind")
	}
}

func (s *source) slotOn(c *Conn) {
	s.t.Helper()
	if _, err := c.CreateSlot(timeout(s.t), s.db.Name, false); err != nil {
		s.t.Fatal(err)
	}
}

func TestStartRefusesWhatIsNotOurSlot(t *testing.T) {
	t.Parallel()
	s := newSource(t, testenv.SharedPostgres(t, "18"), table)
	other := newSource(t, testenv.SharedPostgres(t, "18"))
	name, point := s.slot()
	other.slot()
	physical := s.db.Name + "_p"
	s.exec("SELECT pg_create_physical_replication_slot(" + quoteLiteral(physical) + ")")
	t.Cleanup(func() { s.exec(testenv.DropSlot(physical)) })
	s.start(point)
	for slot, want := range map[string]fault.Code{
		"no_such_slot": fault.SlotMissing,
		other.db.Name:  fault.SlotForeign,
		physical:       fault.SlotForeign,
		name:           fault.SlotInUse,
	} {
		_, err := s.dial().Start(timeout(t), StartOptions{Slot: slot, Publication: "pub", Start: 1})
		if fault.CodeOf(err) != want {
			t.Errorf("slot %s: error %v, want %s", slot, err, want)
		}
	}
}

func TestATimelineHistoryIsParsed(t *testing.T) {
	got, err := parseHistory("1\t0/3000148\tno recovery target specified\n\n# comment\n" +
		"2\t1A/B374D848\tbefore 2024-02-29\n")
	want := []TimelineSwitch{
		{Timeline: 1, Switch: 0x3000148, Reason: "no recovery target specified"},
		{Timeline: 2, Switch: 0x1AB374D848, Reason: "before 2024-02-29"},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Fatal(err, diff)
	}
	for _, bad := range []string{"1", "x\t0/1", "1\tnowhere"} {
		if _, err := parseHistory(bad); fault.CodeOf(err) != fault.ProtocolError {
			t.Errorf("%q: error %v", bad, err)
		}
	}
}

func TestAServersVersionIsANumber(t *testing.T) {
	for s, want := range map[string]int{
		"18.4": 180004, "15.18 (Debian 15.18-0+deb12u1)": 150018, "19devel": 190000, "": 0,
		"14.23": 140023,
	} {
		if got := versionNumber(s); got != want {
			t.Errorf("%q is %d, want %d", s, got, want)
		}
	}
}
