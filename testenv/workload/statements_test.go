package workload

import (
	"strings"
	"sync/atomic"
	"testing"
)

// statements are what a writer would send.
func statements(seed uint64, number, n int) string {
	w := New(Options{Seed: seed})
	x := newWriter(w, number, new(atomic.Int64))
	var b strings.Builder
	for range n {
		tx := x.draw().make(x)
		b.WriteString(tx.sql + tx.copied + strings.Join(tx.after, ""))
	}
	return b.String()
}

func TestTheSameSeedGivesTheSameStatements(t *testing.T) {
	first, again := statements(1, 2, 2000), statements(1, 2, 2000)
	if first != again {
		t.Error("two writers of one seed and number differ")
	}
	if statements(1, 2, 100) == statements(2, 2, 100) {
		t.Error("another seed makes no difference")
	}
	if statements(1, 2, 100) == statements(1, 3, 100) {
		t.Error("another number makes no difference")
	}
}
