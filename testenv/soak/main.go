// Command soak runs the connector for a long time under the mixed workload, on a real PostgreSQL,
// Kafka and registry, and does to all of them what happens to servers: kills, restarts, stalls and
// cuts, drawn from a seed. At the end the checker judges every record and every sampled position.
// `make soak SOAK=1h` is how it is called.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"time"

	"github.com/tidemark-cdc/tidemark/testenv/proof"
)

func main() {
	o := options{}
	flag.DurationVar(&o.length, "for", time.Hour, "how long the workload and the faults run")
	flag.StringVar(&o.mode, "mode", "both", "alo (at least once), eos (exactly once) or both in turn")
	flag.Uint64Var(&o.seed, "seed", 0, "of faults and workload; 0 draws one")
	flag.Float64Var(&o.rate, "rate", 400, "changes a second")
	flag.StringVar(&o.markdown, "markdown", "", "file for the report as a page; it is printed anyway")
	flag.StringVar(&o.tags, "tags", "", "build tags of the connector: for builds that must not pass")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ok, err := o.run(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

type options struct {
	length         time.Duration
	mode           string
	seed           uint64
	rate           float64
	markdown, tags string
}

// longestRound bounds what a checker holds in memory: rounds begin with new servers and an empty
// database, and each is judged by itself.
const longestRound = 30 * time.Minute

// rounds are the delivery modes of the rounds, in order, and how long each of them is.
func (o *options) rounds() (modes []string, each time.Duration, err error) {
	in := map[string][]string{"alo": {"alo"}, "eos": {"eos"}, "both": {"alo", "eos"}}[o.mode]
	if in == nil {
		return nil, 0, fmt.Errorf("mode %q: have alo, eos, both", o.mode)
	}
	if o.length <= 0 {
		return nil, 0, fmt.Errorf("-for %s: a soak takes some time", o.length)
	}
	for len(modes) == 0 || o.length > time.Duration(len(modes))*longestRound {
		modes = append(modes, in...)
	}
	return modes, o.length / time.Duration(len(modes)), nil
}

// run returns whether every promise was kept; an error means that it could not be found out.
func (o *options) run(ctx context.Context) (ok bool, err error) {
	if o.seed == 0 {
		o.seed = rand.Uint64N(1 << 32)
	}
	modes, each, err := o.rounds()
	if err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "tidemark-soak-")
	if err != nil {
		return false, err
	}
	fmt.Fprintf(os.Stderr, "soak: seed %d, %d rounds of %s\n", o.seed, len(modes), each)
	binary, err := proof.Build(ctx, dir, o.tags)
	if err != nil {
		return false, errors.Join(err, os.RemoveAll(dir))
	}
	report := newReport(o)
	for i, mode := range modes {
		r := &round{
			number: i + 1, mode: mode, length: each, seed: o.seed, rate: o.rate, binary: binary, dir: dir,
		}
		err = r.run(ctx)
		report.rounds = append(report.rounds, r)
		if err != nil {
			break
		}
	}
	ok = report.ok() && err == nil
	if ok {
		err = errors.Join(err, os.RemoveAll(dir))
	} else {
		fmt.Fprintln(os.Stderr, "soak: logs and configurations are kept in", dir)
	}
	return ok, errors.Join(err, report.write(o.markdown))
}
