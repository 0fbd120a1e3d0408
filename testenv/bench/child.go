package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"runtime/pprof"
	"strconv"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/connector"
	"github.com/tidemark-cdc/tidemark/connector/metrics"
	"github.com/tidemark-cdc/tidemark/connector/source"
	"github.com/tidemark-cdc/tidemark/offsets"
	"github.com/tidemark-cdc/tidemark/testenv"
	"github.com/tidemark-cdc/tidemark/testenv/check"
)

// job is what the parent asks of a child, as JSON on its standard input.
type job struct {
	Host        string
	Port        int
	User        string
	Password    string
	Slot        string // "": one is made, and the snapshot is taken
	Publication string
	Table       string
	Partitions  int
	Brokers     []string // none: a broker in this process
	Registry    string
	Connector   string // its name, and the topic prefix
	Until       string // LSN: the run ends when a later position is confirmed; "" at end of snapshot
	Rows        int    // how many records the topic must then hold; 0: not looked at
	Idle        time.Duration
	Check       bool              // afterwards, the records are read and held against the table
	Full        bool              // the table's replica identity is FULL
	Settings    map[string]string // connector settings over the usual ones
	CPUProfile  string            // file
	Log         string            // file
}

// result is the child's answer, as JSON on its standard output.
type result struct {
	Seconds float64 // from Run to the last acknowledgement
	Started float64 // of those, until it streams (or reads its snapshot)
	CPU     float64 // of this process, in the same time
	IdleCPU float64 // seconds of CPU while it was idle
	Records int64   // in the topic, by the broker
	RSS     int64   // the largest so far, when the connector had ended
	Checked int     // how many records the checker read
}

// child is the entry of a child process.
func child(in io.Reader, out io.Writer) error {
	var j job
	if err := json.NewDecoder(in).Decode(&j); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	r, err := j.run(ctx)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(r)
}

func (j *job) run(ctx context.Context) (res result, err error) {
	if len(j.Brokers) == 0 {
		broker, err := testenv.StartFakeBroker(testenv.FakeBrokerOptions{})
		if err != nil {
			return res, err
		}
		defer func() { err = errors.Join(err, broker.Close()) }()
		j.Brokers = broker.Addrs()
	}
	if j.Registry == "" {
		registry, err := testenv.StartFakeRegistry(testenv.FakeRegistryOptions{})
		if err != nil {
			return res, err
		}
		defer func() { err = errors.Join(err, registry.Close()) }()
		j.Registry = registry.URL
	}
	file, err := j.settings()
	if err != nil {
		return res, err
	}
	if j.Slot != "" {
		if err := j.storePosition(ctx, file); err != nil {
			return res, fmt.Errorf("storing the copied slot's position: %w", err)
		}
	}
	if j.CPUProfile != "" {
		f, err := os.Create(j.CPUProfile)
		if err != nil {
			return res, err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		if err := pprof.StartCPUProfile(f); err != nil {
			return res, err
		}
		defer pprof.StopCPUProfile()
	}
	return j.connect(ctx, file)
}

// keys are the settings of the worker and of its connector.
func (j *job) keys() (worker, keys map[string]string) {
	keys = map[string]string{
		"topic.prefix": j.Connector, "database.hostname": j.Host,
		"database.port": strconv.Itoa(j.Port), "database.user": j.User,
		"database.password": j.Password, "database.dbname": database,
		"slot.name": j.Slot, "publication.name": j.Publication,
		"table.include.list":                        `public\.` + j.Table,
		"topic.creation.default.partitions":         strconv.Itoa(max(j.Partitions, 1)),
		"topic.creation.default.replication.factor": "1",
	}
	if j.Slot == "" {
		keys["slot.name"] = j.Connector
	} else {
		keys["snapshot.mode"] = "no_data"
	}
	maps.Copy(keys, j.Settings)
	return map[string]string{
		"bootstrap.servers": j.Brokers[0], "schema.registry.url": j.Registry, "http.listen": "",
		"offset.storage.topic": "bench-offsets-" + j.Connector,
	}, keys
}

func (j *job) settings() (*config.File, error) {
	worker, keys := j.keys()
	f, _, err := config.FromMaps(worker, map[string]map[string]string{j.Connector: keys})
	return f, err
}

// storePosition writes the offsets record that a connector on the original slot would have
// written: it resumes, as after any restart.
func (j *job) storePosition(ctx context.Context, f *config.File) error {
	c := f.Connectors[0]
	src, err := source.Connect(ctx, c.Database, "bench")
	if err != nil {
		return err
	}
	defer src.Close()
	slot, err := src.Slot(ctx, c.SlotName)
	if err != nil || slot == nil {
		return errors.Join(err, errors.New("the copied slot is not there"))
	}
	publication, err := src.Publication(ctx, c.Publication)
	if err != nil {
		return err
	}
	system, timeline, err := j.system(ctx)
	if err != nil {
		return err
	}
	store, err := offsets.OpenStore(ctx, offsets.StoreOptions{
		ClientOpts: []kgo.Opt{kgo.SeedBrokers(j.Brokers...)}, Topic: f.Worker.OffsetTopic,
		Connector: c.Name, Prefix: c.TopicPrefix, Partitions: 1, Replication: 1,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	defer store.Close()
	if err := store.Fence(ctx); err != nil {
		return err
	}
	return store.Save(ctx, offsets.Record{
		LSN: slot.ConfirmedFlush, SystemID: system, Timeline: timeline, Slot: c.SlotName,
		Publication: publication, Snapshot: &offsets.SnapshotState{Done: true},
	})
}

func (j *job) system(ctx context.Context) (id string, timeline uint32, err error) {
	pg := &testenv.Postgres{Host: j.Host, Port: j.Port, User: j.User, Password: j.Password}
	conn, err := pg.Connect(ctx, database)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = conn.Close(ctx) }() // read only
	err = conn.QueryRow(ctx, `SELECT (SELECT system_identifier FROM pg_control_system())::text,
		(SELECT timeline_id FROM pg_control_checkpoint())::bigint`).Scan(&id, &timeline)
	return id, timeline, err
}

// pollEvery is how often the connector is asked where it stands: the error of what is measured, and
// seldom enough not to show in it.
const pollEvery = 10 * time.Millisecond

// connect runs the connector until the job is done, and stops it.
func (j *job) connect(ctx context.Context, f *config.File) (res result, err error) {
	log, err := os.Create(j.Log)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	c := connector.New(f.Connectors[0], f.Worker, connector.Deps{
		Log:     slog.New(slog.NewTextHandler(log, nil)),
		Metrics: metrics.New(prometheus.NewRegistry()).Connector(j.Connector), Version: "bench",
	})
	work, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	began, cpu := time.Now(), cpuSeconds()
	go func() { done <- c.Run(work) }()
	for res.Seconds == 0 {
		select {
		case err := <-done:
			return res, fmt.Errorf("the connector ended by itself: %w", errors.Join(err, ctx.Err()))
		case <-time.After(pollEvery):
		}
		status := c.Status()
		if res.Started == 0 && status.State != string(connector.StateStarting) {
			res.Started = time.Since(began).Seconds()
		}
		if j.finished(status.State, status.Positions["confirmed"]) {
			res.Seconds, res.CPU = time.Since(began).Seconds(), cpuSeconds()-cpu
		}
	}
	if j.Idle > 0 {
		cpu = cpuSeconds()
		time.Sleep(j.Idle) // idleness is what is measured
		res.IdleCPU = cpuSeconds() - cpu
	}
	stop()
	if err := <-done; err != nil {
		return res, err
	}
	res.RSS = peakMemory()
	if err := j.count(ctx, &res); err != nil || !j.Check {
		return res, err
	}
	return res, j.check(ctx, &res)
}

// check lets the checker of the proofs read what the connector wrote: every row of the table is
// there, once, in order, and what a consumer makes of the topic is the table.
func (j *job) check(ctx context.Context, res *result) error {
	pg := &testenv.Postgres{Host: j.Host, Port: j.Port, User: j.User, Password: j.Password}
	identity := check.IdentityKey
	if j.Full {
		identity = check.IdentityFull
	}
	report, err := check.Run(ctx, check.Options{
		Brokers: j.Brokers, RegistryURL: j.Registry, PostgresURL: pg.URL(database),
		Prefix: j.Connector,
		Tables: []check.Table{{
			Schema: "public", Name: j.Table, Identity: identity, Key: []string{"id"},
			NotNull: []string{"id"},
		}},
	})
	if err != nil {
		return fmt.Errorf("the checker: %w", err)
	}
	if !report.OK() || report.Repeats > 0 {
		return fmt.Errorf("the checker: %s", report)
	}
	res.Checked = report.Records
	return nil
}

func (j *job) finished(state, confirmed string) bool {
	if j.Until == "" {
		return state == string(connector.StateStreaming)
	}
	have, err := offsets.ParseLSN(confirmed)
	if err != nil {
		return false
	}
	until, err := offsets.ParseLSN(j.Until)
	return err == nil && have > until
}

// count asks the broker how many records the table's topic holds, and fails unless it is what
// was sent: a fast connector that loses rows has no figure.
func (j *job) count(ctx context.Context, res *result) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(j.Brokers...))
	if err != nil {
		return err
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, j.Connector+".public."+j.Table)
	if err != nil {
		return err
	}
	ends.Each(func(o kadm.ListedOffset) { res.Records += o.Offset })
	if j.Rows > 0 && res.Records != int64(j.Rows) {
		return fmt.Errorf("the topic holds %d records, not %d", res.Records, j.Rows)
	}
	return ends.Error()
}

// peakMemory is the largest resident memory of this process so far.
func peakMemory() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return u.Maxrss * 1024
}

// cpuSeconds is what this process has used so far, user and system.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
