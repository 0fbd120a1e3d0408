package connector_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/testenv"
)

// K17: a registry that is down when a schema is new holds the stream up, not the connection.
func TestF40ARegistryThatIsDownIsWaitedFor(t *testing.T) {
	t.Parallel()
	pg := ownServer(t, "18", map[string]string{"wal_sender_timeout": "2s"})
	eachMode(t, func(t *testing.T, set func(*rig) *rig) { registryIsDown(t, set(newRigOn(t, pg))) })
}

func registryIsDown(t *testing.T, r *rig) {
	t.Helper()
	r.exec(numbers, insertNumbers(1, 1))
	r.registry.Inject(testenv.RegistryFault{Count: -1, Status: 503})
	run := r.start()
	waits := func() bool {
		s := run.c.Status()
		return !s.Ready && strings.Contains(strings.Join(s.Reasons, " "), "registry")
	}
	r.until("the snapshot waits", waits)
	r.registry.ClearFaults()
	r.streaming(run)
	r.exec(insertNumbers(2, 2)) // cached: needs no registry
	r.caughtUp(run)
	r.registry.Inject(testenv.RegistryFault{Count: -1, Status: 500})
	r.exec(insertNumbers(3, 3))
	r.caughtUp(run)
	sender := r.walsender()
	r.exec("ALTER TABLE t ADD COLUMN n int", "INSERT INTO t VALUES (4, 'v4', 4)", insertNumbers(5, 5))
	before := r.confirmedFlush()
	r.until("the stream waits", waits)
	r.holds(5*time.Second, "the walsender is the same", func() bool { return r.walsender() == sender })
	if after := r.confirmedFlush(); after > before+1<<20 {
		t.Errorf("the slot moved from %s to %s", before, after)
	}
	r.registry.ClearFaults()
	r.until("it recovers", func() bool { return run.c.Status().Ready })
	r.caughtUp(run)
	if r.walsender() != sender {
		t.Error("the session is another")
	}
	r.clean(run)
	sameInts(t, "ids", ids(r.committed(tableTopic), "id"), sequence(1, 5))
}

// An incompatible schema stops the connector before its first event; the position is kept, and once
// the level of the subject is changed nothing is missing.
func TestF42ASchemaThatTheRegistryRefusesStopsBeforeItsFirstEvent(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, r *rig) {
		r.onePartition()
		r.exec("CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, '1')")
		run := r.start()
		r.streaming(run)
		r.exec("INSERT INTO t VALUES (2, '2')", "ALTER TABLE t ALTER v TYPE int USING v::int",
			"INSERT INTO t VALUES (3, 3)")
		contains(t, code(t, run.ended(t), fault.SchemaRejected), "shop.public.t-value")
		sameInts(t, "ids", ids(r.committed(tableTopic), "id"), sequence(1, 2))
		r.refused(fault.SchemaRejected)
		client, err := sr.NewClient(sr.URLs(r.registry.URL))
		if err != nil {
			t.Fatal(err)
		}
		for _, res := range client.SetCompatibility(t.Context(), sr.SetCompatibility{Level: sr.CompatNone},
			"shop.public.t-value") {
			if res.Err != nil {
				t.Fatal(res.Err)
			}
		}
		run = r.start()
		r.streaming(run)
		r.caughtUp(run)
		r.clean(run)
		got := lines(r.committed(tableTopic))
		same(t, got[len(got)-1:], []string{"c NOT_APPLICABLE {id:3} {id:3 v:3}"})
	})
}

func TestF19ABrokerThatIsDownAtTheStartIsWaitedFor(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.exec(numbers, insertNumbers(1, 3))
	r.broker.Stop()
	run := r.start()
	r.until("it waits", func() bool {
		s := run.c.Status()
		return !s.Ready && s.Error != nil && s.Error.Code == fault.BrokerUnreachable
	})
	if err := r.broker.Start(); err != nil {
		t.Fatal(err)
	}
	r.streaming(run)
	r.caughtUp(run)
	r.clean(run)
	sameInts(t, "ids", ids(r.all("shop.public.t"), "id"), sequence(1, 3))
}

// A load balancer whose brokers are gone takes connections and ends them at once, which to a client
// looks like brokers that want TLS. Since they took this process before, it waits.
func TestBrokersThatAreGoneBehindALoadBalancerAreWaitedFor(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	proxy, err := testenv.NewProxy("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	broker, err := testenv.StartFakeBroker(testenv.FakeBrokerOptions{Advertise: []string{proxy.Addr}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { broker.Close() })
	proxy.SetTarget(broker.Addrs()[0])
	r.broker = broker
	r.exec(numbers, insertNumbers(1, 3))
	run := r.start()
	r.streaming(run)
	r.caughtUp(run)
	proxy.SetTarget("127.0.0.1:1") // nobody listens there
	proxy.ResetAll()
	r.exec("SELECT pg_terminate_backend(" + r.walsender() + ")") // or it is a minute until it says so
	r.until("it waits", func() bool {
		s := run.c.Status()
		return !s.Ready && s.Error != nil && s.Error.Code == fault.BrokerUnreachable &&
			strings.Contains(r.log.String(), "which went through before, are ended at once")
	})
	r.exec(insertNumbers(4, 6))
	proxy.SetTarget(broker.Addrs()[0])
	r.streaming(run)
	r.caughtUp(run)
	r.clean(run)
	sameInts(t, "ids", ids(r.all("shop.public.t"), "id"), sequence(1, 6))
}

func TestAServerThatIsDownAtTheStartIsWaitedFor(t *testing.T) {
	t.Parallel()
	pg := ownServer(t, "18", nil)
	r := newRigOn(t, pg)
	r.exec(numbers, insertNumbers(1, 3))
	r.sql.Close(t.Context())
	if err := pg.Stop(t.Context(), "fast"); err != nil {
		t.Fatal(err)
	}
	run := r.start()
	r.until("it waits", func() bool {
		s := run.c.Status()
		return !s.Ready && s.Error != nil && s.Error.Code == fault.PostgresUnreachable
	})
	err := pg.Start(t.Context())
	if err == nil {
		r.sql, err = pg.Connect(t.Context(), r.db)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.streaming(run)
	r.caughtUp(run)
	r.clean(run)
	sameInts(t, "ids", ids(r.all("shop.public.t"), "id"), sequence(1, 3))
}

// replicationRole makes a role that may replicate and read, and nothing else; the owner prepared
// the publication.
func (r *rig) replicationRole(name string) {
	r.t.Helper()
	r.exec("CREATE ROLE "+name+" LOGIN REPLICATION PASSWORD 'secret'",
		"GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+name,
		"CREATE PUBLICATION tidemark FOR TABLE t")
	r.t.Cleanup(func() {
		_, _ = r.sql.Exec(r.t.Context(), "DROP OWNED BY "+name+"; DROP ROLE "+name)
	})
	r.extra["database.user"], r.extra["database.password"] = name, "secret"
	r.extra["publication.autocreate.mode"] = "disabled"
}

func TestARoleWithReplicationAndSelectIsEnough(t *testing.T) {
	t.Parallel()
	onVersions(t, func(t *testing.T, r *rig) {
		r.exec(numbers, insertNumbers(1, 3))
		r.replicationRole("plain_" + r.db)
		run := r.start()
		r.streaming(run)
		r.exec(insertNumbers(4, 5), "UPDATE t SET v = 'x' WHERE id = 1")
		r.caughtUp(run)
		r.clean(run)
		run = r.start()
		r.streaming(run)
		r.exec(insertNumbers(6, 6))
		r.caughtUp(run)
		r.clean(run)
		sameInts(t, "ids", ids(r.all("shop.public.t"), "id"), []int{1, 1, 2, 3, 4, 5, 6})
	})
}

func TestARoleThatMayNotMakeThePublicationIsToldTheStatement(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.exec(numbers)
	r.replicationRole("poor_" + r.db)
	r.exec("DROP PUBLICATION tidemark")
	delete(r.extra, "publication.autocreate.mode")
	contains(t, r.refused(fault.PrivilegeMissing), "CREATE PUBLICATION", "disabled")
}

func TestARoleWithoutSelectIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.exec(numbers, insertNumbers(1, 3))
	r.replicationRole("blind_" + r.db)
	r.exec("REVOKE SELECT ON t FROM " + pgx.Identifier{r.extra["database.user"]}.Sanitize())
	contains(t, r.refused(fault.PrivilegeMissing), "t")
}

// A key that its type cannot hold stops the connector before anything later is sent.
func TestAKeyThatItsTypeCannotHoldStops(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.exec("CREATE TABLE k (d date PRIMARY KEY, v int)")
	run := r.start()
	r.streaming(run)
	r.exec("INSERT INTO k VALUES ('2024-01-01', 1)", "INSERT INTO k VALUES ('infinity', 2)",
		"INSERT INTO k VALUES ('2024-01-02', 3)")
	contains(t, code(t, run.ended(t), fault.KeyUnrepresentable), "public.k", "d", "key.text.columns")
	sameInts(t, "v", ids(r.all("shop.public.k"), "v"), sequence(1, 1))
	position := r.record().LSN
	if position <= r.record().Snapshot.Point {
		t.Error("the position of what was sent is not stored")
	}
	r.refused(fault.KeyUnrepresentable)
	if now := r.record().LSN; now != position {
		t.Errorf("the position was %s and is %s", position, now)
	}
	if n := len(r.all("shop.public.k")); n != 1 {
		t.Error(fmt.Sprint(n) + " events")
	}
}
