package testenv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A kafkaNode is one broker, which is a controller too (KRaft's combined mode).
//
// It has three listeners: CLIENT, with the TLS and SASL of the options; INTERNAL, plain, for the
// brokers among themselves and for a test's own tools; CONTROLLER, plain.
type kafkaNode struct {
	id                           int
	client, internal, controller int // ports
	advertised                   string
	dir                          string
	process                      *process
}

func (n *kafkaNode) properties() string { return filepath.Join(n.dir, "server.properties") }
func (n *kafkaNode) log() string        { return filepath.Join(n.dir, "server.log") }

// logConfiguration sends everything to standard output, which is the node's log file.
const logConfiguration = `<Configuration status="WARN">
	<Appenders><Console name="C"><PatternLayout pattern="%d{ISO8601} %p %m (%c)%n"/></Console></Appenders>
	<Loggers><Root level="INFO"><AppenderRef ref="C"/></Root></Loggers>
</Configuration>
`

// configure writes the files of a node.
func (k *Kafka) configure(n *kafkaNode, o KafkaOptions, certs *Certificates) error {
	if err := os.Mkdir(n.dir, 0o755); err != nil {
		return err
	}
	var lines []string
	for _, set := range []map[string]string{
		k.clusterProperties(), n.listenerProperties(o), tlsProperties(n, certs), o.Settings,
	} {
		for _, name := range sortedKeys(set) {
			lines = append(lines, name+"="+set[name])
		}
	}
	err := os.WriteFile(n.properties(), []byte(strings.Join(lines, "\n")+"\n"), 0o644)
	if certs == nil || err != nil {
		return err
	}
	// A PEM key store is one file with the key and its certificates.
	key, keyErr := os.ReadFile(certs.KeyFile)
	cert, certErr := os.ReadFile(certs.CertFile)
	return errors.Join(keyErr, certErr,
		os.WriteFile(filepath.Join(n.dir, "keystore.pem"), append(key, cert...), 0o600))
}

func (k *Kafka) clusterProperties() map[string]string {
	var voters []string
	for _, n := range k.nodes {
		voters = append(voters, fmt.Sprintf("%d@127.0.0.1:%d", n.id, n.controller))
	}
	replicas := fmt.Sprint(len(k.nodes))
	inSync := fmt.Sprint(len(k.nodes)/2 + 1)
	return map[string]string{
		"process.roles":                                    "broker,controller",
		"controller.quorum.voters":                         strings.Join(voters, ","),
		"controller.listener.names":                        "CONTROLLER",
		"inter.broker.listener.name":                       "INTERNAL",
		"auto.create.topics.enable":                        "false",
		"group.initial.rebalance.delay.ms":                 "0",
		"offsets.topic.replication.factor":                 replicas,
		"offsets.topic.num.partitions":                     "5",
		"transaction.state.log.replication.factor":         replicas,
		"transaction.state.log.min.isr":                    inSync,
		"transaction.state.log.num.partitions":             "5",
		"share.coordinator.state.topic.replication.factor": replicas,
		"share.coordinator.state.topic.min.isr":            inSync,
		"share.coordinator.state.topic.num.partitions":     "1",
	}
}

func (n *kafkaNode) listenerProperties(o KafkaOptions) map[string]string {
	protocol := map[[2]bool]string{
		{false, false}: "PLAINTEXT", {false, true}: "SASL_PLAINTEXT",
		{true, false}: "SSL", {true, true}: "SASL_SSL",
	}[[2]bool{o.TLS, o.SASL}]
	properties := map[string]string{
		"node.id":  fmt.Sprint(n.id),
		"log.dirs": filepath.Join(n.dir, "data"),
		"listeners": fmt.Sprintf(
			"CLIENT://127.0.0.1:%d,INTERNAL://127.0.0.1:%d,CONTROLLER://127.0.0.1:%d",
			n.client, n.internal, n.controller),
		"advertised.listeners": fmt.Sprintf("CLIENT://%s,INTERNAL://127.0.0.1:%d",
			n.advertised, n.internal),
		"listener.security.protocol.map": "CLIENT:" + protocol +
			",INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
	}
	if !o.SASL {
		return properties
	}
	const (
		listener = "listener.name.client."
		modules  = "org.apache.kafka.common.security."
	)
	properties["sasl.enabled.mechanisms"] = strings.Join(saslMechanisms, ",")
	properties[listener+"plain.sasl.jaas.config"] = fmt.Sprintf(
		"%splain.PlainLoginModule required user_%s=%q;", modules, BrokerUser, BrokerPassword)
	for _, mechanism := range []string{"scram-sha-256", "scram-sha-512"} {
		properties[listener+mechanism+".sasl.jaas.config"] = modules +
			"scram.ScramLoginModule required;"
	}
	return properties
}

func tlsProperties(n *kafkaNode, certs *Certificates) map[string]string {
	if certs == nil {
		return nil
	}
	return map[string]string{
		"listener.name.client.ssl.keystore.type":     "PEM",
		"listener.name.client.ssl.keystore.location": filepath.Join(n.dir, "keystore.pem"),
	}
}
