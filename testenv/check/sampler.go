package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// SamplerOptions say where the positions are looked at.
type SamplerOptions struct {
	PostgresURL  string
	Slot         string
	Brokers      []string
	OffsetsTopic string
	Connector    string
	Prefix       string
	ReadyURL     string        // of the worker's /readyz
	Every        time.Duration // 0 is 100 ms
	// Patience is how long a confirmed position may have fallen before the record tells of a new
	// session; 0 is 5 s. A broker that is down keeps the record away longer.
	Patience time.Duration
	// ExactlyOnce: what stores a position is what confirms its events, so the connector learns of
	// both a moment after the broker has the record, and stored may be seen ahead of confirmed.
	ExactlyOnce bool
}

// A Sampler looks at the positions all the time, in the order flushed, stored, confirmed, and
// demands flushed <= stored <= confirmed at each look, and that none falls; of what is stored it
// judges every record since the last look, also what was written over soon. Looked at in this order,
// none of them can be ahead of the next by the time that passes between the looks.
//
// What cannot be had at a look (a server that is down, a connector that was killed) is left out of
// it. The confirmed position is a session's: it may begin lower in the next one, which the
// record's epoch tells.
type Sampler struct {
	o      SamplerOptions
	stored *storedReader
	pg     *pgx.Conn
	http   *http.Client

	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	crashed bool // the server crashed: its flushed may fall once
	paused  bool
	resumed time.Time // looks that began earlier are left out
	report  *Report

	last  sample
	doubt *sample // a confirmed that fell, and no new epoch so far
}

// sample is one look; 0 is what could not be had.
type sample struct {
	at        time.Time
	flushed   uint64
	written   uint64 // the stored position, its transaction's marker perhaps still on the way
	committed uint64
	fell      []fall // every record that stored less than the one before it since the last look
	epoch     int64
	confirmed uint64
}

// StartSampler begins to look. Stop ends it.
func StartSampler(o SamplerOptions) *Sampler {
	if o.Every == 0 {
		o.Every = 100 * time.Millisecond
	}
	if o.Patience == 0 {
		o.Patience = 5 * time.Second
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Sampler{
		o: o, cancel: cancel, done: make(chan struct{}), report: newReport(),
		stored: newStoredReader(o.Brokers, o.OffsetsTopic, offsetsKey(o.Connector, o.Prefix)),
		http: &http.Client{
			Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true},
		},
	}
	go s.run(ctx)
	return s
}

// ServerCrashed is called when the PostgreSQL server was ended other than in order: its flushed
// position may be lower once.
func (s *Sampler) ServerCrashed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.crashed = true
}

// Pause leaves looks out until it is called with false: while a process that stood still for long
// may answer with a position of its own time.
func (s *Sampler) Pause(paused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused, s.resumed = paused, time.Now()
}

// Stop looks once more and ends the looking. It returns how many looks saw at least two positions,
// and what was wrong.
func (s *Sampler) Stop() (samples int, found []Violation) {
	s.cancel()
	<-s.done
	return s.report.Samples, s.report.Violations
}

func (s *Sampler) run(ctx context.Context) {
	defer close(s.done)
	defer s.stored.close()
	defer s.dropConn()
	tick := time.NewTicker(s.o.Every)
	defer tick.Stop()
	for last := false; !last; {
		select {
		case <-ctx.Done():
			last = true
		case <-tick.C:
		}
		// A look that hangs at a server that is down must not keep the next ones.
		look, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
		s.judge(s.look(look))
		cancel()
	}
}

func (s *Sampler) look(ctx context.Context) sample {
	x := sample{at: time.Now()}
	x.flushed = s.flushed(ctx)
	if err := s.stored.read(ctx); err == nil {
		x.written, _ = storedLSN(s.stored.written)
		x.committed, x.epoch = storedLSN(s.stored.committed)
	}
	x.fell = s.stored.takeFell()
	x.confirmed = s.confirmed(ctx)
	return x
}

func storedLSN(record []byte) (lsn uint64, epoch int64) {
	var r struct {
		LSN   uint64 `json:"lsn"`
		Epoch int64  `json:"epoch"`
	}
	if record == nil || json.Unmarshal(record, &r) != nil {
		return 0, 0
	}
	return r.LSN, r.Epoch
}

// flushed is what the server knows of the slot.
func (s *Sampler) flushed(ctx context.Context) uint64 {
	if s.pg == nil || s.pg.IsClosed() {
		conn, err := pgx.Connect(ctx, s.o.PostgresURL)
		if err != nil {
			return 0
		}
		s.pg = conn
	}
	var text *string
	err := s.pg.QueryRow(ctx, `SELECT confirmed_flush_lsn::text FROM pg_replication_slots
		WHERE slot_name = $1`, pgx.QueryExecModeExec, s.o.Slot).Scan(&text)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		s.dropConn()
	}
	if err != nil || text == nil {
		return 0
	}
	return parseLSN(*text)
}

func (s *Sampler) dropConn() {
	if s.pg == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.pg.Close(ctx) // only looks went over it
	s.pg = nil
}

// confirmed is what the connector says.
func (s *Sampler) confirmed(ctx context.Context) uint64 {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.o.ReadyURL, nil)
	if err != nil {
		return 0
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return 0
	}
	defer func() { _ = resp.Body.Close() }()
	var answer struct {
		Connectors []struct {
			Connector string            `json:"connector"`
			Positions map[string]string `json:"positions"`
		} `json:"connectors"`
	}
	if json.NewDecoder(resp.Body).Decode(&answer) != nil {
		return 0
	}
	for _, c := range answer.Connectors {
		if c.Connector == s.o.Connector {
			return parseLSN(c.Positions["confirmed"])
		}
	}
	return 0
}

// parseLSN reads "16/B374D848"; 0 is none.
func parseLSN(text string) uint64 {
	high, low, ok := strings.Cut(text, "/")
	h, err := strconv.ParseUint(high, 16, 32)
	l, err2 := strconv.ParseUint(low, 16, 32)
	if !ok || err != nil || err2 != nil {
		return 0
	}
	return h<<32 | l
}

func lsnText(n uint64) string { return fmt.Sprintf("%X/%X", n>>32, uint32(n)) }

// judge holds a look against the order and against the look before it.
func (s *Sampler) judge(x sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range x.fell {
		s.report.fail(Positions, "stored fell from %s to %s", lsnText(f.was), lsnText(f.is))
	}
	known := 0
	for _, n := range []uint64{x.flushed, x.written, x.confirmed} {
		if n != 0 {
			known++
		}
	}
	if known < 2 || s.paused || x.at.Before(s.resumed) {
		return
	}
	s.report.Samples++
	ahead := func(a string, n uint64, b string, m uint64) {
		if n != 0 && m != 0 && n > m {
			s.report.fail(Positions, "%s %s is ahead of %s %s", a, lsnText(n), b, lsnText(m))
		}
	}
	ahead("flushed", x.flushed, "stored", x.written)
	if !s.o.ExactlyOnce {
		ahead("stored", x.committed, "confirmed", x.confirmed)
	}
	ahead("flushed", x.flushed, "confirmed", x.confirmed)
	s.judgeFalls(x)
}

func (s *Sampler) judgeFalls(x sample) {
	if x.flushed != 0 && x.flushed < s.last.flushed {
		if !s.crashed {
			s.report.fail(Positions, "flushed fell from %s to %s", lsnText(s.last.flushed),
				lsnText(x.flushed))
		}
		s.crashed = false
	}
	if s.doubt != nil {
		switch {
		case x.epoch > s.doubt.epoch:
			s.doubt = nil
		case x.at.Sub(s.doubt.at) > s.o.Patience && x.epoch != 0:
			s.report.fail(Positions, "confirmed fell to %s within a session", lsnText(s.doubt.confirmed))
			s.doubt = nil
		}
	}
	if x.confirmed != 0 && x.confirmed < s.last.confirmed && x.epoch == s.last.epoch &&
		s.doubt == nil {
		fallen := x
		s.doubt = &fallen
	}
	s.keep(x)
}

// keep remembers what the look could have. A new session's confirmed position begins anew, also
// when this look could not have it: between the record of a session and its first answer to HTTP.
func (s *Sampler) keep(x sample) {
	if x.epoch > s.last.epoch {
		s.last.confirmed = 0
	}
	for _, p := range []struct {
		into *uint64
		from uint64
	}{
		{&s.last.flushed, x.flushed},
		{&s.last.confirmed, x.confirmed},
	} {
		if p.from != 0 {
			*p.into = p.from
		}
	}
	if x.epoch != 0 {
		s.last.epoch = x.epoch
	}
}
