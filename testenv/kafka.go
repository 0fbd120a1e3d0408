package testenv

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"
)

// KafkaOptions say how a real Kafka differs from the usual one. The zero value is one broker with
// 512 MB of heap, without TLS and SASL.
type KafkaOptions struct {
	Brokers  int               // 0 is 1
	HeapMB   int               // of each broker; 0 is 512, or 384 with several brokers
	TLS      bool              // clients must use TLS and trust CAFile
	SASL     bool              // clients must authenticate as BrokerUser
	Settings map[string]string // lines of server.properties, over ours

	// Advertise are the addresses that the brokers tell clients to connect to, one a broker,
	// as those of proxies that lead to Addrs. Empty: Addrs.
	Advertise []string
}

// A Kafka is a cluster of Apache Kafka brokers as processes of their own. Its methods may be called
// from several goroutines.
type Kafka struct {
	CAFile string // the authority of its certificates; "" without TLS

	dir, java, jars, clusterID string
	heapMB                     int

	mu     sync.Mutex
	nodes  []*kafkaNode
	closed bool
}

// kafkaReadyAfter bounds the start, recovery after a kill under load included.
const kafkaReadyAfter = 3 * time.Minute

// StartKafka formats and starts brokers, and returns when all of them take requests. The caller
// closes them. The first call downloads 55 MB.
func StartKafka(ctx context.Context, o KafkaOptions) (*Kafka, error) {
	java, err := javaCommand()
	if err != nil {
		return nil, err
	}
	jars, err := kafkaJars.fetch()
	if err != nil {
		return nil, err
	}
	dir, err := newRunDir("kafka")
	if err != nil {
		return nil, err
	}
	k := &Kafka{dir: dir, java: java, jars: jars, heapMB: o.HeapMB}
	err = k.prepare(o)
	if err == nil {
		err = k.format(ctx, o)
	}
	if err == nil {
		err = k.Start(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start Kafka: %w", err), k.Close())
	}
	return k, nil
}

func (k *Kafka) prepare(o KafkaOptions) error {
	brokers := max(o.Brokers, 1)
	if k.heapMB == 0 {
		k.heapMB = 512
		if brokers > 1 {
			k.heapMB = 384
		}
	}
	// A cluster's id is a UUID in URL-safe base64; any 16 bytes will do.
	id := make([]byte, 16)
	_, _ = rand.Read(id)
	k.clusterID = "A" + base64.RawURLEncoding.EncodeToString(id)[1:] // none begins with a dash
	for i := range brokers {
		n := &kafkaNode{id: i + 1, dir: filepath.Join(k.dir, fmt.Sprintf("broker%d", i+1))}
		for _, port := range []*int{&n.client, &n.internal, &n.controller} {
			free, err := freePort()
			if err != nil {
				return err
			}
			*port = free
		}
		n.advertised = fmt.Sprintf("127.0.0.1:%d", n.client)
		if i < len(o.Advertise) {
			n.advertised = o.Advertise[i]
		}
		k.nodes = append(k.nodes, n)
	}
	var certs *Certificates
	if o.TLS {
		var err error
		if certs, err = NewCertificates(k.dir); err != nil {
			return err
		}
		k.CAFile = certs.CAFile
	}
	for _, n := range k.nodes {
		if err := k.configure(n, o, certs); err != nil {
			return err
		}
	}
	return os.WriteFile(k.logConfiguration(), []byte(logConfiguration), 0o644)
}

func (k *Kafka) logConfiguration() string { return filepath.Join(k.dir, "log4j2.xml") }

func (k *Kafka) command(ctx context.Context, heapMB int, arguments ...string) *exec.Cmd {
	jvm := []string{
		fmt.Sprintf("-Xmx%dm", heapMB), "-Dlog4j2.configurationFile=" + k.logConfiguration(),
		"-cp", filepath.Join(k.jars, "*"),
	}
	cmd := exec.CommandContext(ctx, k.java, append(jvm, arguments...)...)
	cmd.Dir = k.dir
	return cmd
}

// format writes the metadata that a new node's directory begins with, among it the SCRAM users.
func (k *Kafka) format(ctx context.Context, o KafkaOptions) error {
	var group errgroup.Group
	for _, n := range k.nodes {
		arguments := []string{
			"kafka.tools.StorageTool", "format", "--cluster-id", k.clusterID,
			"--config", n.properties(),
		}
		if o.SASL {
			for _, mechanism := range []string{"SCRAM-SHA-256", "SCRAM-SHA-512"} {
				arguments = append(arguments, "--add-scram", fmt.Sprintf("%s=[name=%s,password=%s]",
					mechanism, BrokerUser, BrokerPassword))
			}
		}
		group.Go(func() error {
			if out, err := k.command(ctx, 128, arguments...).CombinedOutput(); err != nil {
				return fmt.Errorf("format broker %d: %w\n%s", n.id, err, out)
			}
			return nil
		})
	}
	return group.Wait()
}

// Addrs returns the addresses that the brokers listen on, in the order of their numbers from 1,
// the same over Stop, Kill and Start.
func (k *Kafka) Addrs() []string {
	var addrs []string
	for _, n := range k.nodes {
		addrs = append(addrs, fmt.Sprintf("127.0.0.1:%d", n.client))
	}
	return addrs
}

// Bootstrap returns the addresses that clients start from: those that the brokers advertise.
func (k *Kafka) Bootstrap() []string {
	var addrs []string
	for _, n := range k.nodes {
		addrs = append(addrs, n.advertised)
	}
	return addrs
}

// AdminAddrs returns addresses of the same brokers for a test's own tools: without TLS, password
// and proxy.
func (k *Kafka) AdminAddrs() []string {
	var addrs []string
	for _, n := range k.nodes {
		addrs = append(addrs, fmt.Sprintf("127.0.0.1:%d", n.internal))
	}
	return addrs
}

// LogFile returns the log of a broker, by its number from 1.
func (k *Kafka) LogFile(broker int) string { return k.nodes[broker-1].log() }

// each runs fn for the brokers of those numbers, all where none is given, at the same time: a broker
// that stops as the last one of a quorum waits for minutes. Locks k.
func (k *Kafka) each(brokers []int, fn func(*kafkaNode) error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(brokers) == 0 {
		for _, n := range k.nodes {
			brokers = append(brokers, n.id)
		}
	}
	errs := make([]error, len(brokers))
	var group errgroup.Group
	for i, id := range brokers {
		if id < 1 || id > len(k.nodes) {
			return fmt.Errorf("no broker %d: have 1 to %d", id, len(k.nodes))
		}
		group.Go(func() error {
			errs[i] = fn(k.nodes[id-1])
			return nil
		})
	}
	_ = group.Wait() // every error is in errs
	return errors.Join(errs...)
}

// Start starts those of the brokers that do not run, on the same ports and files, and waits until
// they take requests.
func (k *Kafka) Start(ctx context.Context, brokers ...int) error {
	ctx, cancel := context.WithTimeout(ctx, kafkaReadyAfter)
	defer cancel()
	return k.each(brokers, func(n *kafkaNode) error {
		if k.closed {
			return errors.New("the Kafka cluster is closed")
		}
		if n.process != nil && n.process.alive() {
			return nil
		}
		log, err := os.OpenFile(n.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		defer func() { _ = log.Close() }() // the child has its own
		cmd := k.command(context.WithoutCancel(ctx), k.heapMB, "kafka.Kafka", n.properties())
		cmd.Stdout, cmd.Stderr = log, log
		if n.process, err = startProcess(cmd, k.dir, syscall.SIGKILL); err != nil {
			return err
		}
		if err := n.awaitReady(ctx); err != nil {
			return fmt.Errorf("broker %d did not start: %w\n%w", n.id, err, tailError(n.log()))
		}
		return nil
	})
}

// awaitReady asks the broker for the cluster's brokers until it is among them.
func (n *kafkaNode) awaitReady(ctx context.Context) error {
	c, err := kgo.NewClient(kgo.SeedBrokers(fmt.Sprintf("127.0.0.1:%d", n.internal)),
		kgo.MetadataMinAge(10*time.Millisecond), kgo.RequestRetries(0))
	if err != nil {
		return err
	}
	defer c.Close()
	admin := kadm.NewClient(c)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		metadata, err := admin.BrokerMetadata(ctx)
		if err == nil {
			for _, id := range metadata.Brokers.NodeIDs() {
				if int(id) == n.id {
					return nil
				}
			}
		}
		select {
		case <-n.process.done:
			return fmt.Errorf("the broker ended: %w", n.process.err)
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// Stop shuts brokers down in order and waits; when ctx ends first they are killed.
func (k *Kafka) Stop(ctx context.Context, brokers ...int) error {
	return k.each(brokers, func(n *kafkaNode) error {
		if n.process == nil {
			return nil
		}
		return n.process.stop(ctx, syscall.SIGTERM)
	})
}

// Kill ends brokers with SIGKILL and returns when they are gone.
func (k *Kafka) Kill(brokers ...int) error {
	return k.each(brokers, func(n *kafkaNode) error {
		if n.process == nil {
			return nil
		}
		return n.process.kill()
	})
}

// Close ends all brokers and removes their files. Nothing that they hold is wanted any more: they
// are killed, not shut down. It may be called again.
func (k *Kafka) Close() error {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	return errors.Join(k.Kill(), removeRunDir(k.dir))
}
