package workload

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"

	"github.com/tidemark-cdc/tidemark/testenv/check"
)

// Options say how much is written, and to where.
type Options struct {
	URL     string // of the database, as a superuser
	Keys    int64  // of each table; 0 is 500
	Writers int    // 0 is 4
	Seed    uint64
	// Rate bounds the changes a second of all writers together; 0 is no bound.
	Rate float64
	// PerTransaction is how many changes one statement of many rows may make; 0 is 40.
	PerTransaction int
}

// Workload is a set of writers. Its methods are for one goroutine.
type Workload struct {
	o      Options
	tables []*table
	kinds  []kind
	total  int // weight of all kinds
	run    int // calls of Run, so that each draws anew
	stats  Stats
	ending atomic.Bool
}

// Stats count what was done so far.
type Stats struct {
	Changes      int64 // rows changed by transactions that were committed
	Transactions int64
	Aborts       int64 // by request
	Refused      int64 // by the server: deadlocks, lock timeouts, keys that were taken
	Lost         int64 // transactions whose answer was lost
	Kinds        map[string]int64
}

// New returns a workload. Setup makes its tables.
func New(o Options) *Workload {
	if o.Keys == 0 {
		o.Keys = 500
	}
	if o.Writers == 0 {
		o.Writers = 4
	}
	if o.PerTransaction == 0 {
		o.PerTransaction = 40
	}
	w := &Workload{o: o, tables: tables(), kinds: kinds(), stats: Stats{Kinds: map[string]int64{}}}
	for _, k := range w.kinds {
		w.total += k.weight
	}
	return w
}

// Setup makes tables, triggers and rows to begin with: a tenth of the keys.
func (w *Workload) Setup(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, w.o.URL)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var b strings.Builder
	b.WriteString(support)
	for _, t := range w.tables {
		b.WriteString(t.ddl + ";" + t.triggers() + ";")
	}
	if _, err := conn.PgConn().Exec(ctx, b.String()).ReadAll(); err != nil {
		return fmt.Errorf("make the workload's tables: %w", err)
	}
	for _, t := range w.tables {
		if t.weight == 0 {
			continue
		}
		b.Reset()
		for n := int64(0); n < w.o.Keys; n += 10 {
			fmt.Fprintf(&b, "INSERT INTO %s (%s, note) VALUES (%s, 'begin');", t.ID(),
				strings.Join(t.Key, ", "), t.insert(n))
		}
		if _, err := conn.PgConn().Exec(ctx, b.String()).ReadAll(); err != nil {
			return fmt.Errorf("fill %s: %w", t.ID(), err)
		}
	}
	return nil
}

// Tables are the captured tables, for the checker.
func (w *Workload) Tables() []check.Table {
	var out []check.Table
	for _, t := range w.tables {
		out = append(out, t.Table)
	}
	return out
}

// Stats returns what was done so far; not while Run runs.
func (w *Workload) Stats() Stats { return w.stats }

// Run lets the writers write until n more changes are committed or ctx ends. A server that goes
// away is waited for: only errors of the workload itself end it.
func (w *Workload) Run(ctx context.Context, n int64) error {
	w.run++
	w.ending.Store(false)
	left, mu := atomic.Int64{}, sync.Mutex{}
	left.Store(n)
	group, ctx := errgroup.WithContext(ctx)
	for i := range w.o.Writers {
		group.Go(func() error {
			writer := newWriter(w, i, &left)
			err := writer.run(ctx)
			mu.Lock()
			defer mu.Unlock()
			w.stats.add(&writer.stats)
			return err
		})
	}
	err := group.Wait()
	return errors.Join(err, w.settle(context.WithoutCancel(ctx)))
}

func (s *Stats) add(o *Stats) {
	s.Changes += o.Changes
	s.Transactions += o.Transactions
	s.Aborts += o.Aborts
	s.Refused += o.Refused
	s.Lost += o.Lost
	for k, n := range o.Kinds {
		s.Kinds[k] += n
	}
}

// Finish lets the Run that is under way end with the transactions that its writers are in. Unlike
// the end of Run's context it leaves none whose end nobody has seen.
func (w *Workload) Finish() { w.ending.Store(true) }

// settle ends the prepared transactions that a lost connection left.
func (w *Workload) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	conn, err := connect(ctx, w.o.URL)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return settle(ctx, conn, "workload-"+w.database()+"-")
}

// database is the name of the one that is written to.
func (w *Workload) database() string {
	u, err := url.Parse(w.o.URL)
	if err != nil {
		return "" // connecting says more
	}
	return strings.TrimPrefix(u.Path, "/")
}

// settle commits the prepared transactions whose name begins so.
func settle(ctx context.Context, conn *pgx.Conn, prefix string) error {
	rows, err := conn.Query(ctx, "SELECT gid FROM pg_prepared_xacts "+
		"WHERE database = current_database() AND starts_with(gid, $1)", pgx.QueryExecModeExec, prefix)
	if err != nil {
		return err
	}
	gids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, gid := range gids {
		if _, err := conn.PgConn().Exec(ctx, "COMMIT PREPARED '"+gid+"'").ReadAll(); err != nil {
			return err
		}
	}
	return nil
}

// connect tries until the server takes connections or ctx ends.
func connect(ctx context.Context, url string) (*pgx.Conn, error) {
	for {
		conn, err := pgx.Connect(ctx, url)
		if err == nil {
			// A deadlock between writers is found soon; a lock behind a prepared transaction of one's
			// own is given up.
			_, err = conn.Exec(ctx, "SET deadlock_timeout = '50ms'; SET lock_timeout = '1s'; "+
				"SET synchronous_commit = on", pgx.QueryExecModeSimpleProtocol)
			if err == nil {
				return conn, nil
			}
			_ = conn.Close(ctx)
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Markers inserts rows with the text in NoteColumn into every table, one for each of the topic's
// partitions, after everything else was committed. It is for after the last Run.
func (w *Workload) Markers(ctx context.Context, text string, partitions int32) error {
	conn, err := connect(ctx, w.o.URL)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var b strings.Builder
	for _, t := range w.tables {
		n := int64(1) << 40 // above all keys
		if t.Name == "copied" {
			n <<= 1
		}
		for p := range partitions {
			for ; !t.Keyless && check.PartitionOf(check.KeyBody(t.keyBody(n)...), partitions) != p; n++ {
			}
			v := ""
			value := ""
			if t.Name == "copied" {
				v, value = ", v", ", 1"
			}
			fmt.Fprintf(&b, "INSERT INTO %s (%s, note%s) VALUES (%s, '%s'%s);", t.ID(),
				strings.Join(t.Key, ", "), v, t.insert(n), text, value)
			n++
		}
	}
	_, err = conn.PgConn().Exec(ctx, b.String()).ReadAll()
	return err
}

// refused says whether the server gave a transaction up for a reason that a workload has to expect.
func refused(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return false
	}
	switch pg.Code {
	case "23505", // unique_violation: the key was taken meanwhile
		"40P01", // deadlock_detected
		"55P03", // lock_not_available
		"40001": // serialization_failure
		return true
	}
	return false
}

// gone says whether the server went away under a statement.
func gone(conn *pgx.Conn, err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code[:2] == "57" || pg.Code[:2] == "08" || pg.Code[:2] == "XX"
	}
	return conn.IsClosed()
}
