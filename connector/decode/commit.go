package decode

import (
	"fmt"

	"github.com/tidemark-cdc/tidemark/offsets"
)

// commit parses Commit.
//
//	Byte1('C')
//	Int8   flags, unused
//	Int64  LSN of the commit record, the same as Begin's final LSN
//	Int64  end LSN of the transaction: of the byte after the commit record
//	Int64  commit time, microseconds since PostgreSQL's epoch
//
// Source: "Logical Replication Message Formats", Commit.
func (s *Session) commit() {
	s.inTransaction()
	s.r.uint8("the flags")
	at := s.r.off
	lsn := offsets.LSN(s.r.uint64("the commit LSN"))
	end := offsets.LSN(s.r.uint64("the end LSN"))
	s.r.uint64("the commit time")
	if s.r.failed {
		return
	}
	if lsn != s.tx.FinalLSN {
		s.r.fail(at, fmt.Sprintf("the commit LSN is %s, but Begin's final LSN was %s",
			lsn, s.tx.FinalLSN))
	}
	if end <= lsn {
		s.r.fail(at+8, fmt.Sprintf("the end LSN %s is not beyond the commit LSN %s", end, lsn))
	}
	s.event.Kind = KindCommit
	s.event.EndLSN = end
}
