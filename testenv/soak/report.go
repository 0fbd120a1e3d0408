package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/tidemark-cdc/tidemark/testenv"
	"github.com/tidemark-cdc/tidemark/testenv/check"
)

// report is what is printed, and kept.
type report struct {
	o       *options
	date    string
	commit  string
	machine string
	rounds  []*round
}

func newReport(o *options) *report {
	return &report{
		o: o, date: time.Now().UTC().Format("2006-01-02 15:04 UTC"), commit: testenv.Commit(),
		machine: fmt.Sprintf("%s, %d processors, %s/%s, %s", testenv.Processor(), runtime.NumCPU(),
			runtime.GOOS, runtime.GOARCH, runtime.Version()),
	}
}

// ok says that every round was judged, and well.
func (p *report) ok() bool {
	for _, r := range p.rounds {
		if !r.ok() {
			return false
		}
	}
	return len(p.rounds) > 0
}

// write prints the report, and writes it to a file if there is one.
func (p *report) write(file string) error {
	var b strings.Builder
	p.page(&b)
	fmt.Print(b.String())
	if file == "" {
		return nil
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}

func (p *report) page(w io.Writer) {
	verdict := "every promise was kept"
	if !p.ok() {
		verdict = "**FAILED**"
	}
	fmt.Fprintf(w, "# Soak\n\nWritten by `make soak`: the mixed workload for %s, with faults drawn from "+
		"a seed, on PostgreSQL 18 with\nfsync, Kafka 4.3 and the Apicurio registry, each a process of its "+
		"own, and the checker of `testenv/check` over\neverything at the end. A round has servers and a "+
		"database of its own.\n\n", p.o.length)
	fmt.Fprintf(w, "Verdict: %s.\n\n", verdict)
	fmt.Fprintf(w, "| | |\n|---|---|\n| date | %s |\n| commit | %s |\n| seed | %d |\n| mode | %s |\n"+
		"| rate | %.0f changes/s wanted |\n| machine | %s |\n| again | `make soak SOAK=%s SOAK_MODE=%s "+
		"SOAK_SEED=%d` |\n", p.date, p.commit, p.o.seed, p.o.mode, p.o.rate, p.machine, p.o.length,
		p.o.mode, p.o.seed)
	p.summary(w)
	for _, r := range p.rounds {
		r.page(w)
	}
}

// summary is a table with a column for each round.
func (p *report) summary(w io.Writer) {
	row := func(name string, value func(r *round) string) {
		fmt.Fprintf(w, "| %s |", name)
		for _, r := range p.rounds {
			fmt.Fprintf(w, " %s |", value(r))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprint(w, "\n## Summary\n\n")
	row("round", func(r *round) string { return fmt.Sprint(r.number) })
	fmt.Fprintln(w, "|---"+strings.Repeat("|---", len(p.rounds))+"|")
	row("delivery", func(r *round) string {
		return map[string]string{"alo": "at least once", "eos": "exactly once"}[r.mode]
	})
	row("lasted", func(r *round) string { return r.length.String() })
	row("faults", func(r *round) string { return fmt.Sprint(len(r.history)) })
	row("starts of the connector", func(r *round) string { return fmt.Sprint(r.starts) })
	row("longest until caught up", func(r *round) string {
		var longest time.Duration
		for _, e := range r.history {
			longest = max(longest, e.recovered)
		}
		return longest.Round(100 * time.Millisecond).String()
	})
	row("changes committed", func(r *round) string { return fmt.Sprint(r.stats.Changes) })
	row("transactions", func(r *round) string { return fmt.Sprint(r.stats.Transactions) })
	row("rolled back, refused, answer lost", func(r *round) string {
		return fmt.Sprintf("%d, %d, %d", r.stats.Aborts, r.stats.Refused, r.stats.Lost)
	})
	judged := func(value func(v *check.Report) string) func(r *round) string {
		return func(r *round) string {
			if r.verdict == nil {
				return "-"
			}
			return value(r.verdict)
		}
	}
	row("records read", judged(func(v *check.Report) string { return fmt.Sprint(v.Records) }))
	row("changes in them", judged(func(v *check.Report) string { return fmt.Sprint(v.Changes) }))
	row("rows of snapshots", judged(func(v *check.Report) string { return fmt.Sprint(v.Snapshot) }))
	row("repeats", judged(func(v *check.Report) string { return fmt.Sprint(v.Repeats) }))
	row("positions sampled", judged(func(v *check.Report) string { return fmt.Sprint(v.Samples) }))
	row("disk, at most used", func(r *round) string {
		return fmt.Sprintf("%d MiB", (r.watched.room-r.watched.leastRoom)>>20)
	})
	row("verdict", func(r *round) string {
		if r.ok() {
			return "kept"
		}
		return "**FAILED**"
	})
}

// page is a round's part of the report.
func (r *round) page(w io.Writer) {
	fmt.Fprintf(w, "\n## Round %d, %s\n", r.number, r.mode)
	if r.err != nil {
		fmt.Fprintf(w, "\nIt could not be judged: %s\n", strings.SplitN(r.err.Error(), "\n", 2)[0])
	}
	if len(r.broken) > 0 {
		fmt.Fprint(w, "\n- "+strings.Join(r.broken, "\n- ")+"\n")
	}
	if r.verdict != nil {
		fmt.Fprintf(w, "\nThe checker: %s\n", r.verdict)
	}
	r.memoryPage(w)
	fmt.Fprint(w, "\n| at | fault | caught up after |\n|---|---|---|\n")
	for _, e := range r.history {
		fmt.Fprintf(w, "| %s | %s | %s |\n", clock(e.at), e.what,
			e.recovered.Round(100*time.Millisecond))
	}
}

// memoryPage shows whether the connector grows.
func (r *round) memoryPage(w io.Writer) {
	all := r.watched.all()
	if len(all) == 0 {
		return
	}
	mib := func(n int64) int64 { return n >> 20 }
	top := int64(0)
	for _, n := range all {
		top = max(top, n)
	}
	fmt.Fprintf(w, "\nResident memory of the connector, MiB: %d at the start, median %d, at most %d, %d "+
		"at the end.", mib(all[0]), mib(median(all)), mib(top), mib(all[len(all)-1]))
	if l := r.watched.longest(); l.first > 0 {
		fmt.Fprintf(w, " The process that lived longest, %s: %d after %s, %d at its end.",
			l.looked.Sub(l.began).Round(time.Second), mib(l.first), settleAfter, mib(l.last))
	}
	fmt.Fprint(w, "\n\n| from | median | at most |\n|---|---|---|\n")
	for i, part := range r.watched.parts {
		if len(part) == 0 {
			continue
		}
		top := int64(0)
		for _, n := range part {
			top = max(top, n)
		}
		fmt.Fprintf(w, "| %s | %d | %d |\n", clock(time.Duration(i)*r.watched.part), mib(median(part)),
			mib(top))
	}
}

// clock prints a time since a round's beginning.
func clock(d time.Duration) string {
	s := max(int(d.Seconds()), 0)
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}
