//go:build !race

package main

import "testing"

// A row's decoding and encoding allocate nothing: what is counted here are Buffers, of which one
// holds some hundred rows and which come back.
//
// (Under the race detector a sync.Pool drops some of what it is given: stage unit
// runs this test without it.)
func TestARowAllocatesNothing(t *testing.T) {
	for name, columns := range map[string][]column{
		"ordinary": ordinaryColumns, "mixed": mixedColumns,
	} {
		t.Run(name, func(t *testing.T) {
			p := newPath(t, columns)
			const rows = 2000
			allocated := testing.AllocsPerRun(5, func() {
				for range rows {
					p.next(t)
					p.release()
				}
			})
			if allocated > rows/100 {
				t.Errorf("%.0f allocations for %d rows", allocated, rows)
			}
		})
	}
}
