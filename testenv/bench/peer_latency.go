package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/tidemark-cdc/tidemark/testenv"
)

// latencies times each contender under the same load, on a fresh slot, and what it uses afterwards
// while nothing happens.
func (p *peers) latencies(ctx context.Context, all ...contender) error {
	s := shapeOf("single")
	s.name = "steady"
	ready, err := prepare(ctx, p.pg, s, 1)
	if err != nil {
		return err
	}
	load := latencyLoad{rate: 200, warm: 5 * time.Second, last: 20 * time.Second, from: 1000}
	idle := 10 * time.Second
	if p.quick {
		load.warm, load.last, idle = 3*time.Second, 8*time.Second, 5*time.Second
	}
	for _, c := range all {
		err := freshSlot(ctx, p.pg, ready, load.from-1, func(slot string) error {
			return p.latencyOf(ctx, c, ready, slot, load, idle)
		})
		if err != nil {
			return err
		}
		load.from += 1_000_000
	}
	return p.discard(ctx, ready)
}

func (p *peers) latencyOf(
	ctx context.Context, c contender, s prepared, slot string, load latencyLoad,
	idle time.Duration,
) error {
	return p.with(ctx, c, s, slot, func(j job, running *testenv.Program, topic string) error {
		d, err := latency(ctx, p.pg, s.name, j.Brokers, topic, load, running.Ended)
		if err != nil {
			return err
		}
		before, err := cpuOf(running.PID())
		if err != nil {
			return err
		}
		time.Sleep(idle) // idleness is what is measured
		after, err := cpuOf(running.PID())
		used := (after - before) / idle.Seconds() * 100
		p.delays[c.name] = steady{delays: d, Idle: used}
		fmt.Fprintf(os.Stderr,
			"latency    %-18s p50 %.1f ms, p99 %.1f ms at %.0f commits/s; idle %.1f %%\n",
			c.name, d.P50*1000, d.P99*1000, d.Rate, used)
		return err
	})
}
