package reselect

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemark-cdc/tidemark/internal/pgdial"
)

// Reason says why a value could not be had; it is a label of a metric.
type Reason string

// Reasons.
const (
	RowGone          Reason = "row_gone"        // deleted since, or its key changed
	TableGone        Reason = "table_gone"      // dropped since; another may have its name
	ColumnGone       Reason = "column_gone"     // dropped or renamed since
	TypeChanged      Reason = "type_changed"    // the column, or the key, has another type now
	NotPermitted     Reason = "not_permitted"   // SELECT or USAGE is missing, or row-level security holds
	LockTimeout      Reason = "lock_timeout"    // another session has locked the table
	StatementTimeout Reason = "timeout"         // too slow, or cancelled by somebody
	NotVisible       Reason = "not_visible"     // the transaction is committed and not seen yet
	NoIdentity       Reason = "no_identity"     // the row is not named, or more than one has its name
	QueryFailed      Reason = "statement_error" // any other error of the statement
)

// reasonOf classifies an error of a statement. A connection that is broken, or that the server ends,
// is an error.
func reasonOf(err error, closed bool) (Reason, error) {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || closed || pg.SeverityUnlocalized == "FATAL" ||
		strings.HasPrefix(pg.Code, "08") || strings.HasPrefix(pg.Code, "57P") {
		return "", pgdial.Wrap(err)
	}
	switch pg.Code {
	case "42501":
		return NotPermitted, nil
	case "55P03":
		return LockTimeout, nil
	case "57014":
		return StatementTimeout, nil
	case "42P01", "3F000":
		return TableGone, nil
	case "42703":
		return ColumnGone, nil
	case "42704", "42804", "42846", "42883":
		return TypeChanged, nil
	}
	return QueryFailed, nil
}

// ofCatalog reports whether a reason may only say that what we knew of the table is old: its name
// may be another table's by now.
func (r Reason) ofCatalog() bool {
	switch r {
	case TableGone, ColumnGone, TypeChanged, NotPermitted, QueryFailed:
		return true
	}
	return false
}

// ofAll reports whether every row that asks the same would get the same reason.
func (r Reason) ofAll() bool { return r != "" && r != RowGone && r != NoIdentity }
