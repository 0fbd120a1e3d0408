package testenv

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/testenv/download"
)

// PostgresOptions say how a PostgreSQL server differs from the usual one. The zero value is
// PostgreSQL 18 without TLS.
type PostgresOptions struct {
	Version  string            // major version, one of download.PostgresVersions; "" is "18"
	Settings map[string]string // server settings, over those of postgresDefaults
	Fsync    bool              // for tests that kill the server and want its promises kept
	TLS      bool              // TCP connections must use TLS
	HBA      []string          // lines of pg_hba.conf, before the usual ones
}

// A Postgres is a server of its own cluster: superuser postgres, with a password, over TCP on
// loopback. Its methods may be called from several goroutines.
type Postgres struct {
	Version  string // major
	Host     string
	Port     int
	User     string
	Password string
	DataDir  string
	LogFile  string // what the server wrote
	CAFile   string // the authority of the server's certificate; "" without TLS

	binDir string
	dir    string

	mu      sync.Mutex
	process *process
	closed  bool
}

// postgresReadyAfter bounds the start, recovery after a kill under load included.
const postgresReadyAfter = 60 * time.Second

// StartPostgres makes a cluster and starts its server; it returns when the server takes connections.
// The caller closes it. The first call for a version downloads 15 MB.
func StartPostgres(ctx context.Context, o PostgresOptions) (*Postgres, error) {
	if o.Version == "" {
		o.Version = "18"
	}
	binDir, err := download.Postgres(o.Version)
	if err != nil {
		return nil, err
	}
	template, err := postgresTemplate(o.Version, binDir)
	if err != nil {
		return nil, err
	}
	p, err := newPostgres(o.Version, binDir)
	if err != nil {
		return nil, err
	}
	err = copyTree(template, p.DataDir, serverUser(), nil)
	if err == nil {
		err = newIdentity(p.DataDir)
	}
	if err == nil {
		err = p.configure(o)
	}
	if err == nil {
		err = p.Start(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// newPostgres makes the directory of a server that has no data directory yet.
func newPostgres(version, binDir string) (*Postgres, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	dir, err := newRunDir("postgres" + version)
	if err != nil {
		return nil, err
	}
	return &Postgres{
		Version: version, Host: "127.0.0.1", Port: port, User: "postgres",
		Password: postgresPassword, DataDir: filepath.Join(dir, "data"),
		LogFile: filepath.Join(dir, "server.log"), binDir: binDir, dir: dir,
	}, nil
}

// configure writes the certificates and the configuration.
func (p *Postgres) configure(o PostgresOptions) error {
	if o.TLS {
		certs, err := NewCertificates(p.dir)
		if err != nil {
			return err
		}
		p.CAFile = certs.CAFile
		if err := giveTo(serverUser(), certs.KeyFile); err != nil {
			return err
		}
	}
	return p.writeConfiguration(o)
}

// Start starts the server again after Stop or Kill, on the same port and data directory, and waits
// until it takes connections. It does nothing while the server runs.
func (p *Postgres) Start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return fmt.Errorf("PostgreSQL %s on port %d is closed", p.Version, p.Port)
	}
	if p.process != nil && p.process.alive() {
		return nil
	}
	log, err := os.OpenFile(p.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the child has its own
	cmd := exec.Command(filepath.Join(p.binDir, "bin", "postgres"), "-D", p.DataDir)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = p.dir, serverEnvironment(), log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: serverUser()}
	// SIGQUIT is the server's immediate shutdown: it ends its children too.
	if p.process, err = startProcess(cmd, p.dir, syscall.SIGQUIT); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, postgresReadyAfter)
	defer cancel()
	if err := p.awaitReady(ctx); err != nil {
		return fmt.Errorf("PostgreSQL %s did not start: %w\n%w", p.Version, err,
			errors.Join(p.process.kill(), tailError(p.LogFile)))
	}
	return nil
}

// awaitReady waits until the server says in its pid file that it takes connections, as pg_ctl does,
// since a process is forked for each attempt to connect; then it connects.
func (p *Postgres) awaitReady(ctx context.Context) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	last := errors.New("the server's pid file does not say that it is ready")
	for {
		if lines := p.pidFile(); lines[0] == strconv.Itoa(p.process.pid) && lines[7] == "ready" {
			conn, err := p.Connect(ctx, "postgres")
			if err == nil {
				return conn.Close(ctx)
			}
			last = err
		}
		select {
		case <-p.process.done:
			return fmt.Errorf("the server ended: %w", p.process.err)
		case <-ctx.Done():
			return errors.Join(ctx.Err(), last)
		case <-tick.C:
		}
	}
}

// URL returns a connection string for a database. With TLS it demands the server's certificate.
func (p *Postgres) URL(db string) string {
	query := url.Values{"sslmode": {"disable"}}
	if p.CAFile != "" {
		query = url.Values{"sslmode": {"verify-full"}, "sslrootcert": {p.CAFile}}
	}
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(p.User, p.Password), Path: "/" + db,
		Host: net.JoinHostPort(p.Host, strconv.Itoa(p.Port)), RawQuery: query.Encode(),
	}
	return u.String()
}

// Connect opens a connection as the superuser; the caller closes it.
func (p *Postgres) Connect(ctx context.Context, db string) (*pgx.Conn, error) {
	return pgx.Connect(ctx, p.URL(db))
}

// Exec runs SQL in a database. Several statements are one transaction, but for BEGIN and COMMIT in it.
func (p *Postgres) Exec(ctx context.Context, db, sql string) error {
	conn, err := p.Connect(ctx, db)
	if err != nil {
		return err
	}
	_, err = conn.PgConn().Exec(ctx, sql).ReadAll()
	return errors.Join(err, conn.Close(ctx))
}

// PID returns the postmaster's process id, or 0 when the server does not run.
func (p *Postgres) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process == nil || !p.process.alive() {
		return 0
	}
	return p.process.pid
}

// Stop shuts the server down and waits until all its processes are gone. mode is "smart" (waits for
// clients), "fast" (disconnects them, writes a checkpoint, waits for walsenders to send all) or
// "immediate" (as a crash; the next start recovers). When ctx ends first the server is killed.
func (p *Postgres) Stop(ctx context.Context, mode string) error {
	signals := map[string]syscall.Signal{
		"smart": syscall.SIGTERM, "fast": syscall.SIGINT, "immediate": syscall.SIGQUIT,
	}
	sig, ok := signals[mode]
	if !ok {
		return fmt.Errorf("shutdown mode %q: have smart, fast, immediate", mode)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process == nil {
		return nil
	}
	return p.process.stop(ctx, sig)
}

// Kill ends the postmaster and all its children with SIGKILL, as a lost machine would, and returns
// when none runs any more.
func (p *Postgres) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process == nil {
		return nil
	}
	return p.process.kill()
}

// Close stops the server and removes its files. It may be called again.
func (p *Postgres) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	var err error
	if p.process != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err = p.process.stop(ctx, syscall.SIGQUIT)
		p.releaseSharedMemory()
	}
	return errors.Join(err, removeRunDir(p.dir))
}
