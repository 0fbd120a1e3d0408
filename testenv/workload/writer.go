package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// writer is one connection that writes transactions, each a single message of statements.
type writer struct {
	w      *Workload
	number int
	random *rand.Rand
	left   *atomic.Int64
	conn   *pgx.Conn
	stats  Stats
	serial int64 // of gids, copied keys and added columns
	added  []string
}

// transaction is what a kind makes: statements, and what becomes of them.
type transaction struct {
	sql    string   // with BEGIN and its end
	abort  bool     // it ends with ROLLBACK
	noise  bool     // it changes nothing that is captured
	after  []string // what follows, each in a message of its own: COMMIT PREPARED wants that
	copied string   // rows of table copied, in COPY's text format
}

func newWriter(w *Workload, number int, left *atomic.Int64) *writer {
	return &writer{
		w: w, number: number, left: left,
		random: rand.New(rand.NewPCG(w.o.Seed, uint64(w.run)<<16|uint64(number))),
		stats:  Stats{Kinds: map[string]int64{}},
	}
}

func (x *writer) run(ctx context.Context) error {
	defer func() {
		if x.conn != nil {
			_ = x.conn.Close(context.WithoutCancel(ctx))
		}
	}()
	began := time.Now()
	for ctx.Err() == nil && x.left.Load() > 0 && !x.w.ending.Load() {
		if x.conn == nil {
			conn, err := connect(ctx, x.w.o.URL)
			if err != nil {
				return nil //nolint:nilerr // ctx has ended: connect tries until then
			}
			x.conn = conn
			// What a lost connection left prepared holds locks.
			if err := settle(ctx, conn, x.gid()); err != nil && !gone(conn, err) {
				return err
			}
		}
		k := x.draw()
		if err := x.write(ctx, k); err != nil && ctx.Err() == nil {
			return fmt.Errorf("workload, %s: %w", k.name, err)
		}
		x.pace(ctx, began)
	}
	return nil
}

// gid is what the names of this writer's prepared transactions begin with. They are the server's, not
// the database's.
func (x *writer) gid() string {
	return fmt.Sprintf("workload-%s-%d-%d-", x.w.database(), x.w.run, x.number)
}

// pace keeps this writer's share of the rate.
func (x *writer) pace(ctx context.Context, began time.Time) {
	if x.w.o.Rate <= 0 {
		return
	}
	share := x.w.o.Rate / float64(x.w.o.Writers)
	due := began.Add(time.Duration(float64(x.stats.Changes) / share * float64(time.Second)))
	select {
	case <-ctx.Done():
	case <-time.After(time.Until(due)):
	}
}

func (x *writer) draw() kind {
	n := x.random.IntN(x.w.total)
	for _, k := range x.w.kinds {
		if n -= k.weight; n < 0 {
			return k
		}
	}
	panic("workload: the weights do not add up")
}

// write makes one transaction of a kind. An expected refusal is counted; after a lost connection
// nobody knows, and nobody needs to: the database does.
func (x *writer) write(ctx context.Context, k kind) error {
	tx := k.make(x)
	x.stats.Kinds[k.name]++
	changes, err := x.send(ctx, tx)
	switch {
	case err == nil && tx.abort:
		x.stats.Aborts++
	case err == nil:
		if tx.noise {
			changes = 0
		}
		x.stats.Transactions++
		x.stats.Changes += changes
		x.left.Add(-changes)
	case refused(err):
		x.stats.Refused++
		if _, err := x.conn.PgConn().Exec(ctx, "ROLLBACK").ReadAll(); err != nil {
			x.drop(ctx)
		}
	case gone(x.conn, err):
		x.stats.Lost++
		x.drop(ctx)
	default:
		return err
	}
	return nil
}

func (x *writer) drop(ctx context.Context) {
	_ = x.conn.Close(ctx) // it is lost already
	x.conn = nil
}

// send runs a transaction and returns how many rows it changed.
func (x *writer) send(ctx context.Context, tx transaction) (int64, error) {
	changes, err := x.exec(ctx, tx.sql)
	if err != nil {
		return 0, err
	}
	if tx.copied != "" {
		tag, err := x.conn.PgConn().CopyFrom(ctx, strings.NewReader(tx.copied),
			"COPY w.copied (id, v, note, qty, price, tags) FROM STDIN")
		if err != nil {
			return 0, err
		}
		changes += tag.RowsAffected()
	}
	for _, sql := range tx.after {
		if _, err := x.exec(ctx, sql); err != nil {
			return 0, err
		}
	}
	return changes, nil
}

func (x *writer) exec(ctx context.Context, sql string) (changes int64, err error) {
	if sql == "" {
		return 0, nil
	}
	results, err := x.conn.PgConn().Exec(ctx, sql).ReadAll()
	if err != nil {
		return 0, err
	}
	var atSavepoint int64
	for _, r := range results {
		switch tag := r.CommandTag; {
		case tag.Insert(), tag.Update(), tag.Delete():
			changes += tag.RowsAffected()
		case tag.String() == "SAVEPOINT":
			atSavepoint = changes
		case tag.String() == "ROLLBACK": // also ROLLBACK TO
			changes = atSavepoint
		}
	}
	return changes, nil
}
