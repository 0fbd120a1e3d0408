package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/testenv/check"
)

func draw(seed uint64, mode string, n int) (out []plan) {
	p := newPlanner(seed, 1, mode, time.Hour)
	for range n {
		out = append(out, p.next())
	}
	return out
}

func TestTheSameSeedGivesTheSameFaults(t *testing.T) {
	if !slices.Equal(draw(7, "eos", 100), draw(7, "eos", 100)) {
		t.Error("two draws from one seed differ")
	}
	if slices.Equal(draw(7, "eos", 100), draw(8, "eos", 100)) {
		t.Error("another seed makes no difference")
	}
	for _, mode := range []string{"alo", "eos"} {
		var kinds []kind
		for _, p := range draw(7, mode, len(bag)) {
			kinds = append(kinds, p.kind)
		}
		for _, k := range bag {
			if want := k != takeOver || mode == "eos"; slices.Contains(kinds, k) != want {
				t.Errorf("%s, %s: drawn %t, want %t", mode, k, !want, want)
			}
		}
	}
}

func TestRoundsAreBounded(t *testing.T) {
	for _, c := range []struct {
		mode   string
		length time.Duration
		rounds int
		each   time.Duration
	}{
		{"both", time.Hour, 2, 30 * time.Minute},
		{"both", 3 * time.Minute, 2, 90 * time.Second},
		{"alo", time.Hour, 2, 30 * time.Minute},
		{"eos", 10 * time.Minute, 1, 10 * time.Minute},
		{"both", 90 * time.Minute, 4, 22*time.Minute + 30*time.Second},
	} {
		o := &options{mode: c.mode, length: c.length}
		modes, each, err := o.rounds()
		if err != nil || len(modes) != c.rounds || each != c.each {
			t.Errorf("%s %s: %d rounds of %s (%v), want %d of %s", c.mode, c.length, len(modes), each, err,
				c.rounds, c.each)
		}
	}
	if _, _, err := (&options{mode: "never", length: time.Hour}).rounds(); err == nil {
		t.Error("an unknown mode is taken")
	}
}

// good is a round in which nothing went wrong.
func good() *round {
	return &round{
		number: 1, mode: "eos", length: time.Minute, verdict: &check.Report{Changes: 5},
		history: []event{{at: 61 * time.Second, what: "broker: kill -9, 3s", recovered: 1540 * 1e6}},
	}
}

func TestTheVerdictFails(t *testing.T) {
	for name, spoil := range map[string]func(r *round){
		"the checker found something":     func(r *round) { r.verdict.Counts = map[check.Kind]int{"hole": 1} },
		"it was not judged":               func(r *round) { r.verdict = nil },
		"the connector ended by itself":   func(r *round) { r.broken = []string{"it ended"} },
		"a server could not be had again": func(r *round) { r.err = errors.New("no broker") },
	} {
		t.Run(name, func(t *testing.T) {
			p := &report{o: &options{}, rounds: []*round{good()}}
			if !p.ok() {
				t.Fatal("a good round fails")
			}
			bad := good()
			spoil(bad)
			p.rounds = append(p.rounds, bad)
			var b strings.Builder
			p.page(&b)
			if p.ok() || !strings.Contains(b.String(), "Verdict: **FAILED**") {
				t.Errorf("not noticed:\n%s", b.String())
			}
		})
	}
	if (&report{o: &options{}}).ok() {
		t.Error("a soak of no rounds passes")
	}
}

func TestThePageHasFaultsAndMemory(t *testing.T) {
	r := good()
	began := time.Now()
	w := &r.watched
	w.began, w.part, w.room, w.leastRoom = began, time.Second, 9<<20, 4<<20
	w.process(4711)
	p := &w.processes[0]
	p.began = began
	for i, mib := range []int64{10, 20, 90, 30} {
		w.take(p, began.Add(time.Duration(i)*6*time.Second), mib<<20)
	}
	var b strings.Builder
	(&report{o: &options{seed: 42, mode: "eos"}, rounds: []*round{r}}).page(&b)
	for _, want := range []string{
		"Verdict: every promise was kept.", "| seed | 42 |", "SOAK_SEED=42",
		"| 0:01:01 | broker: kill -9, 3s | 1.5s |", "| disk, at most used | 5 MiB |",
		"10 at the start, median 30, at most 90, 30 at the end.",
		"lived longest, 18s: 90 after 10s, 30 at its end.", "| 0:00:06 | 20 | 20 |",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
