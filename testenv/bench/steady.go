package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-cdc/tidemark/testenv"
)

// servers are a broker and a registry that are not in the connector's process.
type servers struct {
	brokers  []string
	registry string
	admin    *kadm.Client
}

// carrier starts something that takes a slot's rows to a topic of a job.
type carrier func(ctx context.Context, j job, topic string) (*testenv.Program, error)

// carry runs a carrier on a slot and ends it after f.
func (b *bench) carry(
	ctx context.Context, on servers, start carrier, p prepared, slot string,
	f func(running *testenv.Program, topic string) error,
) error {
	j := b.job(p, slot)
	j.Brokers, j.Registry = on.brokers, on.registry
	topic := j.Connector + ".public." + j.Table
	if _, err := on.admin.CreateTopic(ctx, int32(j.Partitions), 1, nil, topic); err != nil {
		return err
	}
	running, err := start(ctx, j, topic)
	if err != nil {
		return err
	}
	if err = f(running, topic); err != nil {
		log, _ := os.ReadFile(running.LogFile)
		err = fmt.Errorf("%w\n%s", err, tail(string(log), 20))
	}
	return errors.Join(err, running.Close())
}

func (b *bench) tidemark(ctx context.Context, j job, _ string) (*testenv.Program, error) {
	return b.startTidemark(ctx, j)
}

func (b *bench) bareReader(_ context.Context, j job, topic string) (*testenv.Program, error) {
	spec, err := json.Marshal(bareJob{
		URL: b.pg.URL(database), Slot: j.Slot, Publication: j.Publication, Topic: topic,
		Brokers: j.Brokers,
	})
	if err != nil {
		return nil, err
	}
	return testenv.StartProgram("reader", func(string) (*exec.Cmd, error) {
		cmd := exec.Command(os.Args[0], "bare")
		cmd.Stdin = bytes.NewReader(spec)
		return cmd, nil
	})
}

// start measures from the start of the process, as a user starts it, to a waiting slot's first event
// in the topic; and what a connector uses while nothing happens.
func (b *bench) start(ctx context.Context, p prepared, on servers) error {
	var s, idleness series
	for range b.runs {
		err := withCopy(ctx, b.pg, p.slot, func(slot string) error {
			return b.carry(ctx, on, b.tidemark, p, slot, func(
				running *testenv.Program, topic string,
			) error {
				at, err := firstEvent(ctx, on.admin, running, topic)
				s = append(s, run{Seconds: at})
				return err
			})
		})
		if err != nil {
			return err
		}
	}
	v := s.by(seconds)
	b.add(Figure{
		Name: "start", What: "from the start of the process to a waiting slot's first event in the " +
			"topic, broker and registry in another process",
		Unit: "s", Target: 1, AtMost: true, Runs: s,
		Least: v[0], Middle: s.median(seconds), Most: v[len(v)-1],
	})
	idle := 10 * time.Second
	if b.quick {
		idle = 5 * time.Second
	}
	r, err := b.connect(ctx, p, func(j *job) {
		j.Brokers, j.Registry, j.Idle = on.brokers, on.registry, idle
	})
	if err != nil {
		return err
	}
	idleness = append(idleness, r)
	share := r.IdleCPU / idle.Seconds() * 100
	b.add(Figure{
		Name: "idle", What: "CPU of a connector to which nothing happens", Unit: "% of a core",
		Least: share, Middle: share, Most: share, Target: 1, AtMost: true, Runs: idleness,
	})
	return nil
}

// firstEvent waits until the topic holds something, and returns how long after the process's start.
func firstEvent(
	ctx context.Context, admin *kadm.Client, running *testenv.Program, topic string,
) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	for {
		have, err := held(ctx, admin, topic)
		if have > 0 || err != nil {
			return time.Since(running.Started).Seconds(), err
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("no first event: %w", ctx.Err())
		case <-time.After(firstLook):
		}
		if err := running.Ended(); err != nil {
			return 0, err
		}
	}
}

// latency times the way of single rows, beside that of the bare reader's.
func (b *bench) latency(ctx context.Context, on servers) error {
	s := shapeOf("single")
	s.name = "steady"
	p, err := prepare(ctx, b.pg, s, 1)
	if err != nil {
		return err
	}
	load := latencyLoad{rate: 1000, warm: 2 * time.Second, last: 10 * time.Second, from: 1000}
	pairs := min(b.runs, 3)
	if b.quick {
		load.last, pairs = 5*time.Second, 1
	}
	var ours, bare []delays
	for range pairs {
		for _, c := range []struct {
			start carrier
			all   *[]delays
		}{{b.bareReader, &bare}, {b.tidemark, &ours}} {
			err := freshSlot(ctx, b.pg, p, load.from-1, func(slot string) error {
				return b.carry(ctx, on, c.start, p, slot, func(
					running *testenv.Program, topic string,
				) error {
					d, err := latency(ctx, b.pg, p.name, on.brokers, topic, load, running.Ended)
					*c.all = append(*c.all, d)
					return err
				})
			})
			if err != nil {
				return err
			}
			load.from += 1_000_000
		}
	}
	b.addLatency("p50", ours, bare, func(d delays) float64 { return d.P50 })
	b.addLatency("p99", ours, bare, func(d delays) float64 { return d.P99 })
	return b.discard(ctx, p)
}

func (b *bench) addLatency(name string, ours, bare []delays, value func(delays) float64) {
	var s, others series
	rate := 0.0
	for i := range ours {
		s = append(s, run{Seconds: value(ours[i])})
		others = append(others, run{Seconds: value(bare[i])})
		rate += ours[i].Rate / float64(len(ours))
	}
	v := s.by(seconds)
	f := Figure{
		Name: "latency " + name, Unit: "ms", Against: "bare reader, linger 0", Target: 1.5,
		AtMost: true, Runs: s, Others: others,
		What: "from the acknowledgement of a single row's commit to its consumer, at 1 000 " +
			"transactions a second; broker and consumer in another process",
		Least: v[0] * 1000, Middle: s.median(seconds) * 1000, Most: v[len(v)-1] * 1000,
		Other: others.median(seconds) * 1000,
		Note:  fmt.Sprintf("%.0f commits a second were reached", rate),
	}
	f.Ratio = f.Middle / f.Other
	b.add(f)
}

// withBroker measures the figures whose broker is in this process, not in the connector's.
func (b *bench) withBroker(ctx context.Context, o *options) (err error) {
	if !o.wants("start") && !o.wants("memory") && !o.wants("latency") && !o.wants("tables") {
		return nil
	}
	broker, err := testenv.StartFakeBroker(testenv.FakeBrokerOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, broker.Close()) }()
	registry, err := testenv.StartFakeRegistry(testenv.FakeRegistryOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, registry.Close()) }()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.Addrs()...))
	if err != nil {
		return err
	}
	defer client.Close()
	on := servers{broker.Addrs(), registry.URL, kadm.NewClient(client)}
	if o.wants("start") {
		s := shapeOf("single")
		s.name = "first"
		b.part(ctx, "start", func() error { return b.onShape(ctx, s, 10, on, b.start) })
	}
	if o.wants("latency") {
		b.part(ctx, "latency", func() error { return b.latency(ctx, on) })
	}
	if o.wants("tables") && (!o.quick || o.only != "") {
		b.part(ctx, "tables", func() error { return b.tables(ctx, on, o.rows) })
	}
	if !o.wants("memory") {
		return nil
	}
	s, rows := shapeOf("stream"), 5_000_000
	if b.quick {
		rows = 500_000
	}
	if o.rows > 0 {
		rows = o.rows
	}
	s.name, s.perTx = "large", rows
	b.part(ctx, "memory", func() error { return b.onShape(ctx, s, rows, on, b.memory) })
	return nil
}

// onShape prepares a shape, measures something of it, and discards it.
func (b *bench) onShape(
	ctx context.Context, s shape, rows int, on servers,
	measure func(context.Context, prepared, servers) error,
) error {
	p, err := prepare(ctx, b.pg, s, rows)
	if err != nil {
		return err
	}
	if err := measure(ctx, p, on); err != nil {
		return err
	}
	return b.discard(ctx, p)
}
