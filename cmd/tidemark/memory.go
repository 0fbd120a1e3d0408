package main

import (
	"context"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/tidemark-cdc/tidemark/config"
)

// Go's collector lets the heap grow to twice of what lives before it looks again: with a queue
// that is full, to twice the queue. The limit makes it look earlier. It is a soft one: what lives
// is never refused memory.
const (
	// besidesQueue is what a connector lives on besides its queue: clients, codecs, some hundred
	// tables, and Go's own.
	besidesQueue = 96 << 20
	// aboveLive is left above what lives when that is more than was expected, as with thousands of
	// tables: a limit that the heap cannot keep would have the collector run without a pause.
	aboveLive = 64 << 20
	// liveEvery is how often it is looked at. The heap grows by far less than aboveLive meanwhile,
	// the queue aside, which is in the limit from the start.
	liveEvery = 5 * time.Second
)

// memoryLimit is the limit for queues of so many bytes together, when so much lives on the heap.
func memoryLimit(queues, live int64) int64 {
	if queues > math.MaxInt64/4 || live > math.MaxInt64/4 {
		return math.MaxInt64
	}
	return max(besidesQueue+queues+queues/2, live+live/4+aboveLive)
}

// limitMemory sets the process's memory limit from max.queue.bytes of all connectors, and keeps it
// above what lives, until ctx ends. Where GOMEMLIMIT is set, that is the limit.
func limitMemory(ctx context.Context, connectors []*config.Connector) {
	if _, given := os.LookupEnv("GOMEMLIMIT"); given {
		return
	}
	var queues int64
	for i := range connectors {
		queues += min(connectors[i].MaxQueueBytes, math.MaxInt64/2-queues)
	}
	debug.SetMemoryLimit(memoryLimit(queues, liveHeap()))
	go func() {
		tick := time.NewTicker(liveEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				debug.SetMemoryLimit(memoryLimit(queues, liveHeap()))
			}
		}
	}()
}

// liveHeap is what the last collection found to live.
func liveHeap() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(min(sample[0].Value.Uint64(), math.MaxInt64))
}
