package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-cdc/tidemark/testenv"
)

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "child":
			exit(child(os.Stdin, os.Stdout))
		case "reader":
			exit(reader(os.Stdin))
		case "bare":
			exit(bare(os.Stdin))
		}
	}
	o := options{with: map[string]string{}, compare: map[string]string{}}
	flag.BoolVar(&o.quick, "quick", false, "fewer rows, shapes and runs")
	flag.IntVar(&o.runs, "runs", 0, "pairs of runs a figure; 0: 3 when quick, else 5")
	flag.IntVar(&o.rows, "rows", 0, "rows of each shape; 0: the shape's own")
	flag.StringVar(&o.only, "only", "", "figures to measure, parted by commas; empty: all")
	flag.StringVar(&o.json, "json", "", "file for the report as JSON")
	flag.StringVar(&o.markdown, "markdown", "", "file for the report as a page")
	flag.StringVar(&o.render, "render", "", "measure nothing: make the page of this JSON report")
	flag.StringVar(&o.profile, "profile", "", "directory for the connector's CPU profiles")
	flag.BoolVar(&o.peer, "peer", false, "the comparison with Debezium, and nothing else")
	flag.Var(settings(o.with), "set", "setting of the connector, key=value; more than once")
	flag.Var(settings(o.compare), "compare", "a connector with this key=value, more than once, "+
		"instead of pg_recvlogical")
	flag.StringVar(&o.gate, "gate", "", "fail when streaming is slower than this file allows")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	exit(o.run(ctx))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

type options struct {
	quick, peer                   bool
	runs, rows                    int
	only, json, markdown, profile string
	render, gate                  string
	with, compare                 map[string]string
}

// settings is a flag that is given once for each key=value.
type settings map[string]string

func (s settings) String() string { return "" }

func (s settings) Set(text string) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok {
		return fmt.Errorf("found %q, wanted key=value", text)
	}
	s[key] = value
	return nil
}

func (o *options) wants(name string) bool {
	return o.only == "" || slices.Contains(strings.Split(o.only, ","), name)
}

func (o *options) run(ctx context.Context) (err error) {
	if o.render != "" {
		return o.renderAgain()
	}
	dir, err := os.MkdirTemp("", "tidemark-bench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &bench{
		dir: dir, quick: o.quick, runs: o.runs, profile: o.profile, checks: o.gate == "",
		with: o.with, compare: o.compare,
		report: &Report{
			Commit: testenv.Commit(), Date: time.Now().UTC().Format(time.DateOnly), Quick: o.quick,
			Machine: testenv.Processor(), Cores: runtime.NumCPU(), Go: runtime.Version(), Load: load(),
		},
	}
	if b.runs == 0 {
		b.runs = 5
		if o.quick {
			b.runs = 3
		}
	}
	if b.reader = recvlogical(); b.reader == "" {
		b.report.Baseline = "a reader in Go that does the same reads: pg_recvlogical is not installed " +
			"(Debian: postgresql-client-15)"
		fmt.Fprintln(os.Stderr, "bench: pg_recvlogical is missing; baseline is", b.report.Baseline)
	} else {
		b.report.Baseline = "pg_recvlogical -o proto_version=1 -f /dev/null"
	}
	if b.pg, err = startServer(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.pg.Close()) }()
	if b.report.Server, err = scalar(ctx, b.pg, "SHOW server_version"); err != nil {
		return err
	}
	if o.gate != "" {
		return b.gate(ctx, o.gate)
	}
	if o.peer {
		b.report.Settings = peerSettings()
		err = b.peer(ctx, o)
	} else {
		err = b.measure(ctx, o)
	}
	if ctx.Err() != nil || len(b.report.Figures) == 0 { // an earlier page is worth more
		return errors.Join(err, b.failed)
	}
	if err != nil {
		b.report.Failed = append(b.report.Failed, "what comes after these")
	}
	b.report.LoadAfter = load()
	return errors.Join(err, b.failed, b.write(o))
}

// part measures one part. Its failure is told at the end: the figures of the others are kept.
func (b *bench) part(ctx context.Context, name string, measure func() error) {
	if ctx.Err() != nil {
		return
	}
	if err := measure(); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %s: %v\n", name, err)
		b.report.Failed = append(b.report.Failed, name)
		b.failed = errors.Join(b.failed, fmt.Errorf("%s: %w", name, err))
	}
}

// renderAgain makes the page of an earlier run.
func (o *options) renderAgain() error {
	text, err := os.ReadFile(o.render)
	if err != nil {
		return err
	}
	b := bench{report: &Report{}}
	if err := json.Unmarshal(text, b.report); err != nil {
		return err
	}
	return b.write(&options{markdown: o.markdown})
}

func (b *bench) write(o *options) error {
	b.report.markdown(os.Stdout)
	if o.markdown != "" {
		f, err := os.Create(o.markdown)
		if err != nil {
			return err
		}
		b.report.markdown(f)
		if err := f.Close(); err != nil {
			return err
		}
	}
	if o.json == "" {
		return nil
	}
	text, err := json.MarshalIndent(b.report, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(o.json, append(text, '\n'), 0o644)
}

// rowsOf is how many rows of a shape wait, 0: it is left out.
func (o *options) rowsOf(s shape) int {
	rows := s.rows
	if o.quick {
		rows = s.quick
	}
	if rows == 0 && o.only != "" && o.wants(s.name) {
		rows = 100_000
	}
	if o.rows > 0 && rows > 0 {
		rows = o.rows
	}
	return rows / s.perTx * s.perTx
}

func (b *bench) measure(ctx context.Context, o *options) error {
	for _, s := range shapes {
		rows := o.rowsOf(s)
		with := s.name == "stream" && o.wants("snapshot")
		withKafka := s.name == "stream" && o.wants("kafka") && (!o.quick || o.only != "")
		if rows == 0 || !o.wants(s.name) && !with && !withKafka {
			continue
		}
		p, err := prepare(ctx, b.pg, s, rows)
		if err != nil {
			return fmt.Errorf("preparing %s: %w", s.name, err)
		}
		if o.wants(s.name) {
			b.part(ctx, s.name, func() error { return b.shape(ctx, p) })
		}
		if with {
			b.part(ctx, "snapshot", func() error { return b.snapshot(ctx, p) })
		}
		if withKafka {
			b.part(ctx, "real Kafka", func() error { return b.kafka(ctx, p) })
		}
		if err := b.discard(ctx, p); err != nil {
			return err
		}
	}
	return b.withBroker(ctx, o)
}

// shape measures what there is to measure of a shape.
func (b *bench) shape(ctx context.Context, p prepared) error {
	target := 0.0
	if p.name == "stream" || p.name == "single" {
		target = 2
	}
	f, err := b.streaming(ctx, p, "streaming, "+p.name, target, nil)
	if err != nil {
		return err
	}
	b.add(f)
	if target == 0 {
		return nil
	}
	return b.limit(ctx, p, f)
}

// discard frees what a shape keeps on disk.
func (b *bench) discard(ctx context.Context, p prepared) error {
	if err := dropSlot(ctx, b.pg, p.slot); err != nil {
		return err
	}
	return b.pg.Exec(ctx, database, "DROP TABLE "+p.name)
}
