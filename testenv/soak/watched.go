package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// watched is the memory of the connector's processes and the room on the disk, over time.
type watched struct {
	mu        sync.Mutex
	began     time.Time
	part      time.Duration // of the round: a line of the table
	parts     [tableLines][]int64
	processes []life
	room      int64 // bytes, when the round began
	leastRoom int64
}

// tableLines is how many parts of a round the table of memory has.
const tableLines = 10

// life is the memory of one process.
type life struct {
	pid           int
	began, looked time.Time
	first, last   int64 // resident bytes; first is that of settleAfter
}

const (
	// settleAfter is how long a process grows for reasons of its own: its start.
	settleAfter = 10 * time.Second
	// leastFree is the room below which a soak ends rather than fill the disk.
	leastFree = 2 << 30
)

// process says which process is looked at from now on.
func (w *watched) process(pid int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.processes = append(w.processes, life{pid: pid, began: time.Now()})
}

// run looks every second.
func (w *watched) run(ctx context.Context, dir string, length time.Duration) {
	w.mu.Lock()
	w.began, w.part = time.Now(), length/tableLines+1
	w.room = free(dir)
	w.leastRoom = w.room
	w.mu.Unlock()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			w.look(now, dir)
		}
	}
}

func (w *watched) look(now time.Time, dir string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leastRoom = min(w.leastRoom, free(dir))
	if len(w.processes) == 0 {
		return
	}
	p := &w.processes[len(w.processes)-1]
	if bytes := resident(p.pid); bytes > 0 {
		w.take(p, now, bytes)
	}
}

func (w *watched) take(p *life, now time.Time, bytes int64) {
	if p.first == 0 && now.Sub(p.began) >= settleAfter {
		p.first = bytes
	}
	p.last, p.looked = bytes, now
	line := min(int(now.Sub(w.began)/w.part), tableLines-1)
	w.parts[line] = append(w.parts[line], bytes)
}

// full is an error when there is no room left.
func (w *watched) full() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.leastRoom > 0 && w.leastRoom < leastFree {
		return fmt.Errorf("only %d MiB are left on the disk", w.leastRoom>>20)
	}
	return nil
}

// all are the sizes of all looks, in order.
func (w *watched) all() (out []int64) {
	for _, part := range w.parts {
		out = append(out, part...)
	}
	return out
}

// longest is the process that lived longest.
func (w *watched) longest() (l life) {
	for _, p := range w.processes {
		if p.first > 0 && p.looked.Sub(p.began) > l.looked.Sub(l.began) {
			l = p
		}
	}
	return l
}

func median(sizes []int64) int64 {
	if len(sizes) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(sizes))
	return sorted[len(sorted)/2]
}

// resident is the memory of a process in bytes; 0 where it is gone or the system does not say.
func resident(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, _ := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			return kib << 10
		}
	}
	return 0
}

// free is the room on a directory's disk; 0 where the system does not say.
func free(dir string) int64 {
	var s syscall.Statfs_t
	if syscall.Statfs(dir, &s) != nil {
		return 0
	}
	return int64(s.Bavail) * s.Bsize
}
