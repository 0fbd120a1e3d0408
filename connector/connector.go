package connector

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/connector/metrics"
	"github.com/tidemark-cdc/tidemark/connector/worker"
	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// Deps are what a connector shares with its process.
type Deps struct {
	Log     *slog.Logger
	Metrics *metrics.Connector
	Version string
}

// Connector runs one connector until it is asked to stop or a person must act.
type Connector struct {
	cfg      *config.Connector
	worker   config.Worker
	log      *slog.Logger
	metrics  *metrics.Connector
	version  string
	instance string          // tells this process's sessions and heartbeats from an earlier one's
	unlogged map[string]bool // tables whose updates leave values out; the running keeper's
	// schemaIDs outlives sessions (tables.compareID); Run's own.
	schemaIDs map[[sha256.Size]byte]int
	gap       error // what ended the last session, when the next one is to repair it; Run's own

	// welcome: the brokers have taken a login of this process.
	welcome atomic.Bool

	mu        sync.Mutex // guards what follows
	state     State
	lastError error
	session   *session // the running one, for Status
}

// New returns a connector that does nothing yet.
func New(cfg *config.Connector, w config.Worker, d Deps) *Connector {
	id := make([]byte, 4)
	_, _ = rand.Read(id) // never fails (crypto/rand)
	return &Connector{
		cfg: cfg, worker: w, log: d.Log, metrics: d.Metrics, version: d.Version,
		instance: hex.EncodeToString(id), state: StateStarting, unlogged: map[string]bool{},
		schemaIDs: map[[sha256.Size]byte]int{},
	}
}

// appName is application_name on every connection: an operator and a later process of ours can
// tell whose it is. PostgreSQL cuts it at 63 bytes, from the end.
func (c *Connector) appName() string { return ownSessions(c.cfg.Name) + c.instance }

func ownSessions(name string) string {
	const most = 63 - len("tidemark//") - 8
	if len(name) > most {
		name = name[:most]
	}
	return "tidemark/" + name + "/"
}

// errDone ends a session that has nothing left to do (snapshot.mode: initial_only).
var errDone = errors.New("nothing is left to do")

// steadyAfter is how long a session must have streamed for its loss to be no repeat of the last
// one's: the back-off and the count of retries begin anew.
const steadyAfter = time.Minute

// Run runs sessions until ctx ends, which is an ordered stop and returns nil, or a fault that a
// person must look at. A connection that is lost is made again with a bounded, growing wait, for
// ever unless errors.max.retries says otherwise; /readyz is red meanwhile.
func (c *Connector) Run(ctx context.Context) error {
	wait := newBackoff(c.cfg.RetryDelayMax)
	for retries := 0; ; {
		began := time.Now()
		err := c.reconsider(c.runSession(ctx))
		if errors.Is(err, errDone) || err == nil || ctx.Err() != nil {
			c.setState(StateStopped)
			c.log.Info("stopped")
			return nil
		}
		if time.Since(began) > steadyAfter {
			wait.reset()
			retries = 0
		}
		c.note(err)
		if classify(err) == stop && c.gap == nil || c.cfg.MaxRetries >= 0 && retries >= c.cfg.MaxRetries {
			c.setState(StateFailed)
			c.log.Error("the connector stops", "code", fault.CodeOf(err), "error", err)
			return err
		}
		retries++
		c.setState(StateWaiting)
		delay := wait.delay()
		c.log.Warn("the session ended; another one begins", "code", fault.CodeOf(err),
			"error", err, "wait", delay.Round(time.Millisecond).String())
		c.countReconnect(err)
		if !sleep(ctx, delay) {
			c.setState(StateStopped)
			return nil
		}
	}
}

// runSession runs one session, whatever becomes of it.
func (c *Connector) runSession(ctx context.Context) error {
	c.setState(StateStarting)
	s := newSession(c)
	defer func() {
		c.mu.Lock()
		c.session = nil
		c.mu.Unlock()
		s.close()
	}()
	if err := s.open(ctx); err != nil {
		return err
	}
	return s.explainFence(c.through(ctx, s))
}

// through takes an open session through its life.
func (c *Connector) through(ctx context.Context, s *session) (err error) {
	if err := s.start(ctx); err != nil {
		if stopsFor(c.reconsider(err)) {
			c.gap = nil
		}
		return err
	}
	c.gap = nil
	c.welcome.Store(true)
	defer func() {
		if c.repairable(err) {
			c.gap = err
		}
	}()
	c.mu.Lock()
	c.session = s
	c.mu.Unlock()
	if err := s.snapshot(ctx); err != nil {
		return err
	}
	c.setState(StateStreaming)
	c.log.Info("streaming", "position", s.begin.String(), "slot", c.cfg.SlotName)
	c.note(nil)
	return s.run(ctx)
}

func (c *Connector) setState(state State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state = state
	c.metrics.State(string(state))
}

// note keeps the last error for Status, until a session streams again.
func (c *Connector) note(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastError = err
	if err != nil {
		c.metrics.Error(fault.CodeOf(err))
	}
}

func (c *Connector) countReconnect(err error) {
	switch fault.CodeOf(err) {
	case fault.BrokerUnreachable:
		c.metrics.Reconnect(metrics.TargetBroker)
	case fault.RegistryUnreachable:
		c.metrics.Reconnect(metrics.TargetRegistry)
	default:
		c.metrics.Reconnect(metrics.TargetPostgres)
	}
}

// Status says where the connector stands, for /readyz. It never blocks on a server.
func (c *Connector) Status() worker.Status {
	c.mu.Lock()
	out := worker.Status{
		Connector: c.cfg.Name, State: string(c.state), Error: worker.ErrorOf(c.lastError),
		Positions: map[string]string{},
	}
	s := c.session
	working := c.state == StateStreaming || c.state == StateSnapshot
	c.mu.Unlock()
	if !working {
		out.Reasons = append(out.Reasons, "the connector is "+out.State)
		if out.Error != nil {
			out.Reasons = append(out.Reasons, out.Error.Text)
		}
		return out
	}
	if s != nil {
		s.status(&out)
	}
	out.Ready = out.Ready && working
	return out
}
