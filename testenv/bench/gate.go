package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
)

// gateFile is what the repository keeps of a good run: a ratio, since machines differ.
type gateFile struct {
	// Streaming is rows/s of the connector, broker in the process, over rows/s of the reader in Go,
	// which is there on every machine.
	Streaming float64 `json:"streaming"`
	// Measured says where the value is from.
	Measured string `json:"measured"`
}

// A run of the gate is small and may fall into other work of the machine: only what fails each time
// is slow.
const (
	gateRows  = 200_000
	gateTries = 3
	gatePairs = 2
	gateShare = 0.6 // of the kept value
)

// gate fails when the connector has become slow beside a reader that decodes nothing. That a row allocates nothing
// is stage unit's.
func (b *bench) gate(ctx context.Context, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var kept gateFile
	if err := json.Unmarshal(text, &kept); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if kept.Streaming <= 0 {
		return fmt.Errorf("%s: streaming is %v, wanted a ratio", path, kept.Streaming)
	}
	p, err := prepare(ctx, b.pg, shapeOf("stream"), gateRows)
	if err != nil {
		return err
	}
	b.runs, b.reader = gatePairs, ""
	best, bound := 0.0, gateShare*kept.Streaming
	for try := range gateTries {
		ours, other, err := b.pairs(ctx, p, nil)
		if err != nil {
			return err
		}
		ratio := other.median(seconds) / ours.median(seconds)
		fmt.Printf("try %d: %.2f of the baseline, wanted %.2f (%.0f %% of %.2f); load %s\n",
			try+1, ratio, bound, gateShare*100, kept.Streaming, load())
		if best = max(best, ratio); best >= bound {
			return nil
		}
	}
	return fmt.Errorf("streaming is %.2f times the baseline at best, below %.2f: see "+
		"docs/profile.md, and %s for where the bound is from", best, bound, path)
}
