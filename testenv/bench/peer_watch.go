package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/tidemark-cdc/tidemark/testenv"
)

// watched is what an observer from outside sees of a process that fills a topic: Debezium and
// Tidemark are measured with the same eyes.
type watched struct {
	First float64 `json:"first_event_after_seconds"` // since the process was started
	Rows  int64   `json:"rows"`                      // from the first look that saw some to the last
	Took  float64 `json:"seconds"`                   // of these
	CPU   float64 `json:"cpu_seconds"`               // of these
	RSS   int64   `json:"peak_rss_bytes"`
	Idle  float64 `json:"idle_cpu_seconds,omitempty"`
}

// Looks at the topic: seldom enough not to show, often enough for what they are to time.
const (
	firstLook = 10 * time.Millisecond
	laterLook = 40 * time.Millisecond
)

// watch looks at a topic until it holds all rows. The time before the first event, in which a JVM
// starts, is not in the rate: it is a figure of its own.
func watch(
	ctx context.Context, admin *kadm.Client, p *testenv.Program, topic string, rows int64,
) (w watched, err error) {
	var began, ended time.Time
	var atFirst int64
	var cpu float64
	every := firstLook
	for {
		have, err := held(ctx, admin, topic)
		if err != nil {
			return w, err
		}
		if have > 0 && began.IsZero() {
			began, atFirst, every = time.Now(), have, laterLook
			w.First = began.Sub(p.Started).Seconds()
			if cpu, err = cpuOf(p.PID()); err != nil {
				return w, err
			}
		}
		if have >= rows {
			ended = time.Now()
			break
		}
		select {
		case <-ctx.Done():
			return w, fmt.Errorf("%d of %d rows: %w", have, rows, ctx.Err())
		case <-time.After(every):
		}
		if err := p.Ended(); err != nil {
			return w, err
		}
	}
	after, err := cpuOf(p.PID())
	if err != nil {
		return w, err
	}
	w.Took, w.Rows, w.CPU = ended.Sub(began).Seconds(), rows-atFirst, after-cpu
	if w.RSS, err = peakOf(p.PID()); err != nil {
		return w, err
	}
	// What is there twice or too much is no faster connector.
	have, err := held(ctx, admin, topic)
	if err == nil && have != rows {
		err = fmt.Errorf("topic %s holds %d records, not %d", topic, have, rows)
	}
	return w, err
}

// held is how many records a topic holds, none when it is not there.
func held(ctx context.Context, admin *kadm.Client, topic string) (n int64, err error) {
	ends, err := admin.ListEndOffsets(ctx, topic)
	if err != nil {
		return 0, err
	}
	if err := ends.Error(); err != nil {
		if errors.Is(err, kerr.UnknownTopicOrPartition) {
			return 0, nil
		}
		return 0, err
	}
	ends.Each(func(o kadm.ListedOffset) { n += o.Offset })
	return n, nil
}

// ticksPerSecond is the unit of /proc/PID/stat, the same on all Linux systems of today.
const ticksPerSecond = 100

// cpuOf is what a process has used so far, user and system, by the kernel.
func cpuOf(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat is short", pid)
	}
	user, err := strconv.ParseFloat(fields[11], 64)
	system, err2 := strconv.ParseFloat(fields[12], 64)
	return (user + system) / ticksPerSecond, errors.Join(err, err2)
}

// peakOf is the largest resident memory that a process had.
func peakOf(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(
				strings.TrimSpace(value), "kB")), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("/proc/%d/status names no VmHWM", pid)
}
