package connector_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/connector"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/testenv"
)

// Canaries: none of them may ever be read in a log, an error, a metric or an HTTP answer.
const (
	pgSecret       = "canary-pg-2b7e"
	kafkaSecret    = "canary-kafka-9c41"
	registrySecret = "canary-registry-55d0"
	wrongSecret    = "canary-wrong-e0e0"
	rowValue       = "canary-row-71fa"
)

var canaries = []string{pgSecret, kafkaSecret, registrySecret, wrongSecret, rowValue}

const guard = "guard" // the user that all three peers know

func streams(c *connector.Connector) bool { return c.Status().State == "streaming" }

func TestPeersThatDemandTLSAndALogin(t *testing.T) {
	t.Parallel()
	pg := guardedPostgres(t)
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		t.Run(mechanism, func(t *testing.T) {
			t.Parallel()
			v := newVault(t, pg)
			v.worker["sasl.mechanism"] = mechanism
			if err := v.run(streams); err != nil {
				t.Fatalf("%v\nlog:\n%s", err, v.log.String())
			}
			if got := v.first(); !strings.Contains(got, rowValue) {
				t.Errorf("the event is %s", got)
			}
		})
	}
	// Each: one thing is wrong, and the stop names the peer.
	for name, test := range map[string]struct {
		change func(*vault)
		code   fault.Code
		exit   int
		says   string
	}{
		"PostgreSQL, password": {
			func(v *vault) { v.keys["database.password"] = ref("wrong") },
			fault.AuthenticationFailed, 3, "PostgreSQL",
		},
		"PostgreSQL, authority": {
			func(v *vault) { v.keys["database.sslrootcert"] = v.broker.CAFile },
			fault.AuthenticationFailed, 3, "PostgreSQL",
		},
		"PostgreSQL, system's authorities": {
			func(v *vault) { delete(v.keys, "database.sslrootcert") },
			fault.AuthenticationFailed, 3, "PostgreSQL",
		},
		"PostgreSQL, no TLS": {
			func(v *vault) { v.keys["database.sslmode"] = "disable" },
			fault.AuthenticationFailed, 3, "PostgreSQL",
		},
		"brokers, PLAIN password": {
			func(v *vault) {
				v.worker["sasl.mechanism"], v.worker["sasl.jaas.config"] = "PLAIN", jaas("wrong")
				v.refuseLogins()
			},
			fault.AuthenticationFailed, 3, "sasl.jaas.config",
		},
		"brokers, SCRAM password": {
			func(v *vault) {
				v.worker["sasl.jaas.config"] = jaas("wrong")
				v.refuseLogins()
			},
			fault.AuthenticationFailed, 3, "sasl.jaas.config",
		},
		"brokers, no login": {
			func(v *vault) {
				v.worker["security.protocol"] = "SSL"
				delete(v.worker, "sasl.mechanism")
				delete(v.worker, "sasl.jaas.config")
			},
			fault.AuthenticationFailed, 3, "sasl.jaas.config",
		},
		"brokers, authority": {
			func(v *vault) { v.worker["ssl.truststore.location"] = v.registry.CAFile },
			fault.AuthenticationFailed, 3, "ssl.truststore",
		},
		"registry, password": {
			func(v *vault) { v.worker["basic.auth.user.info"] = guard + ":" + ref("wrong") },
			fault.AuthenticationFailed, 3, "registry",
		},
		"registry, authority": {
			func(v *vault) { v.worker["schema.registry.ssl.truststore.location"] = v.broker.CAFile },
			fault.AuthenticationFailed, 3, "registry",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVault(t, pg)
			test.change(v)
			if err := v.refused(test.code, test.exit); !strings.Contains(err.Error(), test.says) {
				t.Errorf("%q does not say %q", err, test.says)
			}
		})
	}
}

// allow lets the user do one thing to every resource of a kind.
func allow(kind kmsg.ACLResourceType, op kmsg.ACLOperation) kfake.ACL {
	name := "*"
	if kind == kmsg.ACLResourceTypeCluster {
		name = "kafka-cluster"
	}
	return kfake.ACL{
		Resource: kind, Name: name, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: op,
		Allow: true,
	}
}

func TestF29BrokersThatForbid(t *testing.T) {
	t.Parallel()
	pg := guardedPostgres(t)
	topics := func(ops ...kmsg.ACLOperation) (acls []kfake.ACL) {
		for _, op := range ops {
			acls = append(acls, allow(kmsg.ACLResourceTypeTopic, op))
		}
		return acls
	}
	everywhere := topics(kmsg.ACLOperationDescribe, kmsg.ACLOperationDescribeConfigs,
		kmsg.ACLOperationCreate, kmsg.ACLOperationRead)
	transactions := []kfake.ACL{
		allow(kmsg.ACLResourceTypeTransactionalId, kmsg.ACLOperationWrite),
		allow(kmsg.ACLResourceTypeTransactionalId, kmsg.ACLOperationDescribe),
		allow(kmsg.ACLResourceTypeCluster, kmsg.ACLOperationIdempotentWrite),
	}
	deny := func(topic string) kfake.ACL {
		return kfake.ACL{
			Resource: kmsg.ACLResourceTypeTopic, Name: topic,
			Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: kmsg.ACLOperationWrite,
		}
	}
	write := topics(kmsg.ACLOperationWrite)
	for name, test := range map[string]struct {
		acls []kfake.ACL
		says []string
	}{
		"transactional id": {
			slices.Concat(everywhere, write), []string{"transactional id tidemark-offsets-c1"},
		},
		"the table's topic": {
			slices.Concat(everywhere, write, transactions, []kfake.ACL{deny("shop.public.t")}),
			[]string{"Write", "topic shop.public.t"},
		},
		"the offsets topic": {
			slices.Concat(everywhere, write, transactions, []kfake.ACL{deny("tidemark-offsets")}),
			[]string{"tidemark-offsets"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVault(t, pg, test.acls...)
			err := v.refused(fault.BrokerForbids, 3)
			for _, part := range test.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
		})
	}
}

// TestNothingShowsARowsValue drives each error that is about a row, with a canary in the row.
func TestNothingShowsARowsValue(t *testing.T) {
	t.Parallel()
	pg := guardedPostgres(t)
	for name, test := range map[string]struct {
		change func(*vault)
		code   fault.Code
		exit   int
	}{
		"too large": {func(v *vault) {
			v.keys["producer.override.max.request.size"] = "20000"
			v.keys["producer.override.compression.type"] = "none"
			v.exec(fmt.Sprintf("INSERT INTO t VALUES (2, repeat('%s', 10000))", rowValue))
		}, fault.RecordTooLarge, 1},
		"key": {func(v *vault) {
			v.exec("CREATE TABLE k (d date, v text, PRIMARY KEY (d, v))", "GRANT SELECT ON k TO "+guard,
				"ALTER PUBLICATION tidemark ADD TABLE k",
				fmt.Sprintf("INSERT INTO k VALUES ('infinity', '%s')", rowValue))
		}, fault.KeyUnrepresentable, 1},
		"value": {func(v *vault) {
			v.keys["value.unrepresentable"] = "fail"
			v.exec("ALTER TABLE t ADD n numeric(5,2)",
				fmt.Sprintf("INSERT INTO t VALUES (2, '%s', 'NaN')", rowValue))
		}, fault.ValueUnrepresented, 1},
		"schema": {func(v *vault) {
			v.registry.Inject(testenv.RegistryFault{
				Method: "POST", Count: -1, Status: 409, Message: "incompatible",
			})
		}, fault.SchemaRejected, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVault(t, pg)
			test.change(v)
			v.refused(test.code, test.exit)
		})
	}
	t.Run("before-image", func(t *testing.T) {
		t.Parallel()
		v := newVault(t, pg)
		v.exec("ALTER TABLE t REPLICA IDENTITY FULL")
		v.keys["before.image.required"] = "public.t"
		changed := false
		err := v.run(func(c *connector.Connector) bool {
			if !changed && streams(c) {
				changed = true
				v.exec("ALTER TABLE t REPLICA IDENTITY DEFAULT",
					fmt.Sprintf("UPDATE t SET v = '%s!'", rowValue))
			}
			return false
		})
		if fault.CodeOf(err) != fault.BeforeImageMissing {
			t.Errorf("stopped with %v", err)
		}
	})
}
