package testenv_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/tidemark-cdc/tidemark/testenv"
)

// needRealServers skips but in the real-broker stage of `make test-all` (tests of connectors use the
// same servers in that of `make test`), and fails there where Java is missing.
func needRealServers(t *testing.T) {
	t.Helper()
	if os.Getenv("TIDEMARK_REALBROKER") == "" || os.Getenv("TIDEMARK_TEST_ALL") == "" {
		t.Skip("the real-broker stage runs this with TIDEMARK_TEST_ALL=1")
	}
	testenv.RequireJava(t)
}

func startKafka(t *testing.T, o testenv.KafkaOptions) *testenv.Kafka {
	t.Helper()
	began := time.Now()
	k, err := testenv.StartKafka(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d brokers took requests after %v", len(k.Addrs()), time.Since(began))
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

func TestRealKafkaKeepsCommittedTransactionsOverAKill(t *testing.T) {
	needRealServers(t)
	k := startKafka(t, testenv.KafkaOptions{HeapMB: 256})
	producer := client(t, k.Bootstrap(), kgo.TransactionalID("writer"))
	createTopic(t, producer, "events")
	commitOneAbortOne(t, producer, "events")
	if err := k.Kill(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := k.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("the killed broker took requests again after %v", time.Since(began))
	if got := firstCommitted(t, k.Bootstrap(), "events"); got != "committed" {
		t.Errorf("read committed: %q, wanted \"committed\"", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := k.Stop(ctx); err != nil {
		t.Error(err)
	}
}

func TestRealKafkaDemandsTLSAndAPassword(t *testing.T) {
	needRealServers(t)
	k := startKafka(t, testenv.KafkaOptions{HeapMB: 256, TLS: true, SASL: true})
	config, err := (&testenv.Certificates{CAFile: k.CAFile}).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	good := scram.Auth{User: testenv.BrokerUser, Pass: testenv.BrokerPassword}
	for name, option := range map[string]kgo.Opt{
		"PLAIN": kgo.SASL(plain.Auth{
			User: testenv.BrokerUser, Pass: testenv.BrokerPassword,
		}.AsMechanism()),
		"SCRAM-SHA-256": kgo.SASL(good.AsSha256Mechanism()),
		"SCRAM-SHA-512": kgo.SASL(good.AsSha512Mechanism()),
	} {
		c := client(t, k.Bootstrap(), option, kgo.DialTLSConfig(config))
		if err := c.Ping(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	wrong := kgo.SASL(plain.Auth{User: testenv.BrokerUser, Pass: "wrong"}.AsMechanism())
	if client(t, k.Bootstrap(), wrong, kgo.DialTLSConfig(config)).Ping(ctx) == nil {
		t.Error("a wrong password was accepted")
	}
	if err := client(t, k.AdminAddrs()).Ping(t.Context()); err != nil {
		t.Errorf("the tools' own address: %v", err)
	}
}

func TestRealThreeBrokersServeAfterOneWasKilled(t *testing.T) {
	needRealServers(t)
	k := startKafka(t, testenv.KafkaOptions{Brokers: 3, HeapMB: 256})
	producer := client(t, k.Bootstrap(), kgo.TransactionalID("writer"))
	createTopic(t, producer, "events")
	if err := k.Kill(1); err != nil {
		t.Fatal(err)
	}
	if err := k.Start(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	commitOneAbortOne(t, producer, "events")
	if got := firstCommitted(t, k.Bootstrap(), "events"); got != "committed" {
		t.Errorf("read committed: %q, wanted \"committed\"", got)
	}
}

func TestRealRegistryChecksCompatibilityAndKeepsSchemasOverAKill(t *testing.T) {
	needRealServers(t)
	began := time.Now()
	r, err := testenv.StartRegistry(t.Context(), testenv.RegistryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the registry answered after %v", time.Since(began))
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	c := registryClient(t, r.URL)
	checkCompatibility(t, c)
	if err := r.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	after, err := register(t, c, schemaTwo)
	if err != nil {
		t.Fatal(err)
	}
	if after.Version != 2 {
		t.Errorf("the schema's version is %d after a kill, wanted 2", after.Version)
	}
}

func TestAMissingJavaIsNamedWithWhatToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("JAVA_HOME", "")
	_, err := testenv.StartKafka(t.Context(), testenv.KafkaOptions{})
	if err == nil || !contains(err, "apt-get install openjdk-17-jre-headless maven") {
		t.Errorf("error is %v, wanted it to say what to install", err)
	}
}
