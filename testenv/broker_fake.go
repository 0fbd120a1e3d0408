package testenv

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The user that brokers started with SASL know, for PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512 alike. It
// may do everything.
const (
	BrokerUser     = "tidemark"
	BrokerPassword = "tidemark-secret"
)

var saslMechanisms = []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}

// FakeBrokerOptions say how a broker in the process differs from the usual one. The zero value is
// one broker that keeps its topics in memory, without TLS, SASL and ACLs.
type FakeBrokerOptions struct {
	Brokers int  // 0 is 1
	Persist bool // topics and transactions outlive Stop and Start
	TLS     bool // clients must use TLS and trust CAFile
	SASL    bool // clients must authenticate, as BrokerUser or one of Options' kfake.User
	ACLs    bool // only BrokerUser may do everything; others as their kfake.User says

	// Advertise are the addresses that the brokers tell clients to connect to, one a broker, as
	// those of proxies that lead to Addrs. Empty: Addrs.
	Advertise []string

	// Options are kfake's own: topics to begin with, users with ACLs, broker settings.
	Options []kfake.Opt
}

// A FakeBroker is a cluster of Kafka brokers in this process, with transactions and groups. Topics are
// never created by asking for their metadata. Its methods may be called from several goroutines.
type FakeBroker struct {
	CAFile string // the authority of its certificate; "" without TLS

	dir     string // "" when nothing is kept in files
	options []kfake.Opt
	addrs   []string

	mu      sync.Mutex
	cluster *kfake.Cluster // nil while stopped
}

// StartFakeBroker starts brokers on free ports of loopback. The caller closes them.
func StartFakeBroker(o FakeBrokerOptions) (*FakeBroker, error) {
	b := &FakeBroker{}
	if o.Persist || o.TLS {
		dir, err := newRunDir("fakebroker")
		if err != nil {
			return nil, err
		}
		b.dir = dir
	}
	if err := b.prepare(o); err != nil {
		return nil, errors.Join(fmt.Errorf("start broker in the process: %w", err), b.Close())
	}
	if err := b.Start(); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func (b *FakeBroker) prepare(o FakeBrokerOptions) error {
	var ports []int
	for range max(o.Brokers, 1) {
		port, err := freePort()
		if err != nil {
			return err
		}
		ports = append(ports, port)
		b.addrs = append(b.addrs, fmt.Sprintf("127.0.0.1:%d", port))
	}
	b.options = append(b.options, kfake.Ports(ports...), kfake.DefaultNumPartitions(1))
	if len(o.Advertise) > 0 {
		b.options = append(b.options, kfake.ListenFn(b.advertise(o.Advertise)))
	}
	if o.Persist {
		b.options = append(b.options, kfake.DataDir(filepath.Join(b.dir, "data")))
	}
	if o.SASL || o.ACLs {
		b.options = append(b.options, kfake.EnableSASL())
		for _, mechanism := range saslMechanisms {
			b.options = append(b.options, kfake.Superuser(mechanism, BrokerUser, BrokerPassword))
		}
	}
	if o.ACLs {
		b.options = append(b.options, kfake.EnableACLs())
	}
	if o.TLS {
		certs, err := NewCertificates(b.dir)
		if err != nil {
			return err
		}
		config, err := certs.ServerConfig()
		if err != nil {
			return err
		}
		b.CAFile = certs.CAFile
		b.options = append(b.options, kfake.TLS(config))
	}
	b.options = append(b.options, o.Options...)
	return nil
}

// advertise returns a function that listens on an address of Addrs and claims to listen on the
// advertised one, which is where the cluster takes what it tells clients from.
func (b *FakeBroker) advertise(addrs []string) func(network, addr string) (net.Listener, error) {
	return func(network, addr string) (net.Listener, error) {
		l, err := net.Listen(network, addr)
		i := slices.Index(b.addrs, addr)
		if err != nil || i < 0 || i >= len(addrs) {
			return l, err
		}
		claimed, err := net.ResolveTCPAddr(network, addrs[i])
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		return claimingListener{Listener: l, claimed: claimed}, nil
	}
}

type claimingListener struct {
	net.Listener
	claimed net.Addr
}

func (l claimingListener) Addr() net.Addr { return l.claimed }

// Addrs returns the addresses that the brokers listen on, the same over Stop and Start.
func (b *FakeBroker) Addrs() []string { return append([]string(nil), b.addrs...) }

// Cluster returns the running cluster, for kfake's faults, followers and state; nil while stopped.
// Start makes another one.
func (b *FakeBroker) Cluster() *kfake.Cluster {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cluster
}

// Control installs fn for the next request of that key, or of any key when key is -1: fn may answer
// in the broker's place by returning true. It is dropped after its first answer, unless it calls
// Cluster().KeepControl.
func (b *FakeBroker) Control(key int16, fn func(kmsg.Request) (kmsg.Response, error, bool)) {
	cluster := b.Cluster()
	if key < 0 {
		cluster.Control(fn)
		return
	}
	cluster.ControlKey(key, fn)
}

// Stop ends the brokers and cuts all connections. What they held is lost unless Persist is set.
func (b *FakeBroker) Stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cluster != nil {
		b.cluster.Close()
		b.cluster = nil
	}
}

// Start starts the brokers again after Stop, on the same addresses. It does nothing while they run.
func (b *FakeBroker) Start() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cluster != nil {
		return nil
	}
	cluster, err := kfake.NewCluster(b.options...)
	if err != nil {
		return fmt.Errorf("start broker in the process: %w", err)
	}
	cluster.ControlKey(int16(kmsg.GetTelemetrySubscriptions), noTelemetry(cluster))
	b.cluster = cluster
	return nil
}

// noTelemetry makes a cluster ask clients for no metrics, as Kafka does unless somebody sets it up.
// kfake asks for all of them, of each client, once more when it closes.
func noTelemetry(cluster *kfake.Cluster) func(kmsg.Request) (kmsg.Response, error, bool) {
	return func(k kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		resp := k.ResponseKind().(*kmsg.GetTelemetrySubscriptionsResponse)
		resp.ClientInstanceID = k.(*kmsg.GetTelemetrySubscriptionsRequest).ClientInstanceID
		resp.PushIntervalMillis = 300_000
		return resp, nil, true
	}
}

// Close ends the brokers and removes their files. It may be called again.
func (b *FakeBroker) Close() error {
	b.Stop()
	if b.dir == "" {
		return nil
	}
	return removeRunDir(b.dir)
}
