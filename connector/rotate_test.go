package connector_test

import (
	"os"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/connector"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/internal/kafkadial"
	"github.com/tidemark-cdc/tidemark/offsets"
	"github.com/tidemark-cdc/tidemark/testenv"
)

// rotate gives the connector's user another password at the brokers, and ends the connections that
// rows go over, at their next request.
func (v *vault) rotate(password string) {
	v.t.Helper()
	opts, err := kafkadial.Options(config.Kafka{
		Bootstrap: v.broker.Addrs(), SecurityProtocol: "SASL_SSL", SASLMechanism: "PLAIN",
		SASLUser: testenv.BrokerUser, SASLPassword: config.NewSecret(testenv.BrokerPassword),
		TLSCAFile: v.broker.CAFile,
	})
	if err != nil {
		v.t.Fatal(err)
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		v.t.Fatal(err)
	}
	defer client.Close()
	altered, err := kadm.NewClient(client).AlterUserSCRAMs(v.t.Context(), nil, []kadm.UpsertSCRAM{
		{User: guard, Mechanism: kadm.ScramSha512, Iterations: 4096, Password: password},
	})
	if err == nil {
		err = altered.Error()
	}
	if err != nil {
		v.t.Fatal(err)
	}
	v.broker.Control(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		return nil, kerr.NetworkException, true
	})
}

// The password of the brokers is changed while rows flow, and in the file that the configuration
// refers to: the connector logs in again by itself. Without the file's change it stops, and says
// whose credentials are refused.
func TestF30ThePasswordChangesWhileRunning(t *testing.T) {
	t.Parallel()
	pg := guardedPostgres(t)
	for _, mode := range []string{"at_least_once", "exactly_once"} {
		for _, file := range []string{"file changed", "file not changed"} {
			t.Run(mode+"/"+file, func(t *testing.T) {
				t.Parallel()
				v := newVault(t, pg)
				if mode == "exactly_once" {
					v.keys["exactly.once.support"] = "required"
				}
				var mark offsets.LSN
				err := v.run(func(c *connector.Connector) bool {
					if mark == 0 && streams(c) {
						if file == "file changed" {
							v.rewrite("kafka", registrySecret)
							v.rotate(registrySecret)
						} else {
							v.rotate(registrySecret)
							v.refuseLogins() // as Kafka does it; the one in the process hangs up
						}
						v.exec("INSERT INTO t VALUES (2, 'x')")
						mark = v.mark()
					}
					at, err := offsets.ParseLSN(c.Status().Positions["flushed"])
					return mark != 0 && err == nil && at > mark
				})
				if file == "file changed" {
					if err != nil {
						t.Errorf("%v\nlog:\n%s", err, v.log.String())
					}
					return
				}
				contains(t, code(t, err, fault.AuthenticationFailed), "sasl.jaas.config")
			})
		}
	}
}

// mark commits something and returns where.
func (v *vault) mark() offsets.LSN {
	v.t.Helper()
	var text string
	err := v.sql.QueryRow(v.t.Context(),
		"SELECT pg_logical_emit_message(true, 'mark', '')::text").Scan(&text)
	if err != nil {
		v.t.Fatal(err)
	}
	lsn, err := offsets.ParseLSN(text)
	if err != nil {
		v.t.Fatal(err)
	}
	return lsn
}

// rewrite changes a secret in the file that the configuration refers to.
func (v *vault) rewrite(key, secret string) {
	v.t.Helper()
	text, err := os.ReadFile(v.file)
	if err != nil {
		v.t.Fatal(err)
	}
	changed := strings.Replace(string(text), key+"="+v.secrets[key], key+"="+secret, 1)
	if err := os.WriteFile(v.file, []byte(changed), 0o600); err != nil {
		v.t.Fatal(err)
	}
}
