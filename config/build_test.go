package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDefaultSSLMode(t *testing.T) {
	for hosts, want := range map[string]string{
		"localhost":            "prefer",
		"LOCALHOST":            "prefer",
		"127.0.0.1":            "prefer",
		"127.9.9.9":            "prefer",
		"::1":                  "prefer",
		"::ffff:127.0.0.1":     "prefer",
		"localhost, 127.0.0.1": "prefer",
		"/var/run/postgresql":  "disable",
		"/run/pg,localhost":    "prefer",
		"db.example.com":       "verify-full",
		"localhost,db":         "verify-full",
		"localhost.evil.org":   "verify-full",
		"10.0.0.1":             "verify-full",
		"127.0.0.1.nip.io":     "verify-full",
	} {
		worker, connector := base()
		connector["database.hostname"] = hosts
		f, _, err := FromMaps(worker, map[string]map[string]string{"c": connector})
		if err != nil {
			t.Errorf("%s: %v", hosts, err)
			continue
		}
		if got := f.Connectors[0].Database.SSLMode; got != want {
			t.Errorf("%s: %s, want %s", hosts, got, want)
		}
	}
	for _, hosts := range []string{"", "a,,b", "a b", "http://a", "u@a", "a:5432", "a/b", "[::1]"} {
		worker, connector := base()
		connector["database.hostname"] = hosts
		if _, _, err := FromMaps(worker, map[string]map[string]string{"c": connector}); err == nil {
			t.Errorf("%q is taken for a host", hosts)
		}
	}
}

func TestLoginLineOfJava(t *testing.T) {
	for line, want := range map[string][2]string{
		`org.apache.kafka.common.security.scram.ScramLoginModule required ` +
			`username="alice" password="a;b c";`: {"alice", "a;b c"},
		`o.PlainLoginModule required password='p"w' username='u';`: {"u", `p"w`},
		`o.PlainLoginModule required username=u password=p;`:       {"u", "p"},
		`o.M required username="u" password="a\"b\\c";`:            {"u", `a"b\c`},
		`o.M required username="u" password="";`:                   {"u", ""},
	} {
		user, password, ok := parseJAAS(line)
		if !ok || user != want[0] || password != want[1] {
			t.Errorf("%s: %q %q %v", line, user, password, ok)
		}
	}
	for _, line := range []string{
		"", "x", `o.M required username="u";`, `o.M required password="p";`,
	} {
		if _, _, ok := parseJAAS(line); ok {
			t.Errorf("%q is taken for a login", line)
		}
	}
}

func TestKafkaLogin(t *testing.T) {
	t.Setenv("JAAS", `o.ScramLoginModule required username="u" password="p";`)
	f, warnings, bad := loadText(t, withWorker(`security.protocol: sasl_ssl
sasl.mechanism: scram-sha-512
sasl.jaas.config: ${env:JAAS}
ssl.endpoint.identification.algorithm: ""
producer.security.protocol: SASL_SSL
producer.sasl.jaas.config: ${env:JAAS}
producer.ssl.truststore.type: PEM`))
	if bad != nil || len(warnings) > 0 {
		t.Fatalf("violations %q, warnings %q", bad, warnings)
	}
	k := f.Worker.Kafka
	if k.SecurityProtocol != "SASL_SSL" || k.SASLMechanism != "SCRAM-SHA-512" ||
		k.SASLUser != "u" || k.SASLPassword.Reveal() != "p" || k.TLSEndpointCheck {
		t.Errorf("%+v", k)
	}
}

func TestTrustFiles(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	dir := write(t, map[string]string{
		"ca.pem": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		"ca.jks": "\xfe\xed\xfe\xed",
	})
	ca := filepath.Join(dir, "ca.pem")
	worker, connector := base()
	worker["ssl.truststore.location"] = ca
	worker["schema.registry.ssl.truststore.location"] = ca
	connector["database.sslrootcert"] = ca
	f, _, err := FromMaps(worker, map[string]map[string]string{"c": connector})
	if err != nil {
		t.Fatal(err)
	}
	if f.Worker.Kafka.TLSCAFile != ca || f.Worker.Registry.TLSCAFile != ca ||
		f.Connectors[0].Database.SSLRootCert != ca {
		t.Errorf("%+v", f)
	}
	worker["ssl.truststore.location"] = filepath.Join(dir, "ca.jks")
	_, _, err = FromMaps(worker, map[string]map[string]string{"c": connector})
	want := []string{`worker: ssl.truststore.location: found "ca.jks", wanted a file of ` +
		`certificates in PEM; a Java truststore is turned into PEM by: keytool -list -rfc ` +
		`-keystore FILE`}
	if diff := cmp.Diff(want, violations(dir, err)); diff != "" {
		t.Error(diff)
	}
}

func TestTheRegistryCanComeFromConnectors(t *testing.T) {
	worker, a := base()
	delete(worker, "schema.registry.url")
	_, b := base()
	b["topic.prefix"], b["slot.name"], b["publication.name"] = "b", "b", "b"
	a["value.converter"] = avroConverter
	a["value.converter.schema.registry.url"] = "http://r1:1/apis/ccompat/v7/, https://r2:2"
	a["value.converter.basic.auth.user.info"] = "u:p:q"
	a["key.converter.schema.registry.url"] = "http://r1:1/apis/ccompat/v7/,https://r2:2"
	both := map[string]map[string]string{"a": a, "b": b}
	f, warnings, err := FromMaps(worker, both)
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	r := f.Worker.Registry
	if diff := cmp.Diff([]string{"http://r1:1/apis/ccompat/v7", "https://r2:2"}, r.URLs); diff != "" {
		t.Error(diff)
	}
	if r.User != "u" || r.Password.Reveal() != "p:q" {
		t.Errorf("user %q", r.User)
	}
	b["value.converter.schema.registry.url"] = "http://other:1"
	_, _, err = FromMaps(worker, both)
	want := []string{"connectors.b: value.converter.schema.registry.url: all connectors share one " +
		"registry, and connectors.a says something else: set schema.registry.url in worker"}
	if diff := cmp.Diff(want, violations("", err)); diff != "" {
		t.Error(diff)
	}
	worker["schema.registry.url"] = "http://other:1"
	f, warnings, err = FromMaps(worker, both)
	if err != nil || len(warnings) != 2 || f.Worker.Registry.URLs[0] != "http://other:1" ||
		!strings.Contains(warnings[0].Text, "worker's schema.registry.url is another") {
		t.Errorf("worker's own address: %v %v", err, warnings)
	}
}

func TestRegistryLogins(t *testing.T) {
	t.Setenv("JAAS", `o.ScramLoginModule required username="k" password="kp";`)
	for lines, want := range map[string][3]string{
		"basic.auth.user.info: a:b":                                     {"a", "b", ""},
		"basic.auth.credentials.source: URL":                            {"", "", ""},
		"bearer.auth.token: t":                                          {"", "", "t"},
		"schema.registry.basic.auth.user.info: a:b":                     {"a", "b", ""},
		"basic.auth.credentials.source: SASL_INHERIT\n" + saslLines:     {"k", "kp", ""},
		"value.converter.schema.registry.basic.auth.user.info: \"a:b\"": {"a", "b", ""},
	} {
		f, _, bad := loadText(t, withWorker(lines))
		if bad != nil {
			t.Errorf("%s: %q", lines, bad)
			continue
		}
		r := f.Worker.Registry
		if got := [3]string{r.User, r.Password.Reveal(), r.Bearer.Reveal()}; got != want {
			t.Errorf("%s: %q, want %q", lines, got, want)
		}
	}
	text := strings.Replace(minimal, "http://localhost", "http://a:b%40c@localhost", 1)
	f, warnings, bad := loadText(t, text)
	if bad != nil || len(warnings) != 1 {
		t.Fatalf("violations %q, warnings %q", bad, warnings)
	}
	if r := f.Worker.Registry; r.User != "a" || r.Password.Reveal() != "b@c" ||
		r.URLs[0] != "http://localhost:8081" {
		t.Errorf("%+v", r)
	}
}

const saslLines = "security.protocol: SASL_PLAINTEXT\nsasl.mechanism: PLAIN\n" +
	"sasl.jaas.config: ${env:JAAS}"

func TestStatementsAndKeyColumns(t *testing.T) {
	got := splitStatements(" SELECT 1; SELECT ';;' ;;; ;SET x = 2;")
	if diff := cmp.Diff([]string{"SELECT 1", "SELECT ';' ;", "SET x = 2"}, got); diff != "" {
		t.Error(diff)
	}
	f, _, bad := loadText(t, withConnector(
		"message.key.columns: public.orders:id, customer ;public.t(1|2):a"))
	if bad != nil {
		t.Fatal(bad)
	}
	keys := f.Connectors[0].MessageKeyColumns
	if len(keys) != 2 || !keys[0].Table.MatchString("public.orders") ||
		!cmp.Equal(keys[0].Columns, []string{"id", "customer"}) ||
		!keys[1].Table.MatchString("public.t2") || keys[1].Table.MatchString("public.t3") {
		t.Errorf("%+v", keys)
	}
}

func TestAConnectorsProducerOverridesTheWorkers(t *testing.T) {
	worker, connector := base()
	worker["producer.linger.ms"], worker["producer.compression.type"] = "20", "zstd"
	connector["producer.override.linger.ms"] = "0"
	connector["offset.flush.interval.ms"] = "50"
	worker["offset.flush.interval.ms"] = "500"
	_, other := base()
	other["topic.prefix"], other["slot.name"], other["publication.name"] = "b", "b", "b"
	f, _, err := FromMaps(worker, map[string]map[string]string{"a": connector, "b": other})
	if err != nil {
		t.Fatal(err)
	}
	a, b := f.Connectors[0], f.Connectors[1]
	if a.Producer.Linger != 0 || a.Producer.Compression != "zstd" ||
		b.Producer.Linger != 20*time.Millisecond {
		t.Errorf("producers %+v %+v", a.Producer, b.Producer)
	}
	if a.OffsetFlush != 50*time.Millisecond || b.OffsetFlush != 500*time.Millisecond {
		t.Errorf("flush %v %v", a.OffsetFlush, b.OffsetFlush)
	}
}

func TestAKafkaTransactionIsOverLongBeforeItsTimeout(t *testing.T) {
	worker, connector := base()
	connector["exactly.once.support"] = "required"
	connector["exactly.once.batch.ms"] = "15000"
	connector["exactly.once.batch.bytes"] = "1073741824"
	f, _, err := FromMaps(worker, map[string]map[string]string{"c": connector})
	if err != nil {
		t.Fatal(err)
	}
	if c := f.Connectors[0]; !c.ExactlyOnce || c.ExactlyOnceEvery != 15*time.Second ||
		c.ExactlyOnceBytes != c.MaxQueueBytes {
		t.Errorf("%v, every %v, %d bytes", c.ExactlyOnce, c.ExactlyOnceEvery, c.ExactlyOnceBytes)
	}
	connector["exactly.once.batch.ms"] = "15001"
	_, _, err = FromMaps(worker, map[string]map[string]string{"c": connector})
	const want = "exactly.once.batch.ms: found 15001, wanted at most a fourth of " +
		"producer.override.transaction.timeout.ms, 15000"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestThePrimaryOfAStandby(t *testing.T) {
	load := func(keys map[string]string) (*Connector, error) {
		worker, c := base()
		c["database.password"], c["database.port"] = "s", "5433"
		for k, v := range keys {
			c[k] = v
		}
		f, _, err := FromMaps(worker, map[string]map[string]string{"c": c})
		if err != nil {
			return nil, err
		}
		return f.Connectors[0], nil
	}
	c, err := load(map[string]string{"primary.hostname": "db1.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	p := c.Primary
	if p.Host != "db1.example.com" || p.Port != 5433 || p.User != c.Database.User ||
		p.Password.Reveal() != "s" || p.Name != c.Database.Name || p.SSLMode != "verify-full" {
		t.Errorf("primary %+v: what is not given is the database's, and TLS as its own host wants it", *p)
	}
	c, err = load(map[string]string{
		"primary.hostname": "127.0.0.1", "primary.port": "5434", "primary.user": "hb",
		"primary.password": "other", "database.sslmode": "require",
	})
	if err != nil {
		t.Fatal(err)
	}
	p = c.Primary
	if p.Port != 5434 || p.User != "hb" || p.Password.Reveal() != "other" || p.SSLMode != "require" {
		t.Errorf("primary %+v", *p)
	}
	if c.Database.Port != 5433 || c.Database.User == "hb" {
		t.Errorf("database %+v took what is the primary's", c.Database)
	}
	if _, err = load(map[string]string{"primary.user": "hb"}); err == nil ||
		!strings.Contains(err.Error(), "primary.user: found no primary.hostname") {
		t.Errorf("without a host: %v", err)
	}
}

// How schemas come to the registry, from worker's keys and from converters'.
func TestRegistrySchemas(t *testing.T) {
	for lines, want := range map[string]string{
		"":                               "true false false TopicNameStrategy TopicNameStrategy",
		"normalize.schemas: true":        "true false true TopicNameStrategy TopicNameStrategy",
		"auto.register.schemas: 'False'": "false false false TopicNameStrategy TopicNameStrategy",
		"value.converter.auto.register.schemas: false\nkey.converter.use.latest.version: true": "false " +
			"true false TopicNameStrategy TopicNameStrategy",
		"key.subject.name.strategy: RecordNameStrategy": "true false false RecordNameStrategy " +
			"TopicNameStrategy",
		"value.converter.value.subject.name.strategy: io.confluent.kafka.serializers.subject." +
			"TopicRecordNameStrategy": "true false false TopicNameStrategy TopicRecordNameStrategy",
	} {
		f, _, bad := loadText(t, withWorker(lines))
		if bad != nil {
			t.Errorf("%s: %q", lines, bad)
			continue
		}
		r := f.Worker.Registry
		got := fmt.Sprint(r.AutoRegister, " ", r.UseLatest, " ", r.Normalize, " ", r.KeySubjects, " ",
			r.ValueSubjects)
		if got != want {
			t.Errorf("%s: %s, want %s", lines, got, want)
		}
	}
	for lines, want := range map[string]string{
		"use.latest.version: true": "use.latest.version: without effect while schemas are registered: " +
			"set auto.register.schemas: false beside it",
		"value.converter.value.subject.name.strategy: com.example.Own": "value.subject.name.strategy: " +
			`found "com.example.Own", wanted TopicNameStrategy, RecordNameStrategy or ` +
			"TopicRecordNameStrategy; no Java class can be loaded",
	} {
		_, _, bad := loadText(t, withWorker(lines))
		if len(bad) != 1 || !strings.Contains(bad[0], want) {
			t.Errorf("%s: %q, want %s", lines, bad, want)
		}
	}
	for strategy, want := range map[string][2]string{
		topicNameStrategy:       {"a.b.c-key", "a.b.c-value"},
		recordNameStrategy:      {"n.Key", "n.Envelope"},
		topicRecordNameStrategy: {"a.b.c-n.Key", "a.b.c-n.Envelope"},
	} {
		r := Registry{KeySubjects: strategy, ValueSubjects: strategy}
		got := [2]string{r.Subject("a.b.c", "n.Key", true), r.Subject("a.b.c", "n.Envelope", false)}
		if got != want {
			t.Errorf("%s: %v, want %v", strategy, got, want)
		}
	}
}
