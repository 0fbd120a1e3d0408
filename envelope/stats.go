package envelope

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
)

// TableStats counts, for one table over all its relation versions, the values that are not simply
// the log's.
type TableStats struct {
	Schema, Table   string
	Unavailable     int64 // the log did not carry it, and it could not be had
	Reselected      int64 // the log did not carry it, and it was read again
	Unrepresentable int64 // the Avro type cannot hold it
	Truncated       int64 // records that gave way to their topic's limit
}

type counters struct {
	schema, table                            string
	unavailable, reselected, unrepresentable atomic.Int64
	truncated                                atomic.Int64
}

type counterSet struct {
	mu  sync.Mutex
	all map[[2]string]*counters
}

func (s *counterSet) of(schema, table string) *counters {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := [2]string{schema, table}
	if c := s.all[name]; c != nil {
		return c
	}
	if s.all == nil {
		s.all = map[[2]string]*counters{}
	}
	c := &counters{schema: schema, table: table}
	s.all[name] = c
	return c
}

// Stats returns the counters of every table that was compiled, by schema and name. Any goroutine
// may call it. A Table counts for the Encoder that compiled it.
func (e *Encoder) Stats() []TableStats {
	e.counters.mu.Lock()
	defer e.counters.mu.Unlock()
	stats := make([]TableStats, 0, len(e.counters.all))
	for _, c := range e.counters.all {
		stats = append(stats, TableStats{
			c.schema, c.table, c.unavailable.Load(), c.reselected.Load(), c.unrepresentable.Load(),
			c.truncated.Load(),
		})
	}
	slices.SortFunc(stats, func(a, b TableStats) int {
		return cmp.Or(cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Table, b.Table))
	})
	return stats
}
