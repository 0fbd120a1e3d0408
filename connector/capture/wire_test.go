package capture

import (
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/offsets"
	"github.com/tidemark-cdc/tidemark/testenv"
)

// The tests of this file hold the facts of PostgreSQL's behaviour that the design rests on.

const table = "CREATE TABLE t (id int PRIMARY KEY, v text); CREATE PUBLICATION pub FOR TABLE t"

func TestF60RowsOfACopyShareTheirLSN(t *testing.T) {
	t.Parallel()
	s := newSource(t, testenv.SharedPostgres(t, "18"), table)
	_, point := s.slot()
	if _, err := s.conn.PgConn().CopyFrom(timeout(t), strings.NewReader("1\ta\n2\tb\n3\tc\n"),
		"COPY t FROM STDIN"); err != nil {
		t.Fatal(err)
	}
	r := read(t, s.start(point))
	r.expect("begin", "relation t", "insert t1 ta", "insert t2 tb", "insert t3 tc", "commit")
	if r.starts[2] != r.starts[3] || r.starts[3] != r.starts[4] {
		t.Errorf("the rows' LSNs differ: %v", r.starts[2:5])
	}
	if r.starts[1] != 0 {
		t.Errorf("the Relation message has LSN %s, not 0/0", r.starts[1])
	}
	if r.starts[0] != r.starts[2] {
		t.Errorf("Begin has LSN %s, its first change %s", r.starts[0], r.starts[2])
	}
	if r.starts[5] != r.commits[0] {
		t.Errorf("Commit's header is %s, the end LSN is %s", r.starts[5], r.commits[0])
	}
}

func TestARestartAtTheCommitRecordRepeatsAndAtItsEndDoesNot(t *testing.T) {
	t.Parallel()
	s := newSource(t, testenv.SharedPostgres(t, "18"), table)
	_, point := s.slot()
	s.exec("INSERT INTO t VALUES (1, 'a')", "INSERT INTO t VALUES (2, 'b')")
	st := s.start(point)
	r := read(t, st)
	r.expect("begin", "relation t", "insert t1 ta", "commit", "begin", "insert t2 tb", "commit")
	final, end := r.finals[0], r.commits[0]
	if err := st.Close(timeout(t)); err != nil {
		t.Fatal(err)
	}

	st = s.start(final)
	read(t, st).expect("begin", "relation t", "insert t1 ta", "commit")
	if err := st.Close(timeout(t)); err != nil {
		t.Fatal(err)
	}
	st = s.start(end)
	read(t, st).expect("begin", "relation t", "insert t2 tb", "commit")
	if err := st.Close(timeout(t)); err != nil {
		t.Fatal(err)
	}
}

func TestF53AnOlderStartIsForwardedInSilence(t *testing.T) {
	t.Parallel()
	s := newSource(t, testenv.SharedPostgres(t, "18"), table)
	_, point := s.slot()
	s.exec("INSERT INTO t VALUES (1, 'a')")
	st := s.start(point)
	r := read(t, st)
	r.expect("begin", "relation t", "insert t1 ta", "commit")
	st.SetFlushed(r.commits[0])
	if err := st.Close(timeout(t)); err != nil {
		t.Fatal(err)
	}
	if got := s.confirmed(); got != r.commits[0] {
		t.Fatalf("the slot is at %s after the last status update, want %s", got, r.commits[0])
	}
	s.exec("INSERT INTO t VALUES (2, 'b')")
	read(t, s.start(point)).expect("begin", "relation t", "insert t2 tb", "commit")
}

// confirmed is the slot's confirmed_flush_lsn.
func (s *source) confirmed() offsets.LSN {
	s.t.Helper()
	return s.lsn("SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = " +
		quoteLiteral(s.db.Name))
}

func TestAStartBeyondTheWALSwallowsCommits(t *testing.T) {
	t.Parallel()
	s := newSource(t, testenv.SharedPostgres(t, "18"), table)
	s.slot()
	st := s.start(0xFF00000000)
	r := read(t, st)
	s.exec("INSERT INTO t VALUES (1, 'a')")
	r.quiet(s.lsn("SELECT pg_current_wal_lsn()"))
}

func TestOldTuplesFollowTheReplicaIdentity(t *testing.T) {
	t.Parallel()
	s := newSource(t, testenv.SharedPostgres(t, "18"), table)
	_, point := s.slot()
	s.exec(
		"INSERT INTO t VALUES (1, 'a')",
		"UPDATE t SET v = 'b'",
		"UPDATE t SET id = 2",
		"DELETE FROM t",
		"ALTER TABLE t REPLICA IDENTITY FULL",
		"INSERT INTO t VALUES (3, NULL)",
		"UPDATE t SET v = 'c'",
		"DELETE FROM t",
	)
	read(t, s.start(point)).expect(
		"begin", "relation t", "insert t1 ta", "commit",
		"begin", "update t1 tb", "commit",
		"begin", "update K t1 n N t2 tb", "commit",
		"begin", "delete K t2 n N", "commit",
		"begin", "relation t", "insert t3 n", "commit",
		"begin", "update O t3 n N t3 tc", "commit",
		"begin", "delete O t3 tc N", "commit",
	)
}

func TestUnchangedToastIsInTheOldTupleUnderFull(t *testing.T) {
	t.Parallel()
	s := newSource(t, testenv.SharedPostgres(t, "18"), table,
		"ALTER TABLE t ADD n int, ALTER v SET STORAGE EXTERNAL, REPLICA IDENTITY FULL")
	big := strings.Repeat("x", 5000)
	_, point := s.slot()
	s.exec("INSERT INTO t VALUES (1, repeat('x', 5000), 1)", "UPDATE t SET n = 2")
	read(t, s.start(point)).expect(
		"begin", "relation t", "insert t1 t"+big+" t1", "commit",
		"begin", "update O t1 t"+big+" t1 N t1 u t2", "commit",
	)
}

func TestF59APreparedTransactionComesAtItsCommit(t *testing.T) {
	t.Parallel()
	s := newSource(t, testenv.SharedPostgres(t, "18"), table)
	_, point := s.slot()
	s.exec("BEGIN", "INSERT INTO t VALUES (1, 'a')", "PREPARE TRANSACTION 'one_"+s.db.Name+"'")
	s.exec("BEGIN", "INSERT INTO t VALUES (2, 'b')", "PREPARE TRANSACTION 'two_"+s.db.Name+"'")
	r := read(t, s.start(point))
	r.quiet(s.lsn("SELECT pg_current_wal_lsn()"))
	s.exec("ROLLBACK PREPARED 'one_"+s.db.Name+"'", "COMMIT PREPARED 'two_"+s.db.Name+"'")
	r.expect("begin", "relation t", "insert t2 tb", "commit")
}

func TestAMessageOutsideOfTransactionsComesBeforeItsBegin(t *testing.T) {
	t.Parallel()
	s := newSource(t, testenv.SharedPostgres(t, "18"), table)
	_, point := s.slot()
	s.exec(
		"BEGIN; INSERT INTO t VALUES (1, 'a');"+
			"SELECT pg_logical_emit_message(false, 'app', 'at once');"+
			"SELECT pg_logical_emit_message(true, 'app', 'in its turn'); COMMIT",
		"BEGIN; SELECT pg_logical_emit_message(false, 'app', 'survives'); ROLLBACK",
	)
	r := read(t, s.start(point))
	r.expect("message app at once false", "begin", "relation t", "insert t1 ta",
		"message app in its turn true", "commit", "message app survives false")
	if r.starts[0] <= r.starts[1] {
		t.Errorf("the message's LSN %s is not above that of the Begin after it, %s",
			r.starts[0], r.starts[1])
	}
}

func TestMessagesAreNotSentUnlessAskedFor(t *testing.T) {
	t.Parallel()
	s := newSource(t, testenv.SharedPostgres(t, "18"), table)
	name, point := s.slot()
	s.exec("SELECT pg_logical_emit_message(false, 'app', 'x')", "INSERT INTO t VALUES (1, 'a')")
	st := s.startWith(StartOptions{Slot: name, Publication: "pub", Start: point})
	read(t, st).expect("begin", "relation t", "insert t1 ta", "commit")
}

func TestAPublicationIsTakenByItsExactName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"MyPub", "My,Pub", `My"Pub`, "My'Pub", `My\Pub`, "my pub"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSource(t, testenv.SharedPostgres(t, "18"), "CREATE TABLE t (id int PRIMARY KEY)",
				"CREATE PUBLICATION "+quoteIdent(name)+" FOR TABLE t")
			slot, point := s.slot()
			s.exec("INSERT INTO t VALUES (1)")
			st := s.startWith(StartOptions{Slot: slot, Publication: name, Start: point})
			read(t, st).expect("begin", "relation t", "insert t1", "commit")
		})
	}
}

func TestATableWithoutColumns(t *testing.T) {
	t.Parallel()
	s := newSource(t, testenv.SharedPostgres(t, "18"),
		"CREATE TABLE none ()", "CREATE PUBLICATION pub FOR TABLE none WITH (publish = 'insert')")
	_, point := s.slot()
	s.exec("INSERT INTO none DEFAULT VALUES")
	read(t, s.start(point)).expect("begin", "relation none", "insert", "commit")
}

func TestF55AMissingPublicationIsAWarningFrom18On(t *testing.T) {
	t.Parallel()
	s := newSource(t, testenv.SharedPostgres(t, "18"), "CREATE TABLE t (id int PRIMARY KEY)")
	_, point := s.slot()
	s.exec("INSERT INTO t VALUES (1)")
	r := read(t, s.start(point))
	r.expect(`WARNING: skipped loading publication "pub"`)
}

func TestF55AMissingPublicationIsAnErrorUpTo17(t *testing.T) {
	t.Parallel()
	s := newSource(t, testenv.SharedPostgres(t, "17"), "CREATE TABLE t (id int PRIMARY KEY)")
	_, point := s.slot()
	s.exec("INSERT INTO t VALUES (1)")
	err := read(t, s.start(point)).fails()
	if fault.CodeOf(err) != fault.PublicationChanged {
		t.Fatalf("error %v", err)
	}
}

func TestValuesAreInThePinnedForms(t *testing.T) {
	t.Parallel()
	s := newSource(t, testenv.SharedPostgres(t, "18"),
		"CREATE TABLE t (a date, b interval, c bytea, d float8, e timestamptz)",
		"CREATE PUBLICATION pub FOR TABLE t WITH (publish = 'insert')")
	s.exec(
		"ALTER DATABASE "+quoteIdent(s.db.Name)+" SET DateStyle = 'German'",
		"ALTER DATABASE "+quoteIdent(s.db.Name)+" SET TimeZone = 'America/New_York'",
		"ALTER DATABASE "+quoteIdent(s.db.Name)+" SET bytea_output = 'escape'",
		"ALTER DATABASE "+quoteIdent(s.db.Name)+" SET extra_float_digits = 0",
	)
	_, point := s.slot()
	s.exec(`INSERT INTO t VALUES ('0044-03-15 BC', '-1 year -2 months 3 days',
		'\xdeff', 0.30000000000000004, '2024-02-29 12:00:00+00')`)
	read(t, s.start(point)).expect("begin", "relation t",
		`insert t0044-03-15 BC tP-1Y-2M3D t\xdeff t0.30000000000000004 t2024-02-29 12:00:00+00`,
		"commit")
}
