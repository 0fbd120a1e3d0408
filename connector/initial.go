package connector

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-cdc/tidemark/connector/snapshot"
	"github.com/tidemark-cdc/tidemark/connector/source"
	"github.com/tidemark-cdc/tidemark/envelope"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/internal/pgdial"
	"github.com/tidemark-cdc/tidemark/offsets"
	"github.com/tidemark-cdc/tidemark/schema"
	"github.com/tidemark-cdc/tidemark/schema/catalog"
)

// progress is what a person is shown of a running snapshot.
type progress struct {
	tablesLeft atomic.Int64 // -1: no snapshot runs
	rows       atomic.Int64
	estimate   atomic.Int64 // -1: the planner has none
}

// wantsSnapshot: a repair reads rows whatever snapshot.mode says of the first start.
func (s *session) wantsSnapshot() bool {
	return s.repair != nil || s.cfg.SnapshotMode != "no_data"
}

// maxAttempts bounds how often tables are begun again because they were rewritten under the
// snapshot: somebody truncates one in a loop.
const maxAttempts = 20

// snapshot reads the rows that were there before the stream, when the record says that this is
// not done. The first attempt reads in the slot's own exported snapshot. One that is begun again,
// after a crash or a rewrite, reads in a snapshot taken now: its r rows have a later pair, and
// every change since the slot's point is still sent, so that a key that was deleted in between
// gets its delete.
func (s *session) snapshot(ctx context.Context) error {
	s.progress.tablesLeft.Store(-1)
	if s.record.Snapshot == nil || s.record.Snapshot.Done {
		return s.onlySnapshot()
	}
	if !s.wantsSnapshot() {
		return s.snapshotDone(ctx)
	}
	s.c.setState(StateSnapshot)
	guarded, endGuard := s.guardSnapshot(ctx)
	defer endGuard()
	if err := s.readTables(guarded); err != nil {
		if cause := context.Cause(guarded); cause != nil && fault.CodeOf(cause) != fault.Internal {
			return cause
		}
		return err
	}
	endGuard()
	return s.snapshotDone(ctx)
}

// readTables reads every table that is due, again and again while some are rewritten under it.
func (s *session) readTables(ctx context.Context) error {
	published, err := s.published(ctx)
	if err != nil {
		return err
	}
	for attempt := 0; len(published) > 0; attempt++ {
		if attempt == maxAttempts {
			return fault.New(fault.SnapshotBlocked, fmt.Sprintf(
				"%d tables were truncated or rewritten under each of %d snapshots",
				len(published), maxAttempts)).With(published[0].Relation.Name+" among them",
				"a table that stands still for a moment", "start again when they are quiet")
		}
		if published, err = s.attempt(ctx, published); err != nil {
			return err
		}
	}
	return nil
}

// guardSnapshot looks at the catalog while a snapshot is read, and ends the context when the slot
// is lost meanwhile: hours of reading would be for nothing. It also sees to it that a Kafka
// transaction does not grow old while rows come slowly.
func (s *session) guardSnapshot(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop, end := context.WithCancel(ctx)
	var running sync.WaitGroup
	if s.cfg.CatalogCheck > 0 {
		running.Go(func() {
			for sleep(stop, s.cfg.CatalogCheck) {
				if err := s.catalogCheck(stop); err != nil && stop.Err() == nil {
					cancel(err)
					return
				}
			}
		})
	}
	if s.exact != nil {
		running.Go(func() {
			if err := s.exact.tend(stop, ctx); err != nil {
				cancel(err)
			}
		})
	}
	return ctx, func() {
		end()
		running.Wait()
		s.dropWatchCatalog()
		cancel(nil)
	}
}

// onlySnapshot ends a connector that was to read rows only. Its slot is dropped: nobody would read
// it, and it would keep WAL for ever.
func (s *session) onlySnapshot() error {
	if s.cfg.SnapshotMode != snapshotOnly {
		return nil
	}
	s.dropAtEnd = true
	return errDone
}

// snapshotOnly is the snapshot.mode of a connector that stops after the snapshot.
const snapshotOnly = "initial_only"

// published lists the captured tables that the publication announces, with columns and filters.
func (s *session) published(ctx context.Context) ([]catalog.Published, error) {
	all, err := s.catalog.Published(ctx, s.cfg.Publication)
	if err != nil {
		return nil, pgdial.Wrap(err)
	}
	var out []catalog.Published
	for _, p := range all {
		if s.tables.captured(p.Relation) {
			out = append(out, p)
		}
	}
	if s.repair == nil {
		return out, nil
	}
	return s.startRepair(ctx, out)
}

// attempt reads tables in one snapshot, and returns those that were rewritten under it, as the
// catalog has them now.
func (s *session) attempt(
	ctx context.Context, tables []catalog.Published,
) (again []catalog.Published, err error) {
	reader, at, err := s.openReader(ctx)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	if err := s.storeAttempt(ctx, reader, at, tables); err != nil {
		return nil, err
	}
	crashPoint("snapshot-begun")
	for i, p := range tables {
		s.progress.tablesLeft.Store(int64(len(tables) - i))
		s.metrics.SnapshotTablesRemaining(len(tables) - i)
		err := s.readTable(ctx, reader, p, at)
		switch {
		case errors.Is(err, snapshot.ErrRewritten), errors.Is(err, snapshot.ErrGone):
			now, lookErr := s.catalog.RelationOf(ctx, p.Relation.OID, s.cfg.Publication)
			switch {
			case errors.Is(lookErr, catalog.ErrNoRelation),
				lookErr == nil && !s.tables.captured(now.Relation):
				s.log.Warn("a table went away during its snapshot", "table", tableName(p.Relation))
				err = s.tableState(ctx, p.Relation, offsets.TableSkipped, 0)
			case lookErr != nil:
				err = pgdial.Wrap(lookErr)
			default:
				s.log.Warn("a table was rewritten or renamed during its snapshot; it begins again",
					"table", tableName(p.Relation))
				again = append(again, now)
				err = nil
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return again, nil
}

// openReader returns the slot's exported snapshot the first time, one taken now after that.
func (s *session) openReader(ctx context.Context) (*snapshot.Reader, offsets.LSN, error) {
	if r := s.exported; r != nil {
		s.exported = nil
		if s.begin == s.exportedAt {
			return r, s.begin, nil
		}
		r.Close() // of a slot that somebody has replaced since
	}
	// Read before the wait for commits in flight: whatever the snapshot does not see commits later.
	at, err := s.src.WALInsert(ctx)
	if err != nil {
		return nil, 0, err
	}
	r, err := snapshot.OpenSettled(ctx, snapshot.Options{
		Database: s.cfg.Database, AppName: s.c.appName(), LockTimeout: s.cfg.SnapshotLockTimeout,
	}, func(text string) { s.log.Warn(text) })
	return r, at, err
}

// storeAttempt stores the attempt before a row of it is produced.
func (s *session) storeAttempt(
	ctx context.Context, r *snapshot.Reader, at offsets.LSN, tables []catalog.Published,
) error {
	until, err := r.WALInsert(ctx)
	if err != nil {
		return err
	}
	xmin, xmax, running, err := snapshot.ParseDescriptor(r.Descriptor)
	if err != nil {
		return err
	}
	return s.saveRecord(ctx, func(rec *offsets.Record) {
		state := cloneState(rec.Snapshot)
		a := offsets.SnapshotAttempt{
			ID: len(state.Attempts) + 1, Position: at, Until: until, XMin: xmin, XMax: xmax,
			Running: running, Exact: at == s.begin,
		}
		state.Attempts = append(state.Attempts, a)
		for _, p := range tables {
			t := state.Tables[stateName(p.Relation)]
			t.Status, t.OID, t.Last, t.Rows = offsets.TableRunning, p.Relation.OID, a.ID, 0
			if t.First == 0 {
				t.First = a.ID
			}
			state.Tables[stateName(p.Relation)] = t
		}
		rec.Snapshot = state
	})
}

// cloneState copies what is about to change: the record that is stored stays as it is.
func cloneState(in *offsets.SnapshotState) *offsets.SnapshotState {
	out := *in
	out.Attempts = append([]offsets.SnapshotAttempt(nil), in.Attempts...)
	out.Tables = make(map[string]offsets.TableState, len(in.Tables))
	for k, v := range in.Tables {
		out.Tables[k] = v
	}
	return &out
}

// readTable sends every row of one table and waits until the broker has them all.
func (s *session) readTable(
	ctx context.Context, r *snapshot.Reader, p catalog.Published, at offsets.LSN,
) error {
	t, err := s.tables.lookup(ctx, p.Relation)
	if err != nil {
		return err
	}
	began := time.Now()
	s.progress.rows.Store(0)
	s.progress.estimate.Store(r.Estimate(ctx, p.Relation.OID))
	s.log.Info("reading a table", "table", tableName(p.Relation), "estimate",
		s.progress.estimate.Load())
	from := envelope.Snapshot{
		Pos:    offsets.Position{History: s.record.History, CommitLSN: at, Index: -1},
		Micros: began.UnixMicro(), LSN: at,
	}
	over, err := s.beginTable(ctx, t, from)
	if err != nil {
		return err
	}
	defer over()
	said := began
	rows, err := r.Read(ctx, snapshot.Table{
		Relation: p.Relation, Filter: p.RowFilter, Omits: t.compiled.Omits,
	},
		func(row schema.Tuple) error {
			n := s.progress.rows.Add(1)
			if n%1024 == 0 && time.Since(said) > 10*time.Second {
				said = time.Now()
				s.sayProgress(tableName(p.Relation), began)
			}
			return s.snapshotRow(ctx, t, row, from)
		})
	if err != nil {
		return err
	}
	if s.exact == nil { // else the rows and the table's state are in one transaction
		if err := s.producer.Flush(ctx); err != nil {
			return err
		}
	}
	if err := s.endTable(ctx, t, from); err != nil {
		return err
	}
	s.log.Info("table read", "table", tableName(p.Relation), "rows", rows,
		"seconds", time.Since(began).Seconds())
	crashPoint("table-read")
	return s.tableState(ctx, p.Relation, offsets.TableDone, rows)
}

func (s *session) sayProgress(table string, began time.Time) {
	rows, estimate := s.progress.rows.Load(), s.progress.estimate.Load()
	eta := "unknown"
	if rate := float64(rows) / time.Since(began).Seconds(); estimate > rows && rate > 0 {
		eta = time.Duration(float64(estimate-rows) / rate * float64(time.Second)).Round(time.Second).
			String()
	}
	s.log.Info("snapshot", "table", table, "rows", rows, "estimate", estimate,
		"tables_left", s.progress.tablesLeft.Load(), "eta", eta)
}

// tableState stores what became of a table.
func (s *session) tableState(
	ctx context.Context, rel *schema.Relation, status offsets.TableStatus, rows int64,
) error {
	return s.saveRecord(ctx, func(rec *offsets.Record) {
		state := cloneState(rec.Snapshot)
		t := state.Tables[stateName(rel)]
		t.Status, t.OID, t.Rows = status, rel.OID, rows
		state.Tables[stateName(rel)] = t
		rec.Snapshot = state
	})
}

// snapshotDone stores the first position: the slot's point, where the stream begins. From here on
// a start resumes.
func (s *session) snapshotDone(ctx context.Context) error {
	crashPoint("snapshot-read")
	s.progress.tablesLeft.Store(-1)
	s.metrics.SnapshotTablesRemaining(0)
	err := s.saveRecord(ctx, func(rec *offsets.Record) {
		state := cloneState(rec.Snapshot)
		state.Done = true
		for name, t := range state.Tables {
			if t.Status == offsets.TableRunning {
				// Begun, and then dropped, renamed or no longer captured.
				t.Status = offsets.TableSkipped
				state.Tables[name] = t
				s.log.Warn("a table is gone that the snapshot had begun with", "table", name)
			}
		}
		rec.Snapshot, rec.Intent, rec.LSN = state, nil, s.begin
	})
	if err != nil {
		return err
	}
	crashPoint("snapshot-stored")
	if s.repair != nil {
		if err := s.repaired(ctx); err != nil {
			return err
		}
	}
	return s.onlySnapshot()
}

func tableName(rel *schema.Relation) string { return rel.Namespace + "." + rel.Name }

// stateName is a table's name in the offsets record: that of "a.b".c is not that of a."b.c".
func stateName(rel *schema.Relation) string {
	quote := func(name string) string {
		if !strings.ContainsAny(name, `."`) {
			return name
		}
		return source.QuoteIdent(name)
	}
	return quote(rel.Namespace) + "." + quote(rel.Name)
}
