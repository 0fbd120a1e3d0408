package proof

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-cdc/tidemark/offsets"
	"github.com/tidemark-cdc/tidemark/testenv"
	"github.com/tidemark-cdc/tidemark/testenv/check"
	"github.com/tidemark-cdc/tidemark/testenv/workload"
)

// What every rig's connector is called.
const (
	connectorName = "c1"
	prefix        = "proof"
	offsetsTopic  = "tidemark-offsets"
	// Topics have this many partitions.
	partitions = 3
)

// Rig is a connector's surroundings: a database with a workload, brokers and a registry that
// somebody else started, and a configuration.
type Rig struct {
	Binary   string
	Postgres *testenv.Postgres
	Database string
	Brokers  []string // that the connector begins with
	Admin    []string // that checker and sampler use; none: Brokers
	Registry string
	Dir      string // of the configuration and the log
	Keys     map[string]string
	// ExactlyOnce is the connector's delivery mode, and what is demanded of it.
	ExactlyOnce bool
	// SamplerPatience is how long the sampler waits for a new session's record; 0 is its own.
	SamplerPatience time.Duration

	Workload *workload.Workload
	process  *Process
	http     string // host:port
}

// Prepare makes the workload's tables and writes the configuration.
func (r *Rig) Prepare(ctx context.Context, o workload.Options) error {
	o.URL = r.Postgres.URL(r.Database)
	r.Workload = workload.New(o)
	if err := r.Workload.Setup(ctx); err != nil {
		return err
	}
	// A port that is free now: the process takes it again after each kill.
	var err error
	if r.http, err = freeAddress(ctx); err != nil {
		return err
	}
	return os.WriteFile(r.Config(), []byte(r.yaml(r.http)), 0o600)
}

func freeAddress(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// Config is the configuration's file; Log is what the processes wrote.
func (r *Rig) Config() string { return filepath.Join(r.Dir, "tidemark.yaml") }

// Log is the file with the output of all processes of the rig, in order.
func (r *Rig) Log() string { return filepath.Join(r.Dir, "tidemark.log") }

// Slot is the replication slot's name: slots are the server's, not the database's.
func (r *Rig) Slot() string { return "s_" + r.Database }

func (r *Rig) yaml(http string) string {
	keys := map[string]string{
		"topic.prefix": prefix, "database.hostname": r.Postgres.Host,
		"database.port": fmt.Sprint(r.Postgres.Port), "database.user": r.Postgres.User,
		"database.password": r.Postgres.Password, "database.dbname": r.Database,
		"slot.name": r.Slot(), "table.include.list": workload.Schema + `\\..*`,
		"topic.creation.default.partitions":         fmt.Sprint(partitions),
		"topic.creation.default.replication.factor": "1",
		"publish.via.partition.root":                "true",
	}
	if r.ExactlyOnce {
		keys["exactly.once.support"] = "required"
	}
	for k, v := range r.Keys {
		keys[k] = v
	}
	var b strings.Builder
	fmt.Fprintf(&b, "worker:\n  bootstrap.servers: \"%s\"\n  schema.registry.url: %q\n"+
		"  http.listen: %q\n  offset.storage.topic: %q\n", strings.Join(r.Brokers, ","), r.Registry,
		http, offsetsTopic)
	fmt.Fprintf(&b, "connectors:\n  %s:\n", connectorName)
	for k, v := range keys {
		fmt.Fprintf(&b, "    %s: \"%s\"\n", k, v)
	}
	return b.String()
}

// Start starts the connector, with variables of the environment.
func (r *Rig) Start(env ...string) error {
	p, err := startProcess(r.Log(), env, r.Binary, "run", "-c", r.Config())
	r.process = p
	return err
}

// StartSecond starts another process of the same connector, as somebody does who forgot the first
// one. It is configured as the rig is now, and the caller's to end.
func (r *Rig) StartSecond(ctx context.Context, env ...string) (*Process, error) {
	http, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	second := filepath.Join(r.Dir, "second.yaml")
	if err := os.WriteFile(second, []byte(r.yaml(http)), 0o600); err != nil {
		return nil, err
	}
	return startProcess(filepath.Join(r.Dir, "second.log"), env, r.Binary, "run", "-c", second)
}

// Record is what the connector has stored; nil when there is nothing.
func (r *Rig) Record(ctx context.Context) (*offsets.Record, error) {
	s, err := offsets.OpenStore(ctx, offsets.StoreOptions{
		ClientOpts: []kgo.Opt{kgo.SeedBrokers(r.admin()...)}, Topic: offsetsTopic,
		Connector: connectorName, Prefix: prefix, MustExist: true,
	})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.Load(ctx)
}

// Process is the one that was started last.
func (r *Rig) Process() *Process { return r.process }

// Kill ends the connector with SIGKILL; it is no error if it has ended.
func (r *Rig) Kill() {
	if r.process != nil {
		r.process.Kill()
	}
}

// Streaming says whether the connector streams now.
func (r *Rig) Streaming(ctx context.Context) bool { return state(ctx, r.readyURL()) == "streaming" }

// AwaitStreaming waits until the connector streams.
func (r *Rig) AwaitStreaming(ctx context.Context) error {
	for {
		if r.Streaming(ctx) {
			return nil
		}
		if ended, err := r.process.Ended(); ended {
			return fmt.Errorf("the connector ended: %w\n%s", err, r.LogTail())
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the connector does not stream: %w\n%s", ctx.Err(), r.LogTail())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// LogTail is the end of what the processes wrote.
func (r *Rig) LogTail() string {
	b, err := os.ReadFile(r.Log())
	if err != nil {
		return err.Error()
	}
	return string(b[max(len(b)-4000, 0):])
}

func (r *Rig) admin() []string {
	if len(r.Admin) > 0 {
		return r.Admin
	}
	return r.Brokers
}

func (r *Rig) readyURL() string { return "http://" + r.http + "/readyz" }

// Sampler begins to look at the positions.
func (r *Rig) Sampler() *check.Sampler { return check.StartSampler(r.SamplerOptions()) }

// SamplerOptions are the sampler's, for tests that want it otherwise.
func (r *Rig) SamplerOptions() check.SamplerOptions {
	return check.SamplerOptions{
		PostgresURL: r.Postgres.URL("postgres"), Slot: r.Slot(), Brokers: r.admin(),
		OffsetsTopic: offsetsTopic, Connector: connectorName, Prefix: prefix, ReadyURL: r.readyURL(),
		Patience: r.SamplerPatience, ExactlyOnce: r.ExactlyOnce,
	}
}

// Check writes the markers, waits for them, and judges. drain bounds the wait.
func (r *Rig) Check(ctx context.Context, drain time.Duration) (*check.Report, error) {
	marker := fmt.Sprintf("marker %d", time.Now().UnixNano())
	if err := r.Workload.Markers(ctx, marker, partitions); err != nil {
		return nil, err
	}
	return check.Run(ctx, check.Options{
		Brokers: r.admin(), RegistryURL: r.Registry, PostgresURL: r.Postgres.URL(r.Database),
		Prefix: prefix, Tables: r.Workload.Tables(), Marker: marker,
		MarkerColumn: workload.NoteColumn, DrainTimeout: drain, Audit: workload.AuditTable,
		OffsetsTopic: offsetsTopic, Connector: connectorName, ReadCommitted: true,
		ExactlyOnce: r.ExactlyOnce,
	})
}
