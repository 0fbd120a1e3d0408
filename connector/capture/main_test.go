package capture

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/connector/decode"
	"github.com/tidemark-cdc/tidemark/offsets"
	"github.com/tidemark-cdc/tidemark/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// patience bounds every wait of these tests.
const patience = 30 * time.Second

func timeout(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// source is a database of a test with a connection to it.
type source struct {
	t    *testing.T
	pg   *testenv.Postgres
	db   config.Database
	conn *pgx.Conn
}

func newSource(t *testing.T, pg *testenv.Postgres, statements ...string) *source {
	t.Helper()
	name := testenv.NewDatabase(t, pg)
	s := &source{t: t, pg: pg, db: databaseOf(pg, name)}
	conn, err := pg.Connect(timeout(t), name)
	if err != nil {
		t.Fatal(err)
	}
	s.conn = conn
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	s.exec(statements...)
	return s
}

func databaseOf(pg *testenv.Postgres, name string) config.Database {
	db := config.Database{
		Host: pg.Host, Port: uint16(pg.Port), User: pg.User, Name: name,
		Password: config.NewSecret(pg.Password), SSLMode: "disable",
		ConnectTimeout: 10 * time.Second, TCPKeepAlive: true,
	}
	if pg.CAFile != "" {
		db.SSLMode, db.SSLRootCert = "verify-full", pg.CAFile
	}
	return db
}

func (s *source) exec(statements ...string) {
	s.t.Helper()
	for _, sql := range statements {
		if _, err := s.conn.PgConn().Exec(timeout(s.t), sql).ReadAll(); err != nil {
			s.t.Fatalf("%s: %v", sql, err)
		}
	}
}

func query[V any](s *source, sql string) V {
	s.t.Helper()
	var v V
	if err := s.conn.QueryRow(timeout(s.t), sql).Scan(&v); err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func (s *source) lsn(sql string) offsets.LSN {
	s.t.Helper()
	lsn, err := offsets.ParseLSN(query[string](s, "SELECT ("+sql+")::text"))
	if err != nil {
		s.t.Fatal(err)
	}
	return lsn
}

// dial opens a replication connection that the test closes.
func (s *source) dial() *Conn {
	s.t.Helper()
	c, err := Dial(timeout(s.t), s.db, "tidemark-test")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// slot makes a slot, named after the database, which is unique.
func (s *source) slot() (name string, point offsets.LSN) {
	s.t.Helper()
	c := s.dial()
	created, err := c.CreateSlot(timeout(s.t), s.db.Name, false)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := c.Close(timeout(s.t)); err != nil {
		s.t.Fatal(err)
	}
	return s.db.Name, created.ConsistentPoint
}

// start streams publication pub from the slot of the database's name.
func (s *source) start(from offsets.LSN) *Stream {
	s.t.Helper()
	return s.startWith(StartOptions{
		Slot: s.db.Name, Publication: "pub", Start: from, Messages: true,
	})
}

func (s *source) startWith(o StartOptions) *Stream {
	s.t.Helper()
	st, err := s.dial().Start(timeout(s.t), o)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = st.Close(context.Background()) })
	return st
}

// reader reads a stream as text, one line a message, so that tests can say what they expect.
type reader struct {
	t       *testing.T
	st      *Stream
	session *decode.Session
	frames  [][]byte      // payloads so far
	starts  []offsets.LSN // header LSNs of the same
	commits []offsets.LSN // end LSNs
	finals  []offsets.LSN // commit LSNs
}

func read(t *testing.T, st *Stream) *reader {
	return &reader{t: t, st: st, session: decode.NewSession()}
}

// next returns the next data frame or notice as a line.
func (r *reader) next() string {
	r.t.Helper()
	ctx := timeout(r.t)
	for {
		f, err := r.st.Next(ctx)
		if err != nil {
			r.t.Fatalf("after %d frames: %v", len(r.frames), err)
		}
		switch f.Kind {
		case Notice:
			return f.Warning.Severity + ": " + f.Warning.Message
		case Data:
			return r.line(f)
		case Keepalive:
		}
	}
}

func (r *reader) line(f Frame) string {
	r.t.Helper()
	r.frames = append(r.frames, append([]byte(nil), f.Payload...))
	r.starts = append(r.starts, f.Start)
	e, err := r.session.Decode(f.Start, f.Payload)
	if err != nil {
		r.t.Fatal(err)
	}
	switch e.Kind {
	case decode.KindBegin:
		r.finals = append(r.finals, e.Tx.FinalLSN)
		return "begin"
	case decode.KindCommit:
		r.commits = append(r.commits, e.EndLSN)
		return "commit"
	case decode.KindRelation:
		return "relation " + e.Relation.Name
	case decode.KindInsert:
		return "insert" + text(e)
	case decode.KindUpdate:
		return "update" + text(e)
	case decode.KindDelete:
		return "delete" + text(e)
	case decode.KindTruncate:
		return fmt.Sprintf("truncate %d", len(e.Truncated))
	case decode.KindMessage:
		return fmt.Sprintf("message %s %s %t", e.Prefix, e.Content, e.Transactional)
	case decode.KindNone:
	}
	return "type or origin"
}

// text prints a row: the old tuple with its tag, then the new one.
func text(e *decode.Event) string {
	s := ""
	if e.OldKind != 0 {
		s += " " + string(rune(e.OldKind))
		for _, d := range e.Old {
			s += " " + string(rune(d.Kind)) + string(d.Text)
		}
		s += " N"
	}
	for _, d := range e.New {
		s += " " + string(rune(d.Kind)) + string(d.Text)
	}
	return s
}

// expect reads as many lines as are given and compares.
func (r *reader) expect(lines ...string) {
	r.t.Helper()
	for i, want := range lines {
		if got := r.next(); got != want {
			r.t.Fatalf("line %d is %q, want %q", i, got, want)
		}
	}
}

// quiet expects no data up to a keepalive at or after lsn: the server has then decoded that far.
func (r *reader) quiet(lsn offsets.LSN) {
	r.t.Helper()
	ctx := timeout(r.t)
	for {
		r.st.RequestStatus()
		f, err := r.st.Next(ctx)
		if err != nil {
			r.t.Fatal(err)
		}
		if f.Kind == Data {
			r.t.Fatalf("unexpected %s", r.line(f))
		}
		if f.Kind == Keepalive && f.ServerEnd >= lsn {
			return
		}
	}
}

// fails expects Next to end the stream and returns the error.
func (r *reader) fails() error {
	r.t.Helper()
	ctx := timeout(r.t)
	for {
		_, err := r.st.Next(ctx)
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
			r.t.Fatal("the stream goes on")
		}
		if err != nil {
			return err
		}
	}
}

// eventually waits until check holds.
func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !check() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}
