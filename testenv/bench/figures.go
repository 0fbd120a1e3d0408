package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidemark-cdc/tidemark/testenv"
)

// bench is a run of the program.
type bench struct {
	pg      *testenv.Postgres
	dir     string // logs of children
	binary  string // of the program; "" until it is built
	reader  string // path of pg_recvlogical; "": the reader in Go
	quick   bool
	runs    int
	checks  bool   // the first of a figure's runs is read and held against the table
	profile string // directory for CPU profiles; "": none
	report  *Report
	with    map[string]string // settings of every connector
	compare map[string]string // of the one that stands in for the baseline; empty: none
	failed  error             // of the parts that could not be measured
	n       int               // children so far: each has a name of its own
}

// job is a child's job on a copy of a shape's slot.
func (b *bench) job(p prepared, slot string) job {
	b.n++
	name := fmt.Sprintf("run%d", b.n)
	j := job{
		Host: b.pg.Host, Port: b.pg.Port, User: b.pg.User, Password: b.pg.Password,
		Slot: slot, Publication: p.publication, Table: p.name, Partitions: 6, Connector: name,
		Settings: maps.Clone(b.with), Until: p.end, Rows: p.rows, Full: p.update != "", Log: filepath.Join(b.dir, name+".log"),
	}
	if b.profile != "" {
		j.CPUProfile = filepath.Join(b.profile, p.name+"-"+name+".pprof")
	}
	return j
}

// connect runs the connector on a copy of a shape's slot.
func (b *bench) connect(
	ctx context.Context, p prepared, change func(*job),
) (r run, err error) {
	err = withCopy(ctx, b.pg, p.slot, func(slot string) error {
		j := b.job(p, slot)
		if change != nil {
			change(&j)
		}
		r, err = spawn(ctx, j)
		return err
	})
	return r, err
}

// pairs runs baseline and connector alternately.
func (b *bench) pairs(
	ctx context.Context, p prepared, change func(*job),
) (connector, other series, err error) {
	for range b.runs {
		r, err := b.other(ctx, p, change)
		if err != nil {
			return nil, nil, err
		}
		other = append(other, r)
		r, err = b.connect(ctx, p, func(j *job) {
			j.Check = b.checks && len(connector) == 0
			if change != nil {
				change(j)
			}
		})
		if err != nil {
			return nil, nil, err
		}
		connector = append(connector, r)
	}
	return connector, other, nil
}

// other runs what the connector is compared with.
func (b *bench) other(ctx context.Context, p prepared, change func(*job)) (r run, err error) {
	if len(b.compare) > 0 {
		return b.connect(ctx, p, func(j *job) {
			maps.Copy(j.Settings, b.compare)
			if change != nil {
				change(j)
			}
		})
	}
	err = withCopy(ctx, b.pg, p.slot, func(slot string) error {
		r, err = baseline(ctx, b.pg, p, slot, b.reader)
		return err
	})
	return r, err
}

// streaming measures one shape against the server's own client.
func (b *bench) streaming(
	ctx context.Context, p prepared, name string, target float64, change func(*job),
) (Figure, error) {
	ours, other, err := b.pairs(ctx, p, change)
	if err != nil {
		return Figure{}, err
	}
	f := Figure{
		Name: name, What: p.what, Unit: "rows/s", Against: b.against(), Target: target,
		Runs: ours, Others: other,
		Note: fmt.Sprintf("%d rows; CPU seconds a million rows %.2f (the baseline %.2f); "+
			"peak memory %.0f MiB; streaming after %.2f s, which is in the figure%s", p.rows,
			ours.median(cpu)/float64(p.rows)*1e6, other.median(cpu)/float64(p.rows)*1e6,
			ours.median(rss)/(1<<20), ours.median(started), checked(ours)),
	}
	f.Least, f.Middle, f.Most = ours.rate(p.rows)
	_, f.Other, _ = other.rate(p.rows)
	f.Ratio = f.Middle / f.Other
	return f, nil
}

func (b *bench) against() string {
	if len(b.compare) == 0 {
		return "pg_recvlogical"
	}
	var all []string
	for _, key := range slices.Sorted(maps.Keys(b.compare)) {
		all = append(all, key+"="+b.compare[key])
	}
	return "with " + strings.Join(all, ", ")
}

// checked tells the report's reader that the records were held against the table.
func checked(s series) string {
	for _, r := range s {
		if r.Checked > 0 {
			return fmt.Sprintf("; the checker of the proofs read the %d records of one run and found "+
				"order, count and fold right", r.Checked)
		}
	}
	return ""
}

// kafka measures streaming to a real broker, which is a process of its own on the same processors.
func (b *bench) kafka(ctx context.Context, p prepared) (err error) {
	k, err := testenv.StartKafka(ctx, testenv.KafkaOptions{})
	if err != nil {
		// The figure is left out, not the others: the machine has no Java, or no way to the jars.
		fmt.Fprintln(os.Stderr, "bench: no figure with a real Kafka:", err)
		return nil
	}
	defer func() { err = errors.Join(err, k.Close()) }()
	f, err := b.streaming(ctx, p, "streaming, real Kafka", 1.5, func(j *job) {
		j.Brokers = k.Bootstrap()
	})
	if err != nil {
		return err
	}
	f.What += "; the broker is Apache Kafka on the same cores, and not in the CPU and memory given"
	b.add(f)
	return nil
}

// limit compares a shape's streaming with the server's own decoding.
func (b *bench) limit(ctx context.Context, p prepared, of Figure) error {
	var s series
	for range b.runs {
		r, err := decoding(ctx, b.pg, p)
		if err != nil {
			return err
		}
		s = append(s, r)
	}
	f := Figure{
		Name: "distance to the limit, " + p.name, Unit: "rows/s", Against: "server's decoding",
		What:  "the same over pg_logical_slot_peek_binary_changes, decoding without a network",
		Least: of.Least, Middle: of.Middle, Most: of.Most, Target: 0.5, Others: s,
	}
	_, f.Other, _ = s.rate(p.rows)
	f.Ratio = f.Middle / f.Other
	b.add(f)
	return nil
}

// snapshot compares reading a table with COPY alone.
func (b *bench) snapshot(ctx context.Context, p prepared) error {
	var ours, other series
	for range b.runs {
		r, err := copyOut(ctx, b.pg, p.name)
		if err != nil {
			return err
		}
		other = append(other, r)
		j := b.job(p, "")
		j.Until, j.Check = "", b.checks && len(ours) == 0
		r, err = spawn(ctx, j)
		if err := errors.Join(err, dropSlot(ctx, b.pg, j.Connector)); err != nil {
			return err
		}
		r.Seconds -= r.Started // making the slot is not reading
		ours = append(ours, r)
	}
	f := Figure{
		Name: "snapshot", Unit: "rows/s", Against: "COPY TO STDOUT", Target: 0.35,
		What: "one table read to the last acknowledgement, one reader", Runs: ours, Others: other,
		Note: fmt.Sprintf("%d rows; CPU seconds a million rows %.2f%s", p.rows,
			ours.median(cpu)/float64(p.rows)*1e6, checked(ours)),
	}
	f.Least, f.Middle, f.Most = ours.rate(p.rows)
	_, f.Other, _ = other.rate(p.rows)
	f.Ratio = f.Middle / f.Other
	b.add(f)
	return nil
}

// memory passes one large transaction through a connector whose broker is in another process.
func (b *bench) memory(ctx context.Context, p prepared, on servers) error {
	r, err := b.connect(ctx, p, func(j *job) {
		j.Brokers, j.Registry = on.brokers, on.registry
	})
	if err != nil {
		return err
	}
	mib := float64(r.RSS) / (1 << 20)
	b.add(Figure{
		Name: "memory", Unit: "MiB", Least: mib, Middle: mib, Most: mib, Target: 200, AtMost: true,
		What: fmt.Sprintf("peak resident memory while one transaction of %d rows passes, "+
			"max.queue.bytes 64 MiB, broker in another process", p.rows),
		Note: fmt.Sprintf("%s rows/s; CPU seconds a million rows %.2f, without the broker",
			number(float64(p.rows)/r.Seconds), r.CPU/float64(p.rows)*1e6),
		Runs: series{r},
	})
	return nil
}

func (b *bench) add(f Figure) {
	b.report.Figures = append(b.report.Figures, f)
	line := fmt.Sprintf("%-34s %10s %-12s", f.Name, number(f.Middle), f.Unit)
	if f.Against != "" {
		line += fmt.Sprintf(" %.2f of %s (%s)", f.Ratio, f.Against, number(f.Other))
	}
	if s := f.short(); s != "" {
		line += ": " + s
	}
	fmt.Fprintln(os.Stderr, line)
	if f.Note != "" {
		fmt.Fprintln(os.Stderr, "   ", f.Note)
	}
}
