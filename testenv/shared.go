package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
)

// shared are the servers of SharedPostgres and SharedRegistry, started at the first call for one.
var shared struct {
	sync.Mutex
	hasMain  bool
	servers  map[string]*Postgres
	registry *Registry
}

// Main is the body of TestMain in a package whose tests start servers: it runs the tests, closes the
// shared servers, and fails the process when a server, a directory or a goroutine is left. It does
// not return.
func Main(m interface{ Run() int }, options ...goleak.Option) {
	shared.Lock()
	shared.hasMain = true
	shared.Unlock()
	code := m.Run()
	err := closeShared()
	if left := Remaining(); len(left) > 0 {
		err = errors.Join(err, fmt.Errorf("left behind: %s", strings.Join(left, "; ")))
	}
	if code == 0 { // after a failure, goroutines of the failed test are no news
		err = errors.Join(err, goleak.Find(options...))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testenv:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func closeShared() error {
	shared.Lock()
	defer shared.Unlock()
	var err error
	for version, p := range shared.servers {
		err = errors.Join(err, p.Close())
		delete(shared.servers, version)
	}
	if shared.registry != nil {
		err = errors.Join(err, shared.registry.Close())
		shared.registry = nil
	}
	return err
}

// SharedPostgres returns the server of a major version that the tests of this process share;
// "" is the default version. Whoever stops it starts it again. The package's TestMain calls Main.
func SharedPostgres(t T, version string) *Postgres {
	t.Helper()
	if version == "" {
		version = "18"
	}
	shared.Lock()
	defer shared.Unlock()
	if !shared.hasMain {
		t.Fatalf("SharedPostgres: nobody would stop the server; call testenv.Main in TestMain")
	}
	if p := shared.servers[version]; p != nil {
		return p
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	p, err := StartPostgres(ctx, PostgresOptions{Version: version})
	if err != nil {
		t.Fatalf("SharedPostgres: %v", err)
	}
	if shared.servers == nil {
		shared.servers = map[string]*Postgres{}
	}
	shared.servers[version] = p
	return p
}

// SharedRegistry returns the real registry that the tests of this process share, of global level
// BACKWARD; each test has subjects of its own. The package's TestMain calls Main.
func SharedRegistry(t T) *Registry {
	t.Helper()
	RequireJava(t)
	shared.Lock()
	defer shared.Unlock()
	if !shared.hasMain {
		t.Fatalf("SharedRegistry: nobody would stop the registry; call testenv.Main in TestMain")
	}
	if shared.registry == nil {
		r, err := StartRegistry(context.Background(), RegistryOptions{})
		if err != nil {
			t.Fatalf("SharedRegistry: %v", err)
		}
		shared.registry = r
	}
	return shared.registry
}

var databases atomic.Int64

// NewDatabase makes an empty database on p, unique in this process, and returns its name. When the
// test ends its connections are cut, its replication slots and the database are dropped.
func NewDatabase(t T, p *Postgres) string {
	t.Helper()
	name := "db" + strconv.FormatInt(databases.Add(1), 10) + "_" + identifierOf(t.Name())
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := p.Exec(ctx, "postgres", "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()); err != nil {
		t.Fatalf("NewDatabase: %v", err)
	}
	t.Cleanup(func() {
		if p.PID() == 0 {
			return // stopped by the test: its files go with the server
		}
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := p.DropDatabase(ctx, name); err != nil {
			t.Fatalf("drop database %s: %v", name, err)
		}
	})
	return name
}

// DropDatabase drops a database along with what prevents it: prepared transactions, replication
// slots, and the sessions that use them.
func (p *Postgres) DropDatabase(ctx context.Context, name string) error {
	conn, err := p.Connect(ctx, "postgres")
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	if err := p.rollBackPrepared(ctx, name); err != nil {
		return err
	}
	// New sessions are refused from here on, so that a client that tries again takes no slot.
	quoted := pgx.Identifier{name}.Sanitize()
	if _, err := conn.Exec(ctx, "ALTER DATABASE "+quoted+" ALLOW_CONNECTIONS false"); err != nil {
		return err
	}
	for {
		var left int
		err := conn.QueryRow(ctx, `SELECT count(pg_terminate_backend(active_pid)) +
			count(*) FILTER (WHERE active_pid IS NOT NULL)
			FROM pg_replication_slots WHERE database = $1`, name).Scan(&left)
		if err != nil {
			return err
		}
		if left == 0 {
			break
		}
	}
	_, err = conn.Exec(ctx, `SELECT pg_drop_replication_slot(slot_name)
		FROM pg_replication_slots WHERE database = $1`, name)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "DROP DATABASE "+quoted+" WITH (FORCE)")
	return err
}

// DropSlot is the SQL that drops a slot as soon as nobody has it: the server keeps it active for a
// moment after the connection that streamed from it was closed. After ten seconds the drop fails.
func DropSlot(name string) string {
	return fmt.Sprintf(`DO $$ BEGIN
		FOR i IN 1..1000 LOOP
			EXIT WHEN NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = %[1]s AND active);
			PERFORM pg_sleep(0.01);
		END LOOP;
		PERFORM pg_drop_replication_slot(%[1]s);
	END $$`, quoteLiteral(name))
}

// rollBackPrepared ends the prepared transactions of a database, from within it as the server
// demands.
func (p *Postgres) rollBackPrepared(ctx context.Context, name string) error {
	conn, err := p.Connect(ctx, name)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, "SELECT gid FROM pg_prepared_xacts WHERE database = $1", name)
	if err != nil {
		return err
	}
	gids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, gid := range gids {
		_, rollback := conn.Exec(ctx, "ROLLBACK PREPARED "+quoteLiteral(gid))
		err = errors.Join(err, rollback)
	}
	return err
}

// identifierOf makes a test's name a part of a database's: lower case letters, digits and
// underscores, short enough for the 63 bytes of a name.
func identifierOf(name string) string {
	short := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + ('a' - 'A')
		}
		return '_'
	}, name)
	return short[:min(len(short), 40)]
}
