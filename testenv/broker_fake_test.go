package testenv_test

import (
	"context"
	"crypto/tls"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/tidemark-cdc/tidemark/testenv"
)

func startFakeBroker(t *testing.T, o testenv.FakeBrokerOptions) *testenv.FakeBroker {
	t.Helper()
	b, err := testenv.StartFakeBroker(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func client(t *testing.T, addrs []string, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(addrs...)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func createTopic(t *testing.T, c *kgo.Client, name string) {
	t.Helper()
	if _, err := kadm.NewClient(c).CreateTopic(t.Context(), 1, 1, nil, name); err != nil {
		t.Fatal(err)
	}
}

// commitOneAbortOne writes "aborted" in a transaction that is aborted and "committed" in one that is
// committed.
func commitOneAbortOne(t *testing.T, c *kgo.Client, topic string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for _, value := range []string{"aborted", "committed"} {
		if err := c.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		record := &kgo.Record{Topic: topic, Value: []byte(value)}
		if err := c.ProduceSync(ctx, record).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := c.EndTransaction(ctx, kgo.TransactionEndTry(value == "committed")); err != nil {
			t.Fatal(err)
		}
	}
}

func firstCommitted(t *testing.T, addrs []string, topic string, options ...kgo.Opt) string {
	t.Helper()
	consumer := client(t, addrs, append(options, kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()))...)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	fetches := consumer.PollFetches(ctx)
	if err := fetches.Err(); err != nil {
		t.Fatal(err)
	}
	return string(fetches.Records()[0].Value)
}

func TestTheFakeBrokerHasTransactionsAndKeepsThemOverARestart(t *testing.T) {
	b := startFakeBroker(t, testenv.FakeBrokerOptions{Persist: true})
	producer := client(t, b.Addrs(), kgo.TransactionalID("writer"))
	createTopic(t, producer, "events")
	commitOneAbortOne(t, producer, "events")
	if got := firstCommitted(t, b.Addrs(), "events"); got != "committed" {
		t.Errorf("read committed: %q, wanted \"committed\"", got)
	}
	before := b.Addrs()
	b.Stop()
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	if after := b.Addrs(); after[0] != before[0] {
		t.Errorf("address changed from %s to %s", before[0], after[0])
	}
	if got := firstCommitted(t, b.Addrs(), "events"); got != "committed" {
		t.Errorf("read committed after a restart: %q, wanted \"committed\"", got)
	}
}

func TestTheFakeBrokerCreatesNoTopicByItself(t *testing.T) {
	b := startFakeBroker(t, testenv.FakeBrokerOptions{})
	c := client(t, b.Addrs(), kgo.AllowAutoTopicCreation(), kgo.UnknownTopicRetries(1))
	err := c.ProduceSync(t.Context(), &kgo.Record{Topic: "none", Value: []byte("v")}).FirstErr()
	if !errors.Is(err, kerr.UnknownTopicOrPartition) {
		t.Errorf("produce to a topic that is not there: %v", err)
	}
}

func TestAControlFunctionAnswersInTheFakeBrokersPlace(t *testing.T) {
	b := startFakeBroker(t, testenv.FakeBrokerOptions{})
	b.Control(int16(kmsg.CreateTopics), func(req kmsg.Request) (kmsg.Response, error, bool) {
		response := req.ResponseKind().(*kmsg.CreateTopicsResponse)
		topic := kmsg.NewCreateTopicsResponseTopic()
		topic.Topic = "events"
		topic.ErrorCode = kerr.TopicAuthorizationFailed.Code
		response.Topics = append(response.Topics, topic)
		return response, nil, true
	})
	admin := kadm.NewClient(client(t, b.Addrs()))
	_, err := admin.CreateTopic(t.Context(), 1, 1, nil, "events")
	if !errors.Is(err, kerr.TopicAuthorizationFailed) {
		t.Errorf("first creation: %v, wanted TOPIC_AUTHORIZATION_FAILED", err)
	}
	if _, err := admin.CreateTopic(t.Context(), 1, 1, nil, "events"); err != nil {
		t.Errorf("second creation: %v, wanted the control to be used up", err)
	}
}

func TestTheFakeBrokerDemandsTLSAndAPassword(t *testing.T) {
	b := startFakeBroker(t, testenv.FakeBrokerOptions{TLS: true, SASL: true})
	config, err := (&testenv.Certificates{CAFile: b.CAFile}).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	for name, option := range map[string]kgo.Opt{
		"PLAIN": kgo.SASL(plain.Auth{
			User: testenv.BrokerUser, Pass: testenv.BrokerPassword,
		}.AsMechanism()),
		"SCRAM-SHA-512": kgo.SASL(scram.Auth{
			User: testenv.BrokerUser, Pass: testenv.BrokerPassword,
		}.AsSha512Mechanism()),
	} {
		if err := client(t, b.Addrs(), option, kgo.DialTLSConfig(config)).Ping(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	wrong := kgo.SASL(plain.Auth{User: testenv.BrokerUser, Pass: "wrong"}.AsMechanism())
	if client(t, b.Addrs(), wrong, kgo.DialTLSConfig(config)).Ping(ctx) == nil {
		t.Error("a wrong password was accepted")
	}
	if conn, err := tls.Dial("tcp", b.Addrs()[0], &tls.Config{MinVersion: tls.VersionTLS12}); err == nil {
		_ = conn.Close()
		t.Error("the certificate was accepted without its authority")
	}
}

func TestTheFakeBrokerSendsClientsThroughAProxy(t *testing.T) {
	p, err := testenv.NewProxy("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	b := startFakeBroker(t, testenv.FakeBrokerOptions{Advertise: []string{p.Addr}})
	p.SetTarget(b.Addrs()[0])
	c := client(t, []string{p.Addr})
	createTopic(t, c, "events")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	record := &kgo.Record{Topic: "events", Value: []byte("v")}
	if err := c.ProduceSync(ctx, record).FirstErr(); err != nil {
		t.Fatal(err)
	}
	brokers, err := kadm.NewClient(c).ListBrokers(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got := int(brokers[0].Port); got != p.Port() {
		t.Errorf("the broker advertises port %d, wanted the proxy's %d", got, p.Port())
	}
}
