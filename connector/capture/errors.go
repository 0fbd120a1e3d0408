package capture

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/internal/pgdial"
)

// ErrClosed is what Next returns once Close was called.
var ErrClosed = errors.New("the replication stream is closed")

// slotFault gives an error of creating a slot its code, where that is more than pgdial.Wrap says.
func slotFault(name string, err error) error {
	pg := serverError(err)
	switch {
	case pg == nil:
	case pg.Code == "42710":
		return fault.Wrap(fault.SlotWithoutOffset, fmt.Sprintf(
			"slot %q exists already, though it did not a moment ago", name), pgdial.Clean(pg))
	case pg.Code == "55000" && strings.Contains(pg.Message, "wal_level"):
		return fault.Wrap(fault.WALLevel, "no logical slot can be made", pgdial.Clean(pg)).
			With("", "wal_level = logical",
				"ALTER SYSTEM SET wal_level = 'logical', then restart the server")
	}
	return pgdial.Wrap(err)
}

// startFault gives an error of START_REPLICATION its code. The connector looks at the slot before
// it starts; what comes here has changed since then.
func startFault(name string, err error) error {
	pg := serverError(err)
	code, text := fault.Code(""), ""
	switch {
	case pg == nil:
	case pg.Code == "42704":
		code, text = fault.SlotMissing, "slot %q does not exist"
	case pg.Code == "55000" && mentions(pg, "database", "physical"):
		code, text = fault.SlotForeign, "slot %q is not a slot of ours"
	case pg.Code == "55000" && mentions(pg, "wal_level"):
		code, text = fault.WALLevel, "slot %q cannot be read"
	case lost(pg), pg.Code == "55000":
		// Whatever the server's language says: START_REPLICATION has 55000 for slots that cannot be
		// read, and the connector looks at the slot again.
		code, text = fault.SlotLost, "the server invalidated slot %q"
	}
	if code == "" {
		return pgdial.Wrap(err)
	}
	clean := pgdial.Clean(pg)
	return fault.Wrap(code, fmt.Sprintf(text, name), clean).With(clean.Detail, "", clean.Hint)
}

// streamFault gives an error that ended a running stream its code. Up to PostgreSQL 17 a
// publication that did not exist when a change was made is such an error, and comes again at each
// restart.
func streamFault(err error) error {
	pg := serverError(err)
	switch {
	case pg == nil:
	case pg.Code == "42704" && (mentions(pg, "publication") ||
		strings.Contains(pg.Routine, "publication")): // get_publication_oid, in every language
		return fault.Wrap(fault.PublicationChanged,
			"the publication did not exist when a change that is due was made", pgdial.Clean(pg))
	case lost(pg):
		return fault.Wrap(fault.SlotLost, "the server invalidated the slot", pgdial.Clean(pg)).
			With(pgdial.Clean(pg).Detail, "", "")
	}
	return pgdial.Wrap(err)
}

// lost reports whether pg says that the slot's WAL is gone: 55000 for a slot that was invalidated,
// 58P01 for a segment that is not there.
func lost(pg *pgconn.PgError) bool {
	return pg.Code == "58P01" ||
		pg.Code == "55000" && mentions(pg, "can no longer", "cannot read from", "invalidated")
}

func mentions(pg *pgconn.PgError, words ...string) bool {
	for _, w := range words {
		if strings.Contains(pg.Message, w) || strings.Contains(pg.Detail, w) {
			return true
		}
	}
	return false
}

func serverError(err error) *pgconn.PgError {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg
	}
	return nil
}
