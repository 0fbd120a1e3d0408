package offsets

import (
	"fmt"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// Cut is where a Kafka transaction ended inside a transaction of the source (exactly-once only):
// in the one whose Begin has final LSN Final, the first Rows row messages are done, and the last of
// them was at Row. The stream has the transaction sent again from its beginning; a Cut tells which
// of its row messages are to be left out, and stops when the stream is not the one that was cut:
// then a count says nothing, and going on could lose rows or repeat them.
//
//	waiting --Begin(Final)--> within --row message number Rows--> passed
//
// The zero Cut, and a nil one, is passed: nothing is left out. It belongs to the goroutine that
// reads the stream.
type Cut struct {
	Final LSN
	Rows  int64
	Row   LSN

	within bool
	passed bool
}

// CutOf returns the cut that a record holds, nil for none.
func CutOf(r *Record) *Cut {
	if r == nil || r.LSNCommit == 0 || r.EventIndex <= 0 {
		return nil
	}
	return &Cut{Final: r.LSNCommit, Rows: r.EventIndex, Row: r.RowLSN}
}

// Pending reports whether row messages are still to be left out: until then the record keeps this
// cut, and no idle position may be taken.
func (c *Cut) Pending() bool { return c != nil && c.Rows > 0 && !c.passed }

// Begin takes the next transaction of the stream. One with a smaller final LSN is another one and
// passes whole; a greater one means that the transaction that was cut is not sent any more.
func (c *Cut) Begin(final LSN) error {
	if !c.Pending() || final < c.Final {
		return nil
	}
	if final > c.Final {
		return c.fault("the stream goes on behind it", "a transaction that commits at "+final.String())
	}
	c.within = true
	return nil
}

// Skip takes the row message number index (from 0) of the open transaction, and reports whether it
// is one of those that are done.
func (c *Cut) Skip(index int64, lsn LSN) (bool, error) {
	if !c.Pending() || !c.within {
		return false, nil
	}
	if index >= c.Rows {
		return false, c.fault("the stream skips row messages of it",
			fmt.Sprintf("row message %d", index))
	}
	if index < c.Rows-1 {
		return true, nil
	}
	if lsn != c.Row {
		return false, c.fault("its last row message that is done lies elsewhere", lsn.String())
	}
	c.passed = true
	return true, nil
}

// Done reports whether row message number index of the transaction that commits at final is one of
// those that are done. It asks only: the transaction may not have come yet.
func (c *Cut) Done(final LSN, index int64) bool {
	return c.Pending() && final == c.Final && index < c.Rows
}

// Commit takes the end of the open transaction.
func (c *Cut) Commit() error {
	if c.Pending() && c.within {
		return c.fault("it has fewer row messages than are done", "its end")
	}
	return nil
}

func (c *Cut) fault(what, found string) error {
	return fault.New(fault.TransactionChanged, fmt.Sprintf("the source transaction that commits "+
		"at %s was cut behind %d of its row messages, and %s", c.Final, c.Rows, what)).
		With(found, fmt.Sprintf("row message %d of it at %s", c.Rows-1, c.Row),
			"tidemark check names changes of the publication; to send the whole transaction again, "+
				"set exactly.once.support: disabled for one start, else take a new snapshot")
}
