package reselect

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/internal/pgdial"
	"github.com/tidemark-cdc/tidemark/schema"
)

const (
	maxRows          = 256
	statementTimeout = 10 * time.Second
	lockTimeout      = 2 * time.Second
	replyTimeout     = statementTimeout + 5*time.Second
	visibleTimeout   = statementTimeout
)

// Options are what Open needs.
type Options struct {
	Database config.Database
	AppName  string
	Logger   *slog.Logger

	// The timeouts of doc.go where they are zero.
	StatementTimeout, LockTimeout, VisibleTimeout time.Duration
}

// Reader reads rows again, on a connection of its own. It is not safe for concurrent use.
type Reader struct {
	o      Options
	conn   *pgconn.PgConn
	tables map[uint32]*table
	cause  error           // of the last reason that an error of a statement gave
	said   map[string]bool // table and reason, in the log
}

// Open connects.
func Open(ctx context.Context, o Options) (*Reader, error) {
	o.StatementTimeout = orDefault(o.StatementTimeout, statementTimeout)
	o.LockTimeout = orDefault(o.LockTimeout, lockTimeout)
	o.VisibleTimeout = orDefault(o.VisibleTimeout, visibleTimeout)
	cfg, err := pgdial.Config(o.Database, o.AppName, false)
	if err != nil {
		return nil, err
	}
	cfg.RuntimeParams["statement_timeout"] = milliseconds(o.StatementTimeout)
	cfg.RuntimeParams["default_transaction_isolation"] = "read committed" // no serialization failures
	cfg.RuntimeParams["lock_timeout"] = milliseconds(o.LockTimeout)
	conn, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, pgdial.Wrap(err)
	}
	return &Reader{o: o, conn: conn, tables: map[uint32]*table{}, said: map[string]bool{}}, nil
}

func orDefault(d, byDefault time.Duration) time.Duration {
	if d == 0 {
		return byDefault
	}
	return d
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// Close closes the connection, with a deadline of its own.
func (r *Reader) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = r.conn.Close(ctx) // a reader has nothing to lose
}

// Answer is what was read of one row.
type Answer struct {
	Done   bool         // false: ask again
	Values schema.Tuple // in the order of the question's columns; nil with a Reason
	Reason Reason
}

func (a *Answer) size() (n int64) {
	for i := range a.Values {
		n += int64(len(a.Values[i].Text)) + datumBytes
	}
	return n
}

const datumBytes = 32

// Ask reads rows, each named by the texts of its identity columns. xids are the transactions whose
// changes the values must not be older than. Of rows, at least one answer is Done; the others may
// not fit into budget bytes. An error is one of the connection, or ctx's.
func (r *Reader) Ask(
	ctx context.Context, q Question, rows [][][]byte, xids []uint32, budget int64,
) ([]Answer, error) {
	t := r.tables[q.Relation.OID]
	fresh := t == nil || t.relation != q.Relation
	for {
		r.cause = nil
		var reason Reason
		var err error
		if fresh {
			t, reason, err = r.refresh(ctx, q.Relation)
		}
		if err == nil && reason == "" {
			reason = t.lacks(q)
		}
		if err == nil && reason == "" {
			var answers []Answer
			if answers, reason, err = r.read(ctx, q, t, rows, xids, budget); answers != nil {
				return answers, nil
			}
		}
		switch {
		case err != nil:
			return nil, err
		case fresh || !reason.ofCatalog():
			r.say(q.Relation, reason)
			return slices.Repeat([]Answer{{Done: true, Reason: reason}}, len(rows)), nil
		}
		fresh = true
	}
}

// refresh looks at the catalog anew.
func (r *Reader) refresh(ctx context.Context, rel *schema.Relation) (*table, Reason, error) {
	ctx, cancel := context.WithTimeout(ctx, r.replyTimeout())
	defer cancel()
	t, err := r.look(ctx, rel)
	if err != nil {
		reason, err := r.failed(err)
		return nil, reason, err
	}
	if had := r.tables[rel.OID]; had != nil && had.relation == rel {
		t.rowBytes = had.rowBytes
	}
	r.tables[rel.OID] = t
	return t, "", nil
}

// read is one statement, and another when the first did not see what it must.
func (r *Reader) read(
	ctx context.Context, q Question, t *table, rows [][][]byte, xids []uint32, budget int64,
) ([]Answer, Reason, error) {
	some := rows[:t.some(len(rows), budget)]
	for first := true; ; first = false {
		got, err := r.exec(ctx, q, t, some, budget)
		if err != nil {
			reason, err := r.failed(err)
			return nil, reason, err
		}
		switch seen, err := visible(got.snapshot, xids); {
		case err != nil:
			return nil, "", err
		case !got.same:
			return nil, TableGone, nil
		case got.fits != len(q.Identity)+len(q.Columns):
			return nil, TypeChanged, nil
		case seen:
			return append(got.answers, make([]Answer, len(rows)-len(some))...), "", nil
		case !first:
			return nil, NotVisible, nil
		}
		if seen, reason, err := r.waitVisible(ctx, xids); err != nil || reason != "" {
			return nil, reason, err
		} else if !seen {
			return nil, NotVisible, nil
		}
	}
}

// result is what a statement says.
type result struct {
	answers  []Answer
	snapshot string
	same     bool
	fits     int
}

// exec runs a statement. Rows that do not fit into the budget any more are read and forgotten.
func (r *Reader) exec(
	ctx context.Context, q Question, t *table, rows [][][]byte, budget int64,
) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, r.replyTimeout())
	defer cancel()
	got := result{answers: make([]Answer, len(rows))}
	s := build(q, t, rows)
	var kept, seen, largest int64
	res := r.conn.ExecParams(ctx, s.sql, s.values, s.types, nil, nil)
	for res.NextRow() {
		v := res.Values()
		n, err := strconv.Atoi(string(v[colNumber]))
		if err != nil || n < 1 || n > len(rows) {
			continue // not of our making; the row stays unanswered
		}
		if v[colSnapshot] != nil {
			got.snapshot = string(v[colSnapshot])
		}
		got.same = string(v[colSame]) == "t"
		got.fits, _ = strconv.Atoi(string(v[colFits]))
		a := &got.answers[n-1]
		switch {
		case v[colFound] == nil:
			*a = Answer{Done: true, Reason: RowGone}
		case a.Done:
			*a = Answer{Done: true, Reason: NoIdentity}
		case kept == 0 || kept < budget:
			*a = Answer{Done: true, Values: ownedTuple(v[colValues:])}
			kept += a.size()
			seen++
			largest = max(largest, a.size())
		}
	}
	_, err := res.Close()
	if seen > 0 {
		// The mean of what came, leaning to the largest: one row of many must not cost a second look.
		t.rowBytes = (kept/seen + largest) / 2
	}
	return got, err
}

func (r *Reader) replyTimeout() time.Duration {
	return r.o.StatementTimeout + replyTimeout - statementTimeout
}

// ownedTuple copies values.
func ownedTuple(values [][]byte) schema.Tuple {
	size := 0
	for _, v := range values {
		size += len(v)
	}
	texts := make([]byte, 0, size)
	out := make(schema.Tuple, len(values))
	for i, v := range values {
		out[i].Kind = schema.DatumNull
		if v != nil {
			from := len(texts)
			texts = append(texts, v...)
			out[i] = schema.Datum{Kind: schema.DatumText, Text: texts[from:len(texts):len(texts)]}
		}
	}
	return out
}

// failed turns an error into a reason, or into an error of the connection.
func (r *Reader) failed(err error) (Reason, error) {
	r.cause = pgdial.Wrap(err)
	return reasonOf(err, r.conn.IsClosed())
}

// say logs a reason, once a table.
func (r *Reader) say(rel *schema.Relation, reason Reason) {
	name := rel.Namespace + "." + rel.Name
	if key := name + "/" + string(reason); !r.said[key] {
		r.said[key] = true
		r.o.Logger.Warn("values that the log did not carry could not be read again; events say "+
			"UNAVAILABLE", "table", name, "reason", string(reason), "error", r.cause)
	}
}
