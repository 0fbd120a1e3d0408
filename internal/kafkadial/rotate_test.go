package kafkadial

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/config"
)

// client makes a client that outlives what the test changes.
func client(t *testing.T, k config.Kafka) *kgo.Client {
	t.Helper()
	opts, err := Options(k)
	if err != nil {
		t.Fatal(err)
	}
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// hangUp ends the connection of the next request for metadata, which is then sent on a new one.
func hangUp(c *kfake.Cluster) {
	c.ControlKey(int16(kmsg.Metadata), func(kmsg.Request) (kmsg.Response, error, bool) {
		return nil, kerr.NetworkException, true
	})
}

// A password in a file is read again at each login, so that the same client goes on when both have
// changed. A file that is gone is named.
func TestF30APasswordInAFileIsReadAgain(t *testing.T) {
	t.Parallel()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(),
		kfake.Superuser("SCRAM-SHA-512", "joe", "old"), kfake.Superuser("PLAIN", "admin", "admin"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	file := filepath.Join(t.TempDir(), "secrets")
	write(t, file, []byte("kafka=old\n"))
	f, _, err := config.FromMaps(map[string]string{
		"bootstrap.servers": strings.Join(c.ListenAddrs(), ","), "schema.registry.url": "http://r:1",
		"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512",
		"sasl.jaas.config": `x required username="joe" password="${file:` + file + `:kafka}";`,
	}, map[string]map[string]string{"c": {
		"topic.prefix": "p", "database.hostname": "h", "database.user": "u",
		"database.password": "${file:" + file + ":kafka}", "database.dbname": "d",
	}})
	if err != nil {
		t.Fatal(err)
	}
	cl := client(t, f.Worker.Kafka)
	if err := cl.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	admin := kadm.NewClient(client(t, config.Kafka{
		Bootstrap: c.ListenAddrs(), SecurityProtocol: "SASL_PLAINTEXT", SASLMechanism: "PLAIN",
		SASLUser: "admin", SASLPassword: config.NewSecret("admin"),
	}))
	altered, err := admin.AlterUserSCRAMs(t.Context(), nil, []kadm.UpsertSCRAM{
		{User: "joe", Mechanism: kadm.ScramSha512, Iterations: 4096, Password: "new"},
	})
	if err == nil {
		err = altered.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, []byte("kafka=new\n"))
	hangUp(c)
	if err := cl.Ping(t.Context()); err != nil {
		t.Errorf("after the change: %v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	_, _, err = f.Worker.Kafka.Login()
	if err == nil || !strings.Contains(err.Error(), "sasl.jaas.config") ||
		strings.Contains(err.Error(), "password=") {
		t.Errorf("without the file: %v", err)
	}
}

// The brokers get certificates of another authority: with its certificate in the file, the same
// client goes on.
func TestF30AnAuthorityInAFileIsReadAgain(t *testing.T) {
	t.Parallel()
	var served atomic.Pointer[tls.Certificate]
	first, ca := certificate(t, "broker.example")
	served.Store(&first)
	file := filepath.Join(t.TempDir(), "ca.pem")
	write(t, file, ca)
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.TLS(&tls.Config{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return served.Load(), nil
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	cl := client(t, config.Kafka{
		Bootstrap: c.ListenAddrs(), SecurityProtocol: "SSL", TLSCAFile: file,
	})
	if err := cl.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	second, ca := certificate(t, "broker.example")
	served.Store(&second)
	write(t, file, ca)
	hangUp(c)
	if err := cl.Ping(t.Context()); err != nil {
		t.Errorf("after the change: %v", err)
	}
}
