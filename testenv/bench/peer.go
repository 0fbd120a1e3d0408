package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-cdc/tidemark/testenv"
)

// steady is what a contender did under a steady load, and after it.
type steady struct {
	delays
	Idle float64 `json:"idle_percent_of_a_core"`
}

// peerRows are how many rows wait for the contenders; a quick run has a quarter.
const (
	peerStream = 800_000
	peerSingle = 240_000
)

// peer measures Debezium under Kafka Connect beside Tidemark: same slots, same broker, same
// registry, same observer.
func (b *bench) peer(ctx context.Context, o *options) (err error) {
	if runtime.GOOS != "linux" {
		return errors.New("the comparison reads the kernel's /proc: it needs Linux")
	}
	p := &peers{
		bench: b, rows: map[string]map[string][]watched{}, delays: map[string]steady{},
	}
	if o.runs == 0 {
		p.runs = 3
		if o.quick {
			p.runs = 1
		}
	}
	if p.kafka, err = testenv.StartKafka(ctx, testenv.KafkaOptions{}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.kafka.Close()) }()
	if p.registry, err = testenv.StartRegistry(ctx, testenv.RegistryOptions{}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.registry.Close()) }()
	if p.client, err = kgo.NewClient(kgo.SeedBrokers(p.kafka.Bootstrap()...)); err != nil {
		return err
	}
	defer p.client.Close()
	p.admin = kadm.NewClient(p.client)
	b.report.Baseline = "Debezium 3.6.1.Final under Kafka Connect 4.3.1, standalone, on " +
		"Apache Kafka 4.3.1"
	if err := p.measure(ctx, o); err != nil {
		return err
	}
	p.figures()
	return nil
}

func (p *peers) measure(ctx context.Context, o *options) error {
	for _, size := range []struct {
		shape string
		rows  int
	}{{"stream", peerStream}, {"single", peerSingle}} {
		snapshot := size.shape == "stream" && o.wants("snapshot")
		if !o.wants(size.shape) && !snapshot {
			continue
		}
		s := shapeOf(size.shape)
		rows := size.rows
		if o.quick {
			rows /= 4
		}
		if o.rows > 0 {
			rows = o.rows
		}
		ready, err := prepare(ctx, p.pg, s, rows/s.perTx*s.perTx)
		if err != nil {
			return err
		}
		if o.wants(size.shape) {
			if err := p.race(ctx, size.shape, ready, true, tidemark, dbzJSON, dbzAvro); err != nil {
				return err
			}
		}
		if snapshot {
			if err := p.race(ctx, "snapshot", ready, false, tidemark, dbzJSON, dbzAvro); err != nil {
				return err
			}
		}
		if err := p.discard(ctx, ready); err != nil {
			return err
		}
	}
	if !o.wants("latency") {
		return nil
	}
	all := []contender{tidemark, dbzJSON}
	if !o.quick {
		all = append(all, dbzAvro, dbzDefaults)
	}
	return p.latencies(ctx, all...)
}

// spread returns least, middle and most of what value says of a contender's runs.
func spread(of []watched, value func(watched) float64) (least, middle, most float64) {
	var s series
	for _, w := range of {
		s = append(s, run{Seconds: value(w)})
	}
	v := s.by(seconds)
	if len(v) == 0 {
		return 0, 0, 0
	}
	return v[0], s.median(seconds), v[len(v)-1]
}

// peerFigure compares one value of Tidemark's runs with that of another's.
type peerFigure struct {
	race, name, unit, what string
	against                contender
	target                 float64
	atMost                 bool
	value                  func(watched) float64
}

func rowsPerSecond(w watched) float64 { return float64(w.Rows) / w.Took }
func cpuPerMillion(w watched) float64 { return w.CPU / float64(w.Rows) * 1e6 }
func peakMiB(w watched) float64       { return float64(w.RSS) / (1 << 20) }
func firstAfter(w watched) float64    { return w.First }

// The targets are the and the design's.
var peerFigures = []peerFigure{
	{
		race: "stream", name: "streaming", unit: "rows/s", against: dbzJSON, target: 5,
		what: "1 000 rows a transaction", value: rowsPerSecond,
	},
	{
		race: "stream", name: "streaming", unit: "rows/s", against: dbzAvro, target: 10,
		what: "1 000 rows a transaction", value: rowsPerSecond,
	},
	{
		race: "single", name: "streaming, single", unit: "rows/s", against: dbzJSON, target: 5,
		what: "one row a transaction", value: rowsPerSecond,
	},
	{
		race: "single", name: "streaming, single", unit: "rows/s", against: dbzAvro, target: 10,
		what: "one row a transaction", value: rowsPerSecond,
	},
	{
		race: "snapshot", name: "snapshot", unit: "rows/s", against: dbzJSON, target: 5,
		what: "the table's rows", value: rowsPerSecond,
	},
	{
		race: "snapshot", name: "snapshot", unit: "rows/s", against: dbzAvro,
		what: "the table's rows", value: rowsPerSecond,
	},
	{
		race: "stream", name: "CPU", unit: "s a million rows", against: dbzJSON, target: 0.1,
		atMost: true, what: "streaming, from the first event to the last", value: cpuPerMillion,
	},
	{
		race: "stream", name: "CPU", unit: "s a million rows", against: dbzAvro, target: 0.1,
		atMost: true, what: "streaming, from the first event to the last", value: cpuPerMillion,
	},
	{
		race: "stream", name: "memory", unit: "MiB", against: dbzJSON, target: 0.1,
		atMost: true, what: "largest resident set while streaming", value: peakMiB,
	},
	{
		race: "stream", name: "memory", unit: "MiB", against: dbzAvro, target: 0.1,
		atMost: true, what: "largest resident set while streaming", value: peakMiB,
	},
	{
		race: "stream", name: "start", unit: "s", against: dbzJSON, target: 0.2,
		atMost: true, what: "start of the process to a waiting slot's first event in the topic",
		value: firstAfter,
	},
}

// figures makes the report of what was measured.
func (p *peers) figures() {
	for _, f := range peerFigures {
		runs := p.rows[f.race]
		if len(runs[tidemark.name]) == 0 || len(runs[f.against.name]) == 0 {
			continue
		}
		out := Figure{
			Name: f.name, What: f.what, Unit: f.unit, Against: f.against.name,
			Target: f.target, AtMost: f.atMost,
		}
		out.Least, out.Middle, out.Most = spread(runs[tidemark.name], f.value)
		_, out.Other, _ = spread(runs[f.against.name], f.value)
		out.Ratio = out.Middle / out.Other
		p.add(out)
	}
	p.latencyFigures()
	p.report.Races, p.report.Steady = p.rows, p.delays
}

func (p *peers) latencyFigures() {
	ours, measured := p.delays[tidemark.name]
	if !measured {
		return
	}
	for _, c := range []contender{dbzJSON, dbzAvro, dbzDefaults} {
		theirs, ok := p.delays[c.name]
		if !ok {
			continue
		}
		p50, p99 := 1.0/4, 1.0/3
		if c.name != dbzJSON.name {
			p50, p99 = 0, 0 // reported: the targets are for the tuned one
		}
		for _, q := range []struct {
			name          string
			ours, theirs  float64
			target, scale float64
		}{
			{"latency p50", ours.P50, theirs.P50, p50, 1000},
			{"latency p99", ours.P99, theirs.P99, p99, 1000},
		} {
			v := q.ours * q.scale
			p.add(Figure{
				Name: q.name, Unit: "ms", Against: c.name, Target: q.target, AtMost: true,
				What:  "commit to consumer at 200 commits/s",
				Least: v, Middle: v, Most: v, Other: q.theirs * q.scale, Ratio: q.ours / q.theirs,
			})
		}
	}
	theirs := p.delays[dbzJSON.name].Idle
	p.add(Figure{
		Name: "idle", Unit: "% of a core", Least: ours.Idle, Middle: ours.Idle, Most: ours.Idle,
		Target: 1, AtMost: true, What: "while nothing happens",
		Note: fmt.Sprintf("Debezium, JSON: %.1f %%", theirs),
	})
}

// peerSettings tells the page's reader what the two were given.
func peerSettings() string {
	return fmt.Sprintf("Debezium, tuned: `max.batch.size` %s, `max.queue.size` %s, "+
		"`poll.interval.ms` %s; its producer lz4, `linger.ms` %s, `batch.size` %s; heap 2 GiB as "+
		"connect-standalone.sh gives it; JSON without schemas, Avro by Apicurio's converter. "+
		"Tidemark: its defaults (lz4, linger 5 ms, Avro). acks=all and %d partitions for all.",
		tuned["max.batch.size"], tuned["max.queue.size"], tuned["poll.interval.ms"],
		tuned["producer.override.linger.ms"], tuned["producer.override.batch.size"], 6)
}
