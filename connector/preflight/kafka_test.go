package preflight

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/offsets"
	"github.com/tidemark-cdc/tidemark/testenv"
)

// limited are the rights of the user "limited": it may see topics, and write one of them.
func limited() kfake.Opt {
	topic := func(name string, op kmsg.ACLOperation) kfake.ACL {
		return kfake.ACL{
			Resource: kmsg.ACLResourceTypeTopic, Name: name,
			Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: op, Allow: true,
		}
	}
	return kfake.User("PLAIN", "limited", "limited-secret",
		topic("shop.public.orders", kmsg.ACLOperationDescribe),
		topic("shop.public.orders", kmsg.ACLOperationWrite),
		topic("shop.public.customers", kmsg.ACLOperationDescribe),
		topic("shop.transaction", kmsg.ACLOperationDescribe),
		topic("shop.tidemark-events", kmsg.ACLOperationDescribe),
		topic("tidemark-offsets", kmsg.ACLOperationDescribe))
}

func TestF29RightsOnTopicsAndTransactionalID(t *testing.T) {
	w := newWorld(t, testenv.SharedPostgres(t, ""), testenv.FakeBrokerOptions{
		SASL: true, ACLs: true, Options: []kfake.Opt{
			limited(), kfake.SeedTopics(1, "shop.public.orders", "shop.public.customers",
				"shop.transaction"),
		},
	})
	w.exec(t, `CREATE TABLE orders (id int PRIMARY KEY)`,
		`CREATE TABLE customers (id int PRIMARY KEY)`)
	k := &w.options.Worker.Kafka
	k.SecurityProtocol, k.SASLMechanism = "SASL_PLAINTEXT", "PLAIN"
	k.SASLUser, k.SASLPassword = "limited", config.NewSecret("limited-secret")
	c := w.options.Connector
	c.TransactionMetadata, c.TransactionTopic = true, "transaction"
	c.Messages.Include = []*regexp.Regexp{regexp.MustCompile("^app$")}
	r := w.check(t)
	f := wantFailed(t, r, "topic_rights", fault.BrokerForbids, "topic shop.message",
		"topic shop.public.customers", "topic shop.transaction", "topic shop.tidemark-events",
		"topic tidemark-offsets")
	const fix = "kafka-acls --add --allow-principal User:limited --topic "
	if len(f) == 5 && (f[1].Fix != fix+"'shop.public.customers' --operation Write" ||
		f[2].Fix != fix+"'shop.transaction' --operation Write" || f[4].Fix != fix+
		"'tidemark-offsets' --operation Create --operation Describe --operation Write --operation Read") {
		t.Errorf("fixes: %+v", f)
	}
	for _, missing := range f[min(3, len(f)):] {
		if !strings.Contains(missing.Found, "may not make it") {
			t.Errorf("found: %s", missing.Found)
		}
	}
	// A repair of gaps reads the topics of tables.
	c.OnSlotGap = "resnapshot"
	c.TransactionMetadata, c.Messages.Include = false, nil
	f = wantFailed(t, w.check(t), "topic_rights", fault.BrokerForbids, "topic shop.public.customers",
		"topic shop.public.orders", "topic shop.tidemark-events", "topic tidemark-offsets")
	if len(f) == 4 && (f[0].Found != "no Write, Read" || f[1].Found != "no Read") {
		t.Errorf("found: %+v", f)
	}
	wantFailed(t, r, "transactions", fault.BrokerForbids, "transactional id tidemark-offsets-shop")
}

// Brokers of before KIP-890 may be used, which is noted; ones without transactions may be used at
// least once only.
func TestF39BrokersOfOtherVersions(t *testing.T) {
	without := kversion.V3_6_0()
	for _, key := range []kmsg.Key{
		kmsg.InitProducerID, kmsg.AddPartitionsToTxn, kmsg.EndTxn, kmsg.DescribeTransactions,
	} {
		without.SetMaxKeyVersion(int16(key), -1)
	}
	summary := func(versions *kversion.Versions, exactly bool) *Finding {
		t.Helper()
		var options []kfake.Opt
		if versions != nil {
			options = append(options, kfake.MaxVersions(versions))
		}
		w := newWorld(t, testenv.SharedPostgres(t, ""), testenv.FakeBrokerOptions{Options: options})
		w.exec(t, `CREATE TABLE orders (id int PRIMARY KEY)`)
		w.options.Connector.ExactlyOnce = exactly
		r := w.check(t)
		for i := range r.Findings {
			if r.Findings[i].Check == "transactions" {
				return &r.Findings[i]
			}
		}
		t.Fatal("transactions were not checked")
		return nil
	}
	if f := summary(nil, true); strings.Contains(f.Found, "KIP-890") {
		t.Errorf("a broker of today: %+v", f)
	}
	if f := summary(kversion.V3_6_0(), true); f.Code != "" || !strings.Contains(f.Found, "KIP-890") {
		t.Errorf("before KIP-890: %+v", f)
	}
	if f := summary(without, false); f.Severity != Warning {
		t.Errorf("without transactions, at least once: %+v", f)
	}
	if f := summary(without, true); f.Severity != Error || f.Code != fault.ConfigInvalid {
		t.Errorf("without transactions, exactly once: %+v", f)
	}
}

func TestWrongPasswords(t *testing.T) {
	w := newWorld(t, testenv.SharedPostgres(t, ""), testenv.FakeBrokerOptions{SASL: true})
	w.options.Connector.Database.Password = config.NewSecret("sesame")
	k := &w.options.Worker.Kafka
	k.SecurityProtocol, k.SASLMechanism = "SASL_PLAINTEXT", "PLAIN"
	k.SASLUser, k.SASLPassword = testenv.BrokerUser, config.NewSecret("sesame")
	// The broker in the process only hangs up; Kafka says why.
	w.broker.Control(int16(kmsg.SASLAuthenticate),
		func(req kmsg.Request) (kmsg.Response, error, bool) {
			resp := req.ResponseKind().(*kmsg.SASLAuthenticateResponse)
			resp.ErrorCode = kerr.SaslAuthenticationFailed.Code
			return resp, nil, true
		})
	r := w.check(t)
	for _, check := range []string{"postgres_connection", "broker_connection"} {
		f := find(r, check)
		if len(f) != 1 || f[0].Code != fault.AuthenticationFailed {
			t.Errorf("%s: %+v", check, f)
			continue
		}
		if strings.Contains(f[0].Found, "sesame") {
			t.Errorf("%s shows the password: %s", check, f[0].Found)
		}
	}
}

func TestTruncateOfATableWithACompactedTopic(t *testing.T) {
	w := newWorld(t, testenv.SharedPostgres(t, ""), testenv.FakeBrokerOptions{})
	w.exec(t, `CREATE TABLE orders (id int PRIMARY KEY)`)
	w.options.Connector.TopicCreation.Configs = map[string]string{"cleanup.policy": "compact"}
	wantFailed(t, w.check(t), "truncate", "", "topic shop.public.orders")
	w.options.Connector.SkippedOperations = map[byte]bool{'t': true}
	wantFailed(t, w.check(t), "truncate", "")
}

func TestStoredPositionWithoutItsSlot(t *testing.T) {
	w := newWorld(t, testenv.SharedPostgres(t, ""), testenv.FakeBrokerOptions{})
	w.exec(t, `CREATE TABLE orders (id int PRIMARY KEY)`)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	store, err := offsets.OpenStore(ctx, offsets.StoreOptions{
		ClientOpts: []kgo.Opt{kgo.SeedBrokers(w.broker.Addrs()...)},
		Topic:      "tidemark-offsets", Connector: "shop", Prefix: "shop", Replication: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.Fence(ctx); err != nil {
		t.Fatal(err)
	}
	save := func(system string) {
		t.Helper()
		err := store.Save(ctx, offsets.Record{
			LSN: 0x1000000, SystemID: system, Timeline: 1, Slot: "tidemark",
			Snapshot: &offsets.SnapshotState{Done: true},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	save("1")
	wantFailed(t, w.check(t), "position", fault.ClusterChanged, "stored position 0/1000000")
	conn, err := w.pg.Connect(ctx, w.db)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	var system string
	err = conn.QueryRow(ctx, `SELECT system_identifier::text FROM pg_control_system()`).Scan(&system)
	if err != nil {
		t.Fatal(err)
	}
	save(system)
	wantFailed(t, w.check(t), "position", fault.SlotMissing, "stored position 0/1000000")
	if r := w.check(t); r.Exit() != 3 {
		t.Errorf("exit %d", r.Exit())
	}
	// The check has fenced nobody: the writer is still the writer.
	save(system)
}

// TestNothingIsTouched compares what there is before and after a check.
func TestNothingIsTouched(t *testing.T) {
	w := newWorld(t, testenv.SharedPostgres(t, ""), testenv.FakeBrokerOptions{})
	w.exec(t, `CREATE TABLE orders (id int PRIMARY KEY)`)
	w.check(t)
	client, err := kgo.NewClient(kgo.SeedBrokers(w.broker.Addrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = nil // all
	resp, err := req.RequestWith(context.Background(), client)
	if err != nil {
		t.Fatal(err)
	}
	if len(resp.Topics) != 0 {
		t.Errorf("%d topics were made", len(resp.Topics))
	}
	for _, request := range w.registry.Requests() {
		if !strings.HasPrefix(request, "GET ") {
			t.Errorf("the registry got %s", request)
		}
	}
	w.exec(t, `DO $$ BEGIN
		IF EXISTS (SELECT FROM pg_publication) THEN RAISE 'a publication was made'; END IF;
		IF EXISTS (SELECT FROM pg_replication_slots WHERE database = current_database())
		THEN RAISE 'a slot was made'; END IF;
	END $$`)
}

// A broker without transactions is a warning in at-least-once mode, whose fence rests on them, and
// an error where events and position are to be one transaction.
func TestABrokerWithoutTransactions(t *testing.T) {
	versions := kversion.Stable()
	versions.SetMaxKeyVersion(int16(kmsg.EndTxn), -1)
	w := newWorld(t, testenv.SharedPostgres(t, ""), testenv.FakeBrokerOptions{
		Options: []kfake.Opt{kfake.MaxVersions(versions)},
	})
	w.exec(t, `CREATE TABLE orders (id int PRIMARY KEY)`)
	r := w.check(t)
	f := find(r, "transactions")
	if len(f) != 1 || f[0].Severity != Warning || f[0].Status != Failed || !strings.Contains(f[0].Found, "no transactions") {
		t.Errorf("at least once: %+v", f)
	}
	if r.Exit() != 0 {
		t.Errorf("at least once: exit %d", r.Exit())
	}
	w.options.Connector.ExactlyOnce = true
	r = w.check(t)
	f = wantFailed(t, r, "transactions", fault.ConfigInvalid, "broker")
	if len(f) == 1 && !strings.Contains(f[0].Fix, "exactly.once.support: disabled") {
		t.Errorf("exactly once: %+v", f)
	}
	if r.Exit() != 3 {
		t.Errorf("exactly once: exit %d", r.Exit())
	}
}
