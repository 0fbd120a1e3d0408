package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tidemark-cdc/tidemark/offsets"
)

// Config is what a run keeps for its length; it comes from the seed alone.
type Config struct {
	Seed        uint64
	Mutation    Mutation
	ExactlyOnce bool
	Version     int   // of the server: 14, 17 or 18
	Eager       bool  // the server's keepalives claim a commit that is still being sent
	Outside     bool  // slot and publication are changed by others
	PartBytes   int64 // events in a Kafka transaction before it is due
	Steps       int
}

// ConfigOf returns the configuration of a seed.
func ConfigOf(seed uint64, m Mutation) Config {
	r := rand.New(rand.NewPCG(seed, 1))
	return Config{
		Seed: seed, Mutation: m, ExactlyOnce: r.IntN(2) == 1, Version: []int{14, 17, 18}[r.IntN(3)],
		Eager: r.IntN(4) == 0, Outside: r.IntN(3) == 0,
		PartBytes: int64(1 + r.IntN(8)), Steps: 300 + r.IntN(500),
	}
}

func (c Config) String() string {
	mode := "at least once"
	if c.ExactlyOnce {
		mode = "exactly once"
	}
	return fmt.Sprintf("seed %d, %s, server %d, eager keepalives %t, outside changes %t, mutation %q",
		c.Seed, mode, c.Version, c.Eager, c.Outside, c.Mutation)
}

// World is one run: server, broker, processes, and the scheduler that lets one of them do one step
// after another, as the tape says.
type World struct {
	tape
	cfg      Config
	now      int // milliseconds
	pg       *server
	kafka    *broker
	procs    []*process
	truth    *truth
	started  int // processes
	sessions int
	timedOut bool // the broker gave up a transaction

	lastOutside int // when somebody changed slot or publication
	watched     int // when a session last looked at them and found nothing missing
	step        int
	bad         *Violation
	ready       []readyTask

	counts  map[string]int
	keep    bool // write the history down
	history []string
}

type readyTask struct {
	p *process
	t *task
}

// base is when a run begins; nothing reads the machine's clock.
var base = time.Unix(1_000_000_000, 0)

func newWorld(cfg Config, t tape) *World {
	w := &World{cfg: cfg, tape: t, counts: map[string]int{}}
	w.truth = newTruth(w)
	w.pg = newServer(w)
	w.kafka = &broker{w: w}
	return w
}

func (w *World) time() time.Time { return base.Add(time.Duration(w.now) * time.Millisecond) }

func (w *World) elapsed(since int) time.Duration {
	return time.Duration(w.now-since) * time.Millisecond
}
func (w *World) is(m Mutation) bool { return w.cfg.Mutation == m }

func (w *World) fail(check, text string) {
	if w.bad == nil {
		w.bad = &Violation{Check: check, Text: text, Step: w.step}
		w.note("VIOLATION %s: %s", check, text)
	}
}

// count takes note of something that a good set of runs has all of.
func (w *World) count(what string) { w.counts[what]++ }

func (w *World) note(format string, args ...any) {
	if w.keep {
		w.history = append(w.history, fmt.Sprintf("%4d  %s", w.step, fmt.Sprintf(format, args...)))
	}
}

// run is the whole of a run: the script, and then a drain in which nothing fails any more.
func (w *World) run() {
	defer func() {
		for _, p := range w.procs {
			p.end(p.tasks...)
		}
	}()
	w.startProcess()
	for w.step = 0; w.step < w.cfg.Steps && !w.over() && w.going(); w.step++ {
		w.act()
	}
	w.off = true
	target := w.prepareDrain()
	for round := 0; w.going(); round++ {
		if round == drainRounds || w.settled(target) {
			break
		}
		w.drainRound()
	}
	if w.bad == nil {
		w.truth.end(target)
	}
}

// going reports whether there is anything to find: no violation yet, and no stop for a person.
func (w *World) going() bool { return w.bad == nil && w.truth.code == "" }

const drainRounds = 1500

// act does one step: which one, and with whom, the tape says. A step that cannot be done lets a
// task run instead.
func (w *World) act() {
	done := false
	switch kind := w.n(100); {
	case kind < 36:
	case kind < 50:
		done = w.anySender((*walsender).step)
	case kind < 54:
		if ws := w.sender(); ws != nil {
			ws.keepalive(&w.tape)
			done = true
		}
	case kind < 60:
		done = w.anySender((*walsender).receive)
	case kind < 69:
		done = w.appendOne()
	case kind < 76:
		done = w.acknowledgeOne()
	case kind < 83:
		if n := len(w.kafka.requests); n > 0 {
			w.kafka.carryOut(w.n(n), &w.tape)
			done = true
		}
	case kind < 93:
		done = w.statement()
	case kind < 97:
		w.now += 1 + w.n(4)
		done = true
	case kind < 99:
		done = w.disturb()
	default:
		done = w.cfg.Outside && w.truth.highest > 0 && w.outside()
	}
	if !done && !w.runTask() {
		w.now++
	}
}

// runTask lets one of the tasks that can go on do so, until it gives way.
func (w *World) runTask() bool {
	w.ready = w.ready[:0]
	for _, p := range w.procs {
		if !p.running() || p.frozen {
			continue
		}
		for _, t := range p.tasks {
			if !t.done && (t.ready == nil || t.ready()) {
				w.ready = append(w.ready, readyTask{p, t})
			}
		}
	}
	if len(w.ready) == 0 {
		return false
	}
	r := w.ready[w.n(len(w.ready))]
	r.p.resume(r.t)
	r.p.sweep()
	return true
}

func (w *World) sender() *walsender {
	w.pg.sweep()
	if len(w.pg.senders) == 0 {
		return nil
	}
	return w.pg.senders[w.n(len(w.pg.senders))]
}

func (w *World) anySender(f func(*walsender) bool) bool {
	ws := w.sender()
	return ws != nil && f(ws)
}

// statement is something that other programs do on the server.
func (w *World) statement() bool {
	pg := w.pg
	kind := w.n(14)
	switch {
	case kind == 0:
		pg.advance(32 + 8*w.n(8)) // of another database, or of a table that is not published
	case kind == 1 && len(pg.open) < 2, len(pg.open) == 0:
		pg.begin()
	case kind <= 9:
		tx := pg.open[w.n(len(pg.open))]
		pg.write(tx, w.n(numTables), w.n(numKeys), w.n(3) == 2, w.n(4) == 3)
	case kind == 10:
		pg.message(pg.open[w.n(len(pg.open))])
	case kind == 11 && w.n(2) == 1:
		pg.single()
		w.note("a message outside of transactions, number %d", pg.changes)
	default:
		tx := pg.open[w.n(len(pg.open))]
		commit := w.n(5) != 4
		pg.close(tx, commit)
		w.noteClosed(tx, commit)
	}
	return true
}

func (w *World) noteClosed(tx *openTx, commit bool) {
	if !w.keep {
		return
	}
	if !commit {
		w.note("transaction %d aborts", tx.xid)
		return
	}
	text := fmt.Sprintf("transaction %d commits, position %s:", tx.xid, w.pg.end)
	for _, r := range tx.rows {
		text += fmt.Sprintf(" %d=%c %s/%d at %s", r.id, r.op, tableNames[r.table], r.key, r.lsn)
		if r.decoded != sent {
			text += " (not published)"
		}
	}
	w.note("%s", text)
}

func (w *World) appendOne() bool {
	k := w.kafka
	k.sweep()
	if len(k.producers) == 0 {
		return false
	}
	p := k.producers[w.n(len(k.producers))]
	partition := w.n(dataPartitions)
	if len(p.queue[partition]) == 0 {
		partition = (partition + 1) % dataPartitions
	}
	if len(p.queue[partition]) == 0 {
		return false
	}
	if w.oneIn(120) {
		w.note("the broker refuses records of session %d", p.session)
		p.fail(errSend)
		return true
	}
	p.append(partition)
	return true
}

func (w *World) acknowledgeOne() bool {
	k := w.kafka
	k.sweep()
	if len(k.producers) == 0 {
		return false
	}
	p := k.producers[w.n(len(k.producers))]
	if len(p.acks) == 0 {
		return false
	}
	p.acknowledge(w.n(len(p.acks)))
	return true
}

// prepareDrain ends every disturbance, and returns where an idle server's WAL ends.
func (w *World) prepareDrain() offsets.LSN {
	w.note("the script is over: nothing fails from here on")
	for len(w.pg.open) > 0 {
		tx := w.pg.open[0]
		w.pg.close(tx, true)
		w.noteClosed(tx, true)
	}
	for _, p := range w.procs {
		p.frozen = false
	}
	w.pg.advance(256)
	return w.pg.end
}

// settled: everything is where it belongs, and the catalog was looked at after the last change.
func (w *World) settled(target offsets.LSN) bool {
	_, missing := w.truth.missing()
	return !missing && w.pg.slot.confirmed >= target && w.watched > w.lastOutside
}

// drainRound lets everybody do what they can.
func (w *World) drainRound() {
	w.step++
	w.now++
	running := false
	for _, p := range w.procs {
		running = running || p.running()
	}
	if !running {
		w.startProcess()
	}
	for range 3 {
		for _, p := range w.procs {
			for i := 0; i < len(p.tasks) && p.running(); i++ {
				if t := p.tasks[i]; !t.done && (t.ready == nil || t.ready()) {
					p.resume(t)
				}
			}
			p.sweep()
		}
		for len(w.kafka.requests) > 0 {
			w.kafka.carryOut(0, &w.tape)
		}
		for _, p := range w.kafka.producers {
			for i := range p.queue {
				for len(p.queue[i]) > 0 {
					p.append(i)
				}
			}
			for len(p.acks) > 0 {
				p.acknowledge(0)
			}
		}
		for _, ws := range w.pg.senders {
			if ws.gone {
				w.pg.drop(ws, errConnection)
			}
			for ws.receive() {
			}
			ws.step()
		}
	}
	if ws := w.pg.slot.active; ws != nil {
		ws.keepalive(&w.tape)
	}
	w.pg.sweep()
	w.kafka.sweep()
}
