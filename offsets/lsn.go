package offsets

import (
	"fmt"
	"strconv"
	"strings"
)

// LSN is a position in PostgreSQL's WAL in bytes. Zero is "none" (InvalidXLogRecPtr) and never a
// position.
type LSN uint64

// String prints the LSN as PostgreSQL does: high and low word in hexadecimal, "16/B374D848".
func (l LSN) String() string { return fmt.Sprintf("%X/%X", uint32(l>>32), uint32(l)) }

// ParseLSN reads PostgreSQL's text form of a pg_lsn.
func ParseLSN(s string) (LSN, error) {
	hi, lo, ok := strings.Cut(s, "/")
	if !ok {
		return 0, fmt.Errorf("LSN %q has no slash", s)
	}
	h, err := strconv.ParseUint(hi, 16, 32)
	if err != nil {
		return 0, fmt.Errorf("LSN %q: high word is not hexadecimal", s)
	}
	l, err := strconv.ParseUint(lo, 16, 32)
	if err != nil {
		return 0, fmt.Errorf("LSN %q: low word is not hexadecimal", s)
	}
	return LSN(h<<32 | l), nil
}

// Position orders all events of a key and tells repeats: History is raised when LSNs start anew,
// CommitLSN is the transaction's final LSN from Begin, Index counts the row messages before this
// one in the transaction (-1 for snapshot rows).
type Position struct {
	History   int64
	CommitLSN LSN
	Index     int64
}

// Compare returns -1, 0 or +1 in the order History, CommitLSN, Index.
func (p Position) Compare(q Position) int {
	switch {
	case p.History != q.History:
		return sign(p.History > q.History)
	case p.CommitLSN != q.CommitLSN:
		return sign(p.CommitLSN > q.CommitLSN)
	case p.Index != q.Index:
		return sign(p.Index > q.Index)
	}
	return 0
}

func sign(greater bool) int {
	if greater {
		return 1
	}
	return -1
}
