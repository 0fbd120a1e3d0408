package connector

import (
	"maps"
	"slices"
	"sync"
)

// findings are what is worth a person's look though the connector goes on: reasons in /readyz. A
// finding has a key, so that it can be replaced and taken back.
type findings struct {
	mu  sync.Mutex
	all map[string]string
}

// set keeps a finding; an empty text takes it back. It reports whether anything changed.
func (f *findings) set(key, text string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all[key] == text {
		return false
	}
	if f.all == nil {
		f.all = map[string]string{}
	}
	if text == "" {
		delete(f.all, key)
	} else {
		f.all[key] = text
	}
	return true
}

// list returns the texts in the order of their keys.
func (f *findings) list() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, k := range slices.Sorted(maps.Keys(f.all)) {
		out = append(out, f.all[k])
	}
	return out
}

// finding keeps a finding and logs a new one.
func (s *session) finding(key, text string) {
	if s.findings.set(key, text) && text != "" {
		s.log.Warn(text)
	}
}
