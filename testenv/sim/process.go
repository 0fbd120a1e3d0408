package sim

import (
	"errors"
	"fmt"
	"iter"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// task is one goroutine of a connector's process. It runs as a coroutine, one at a time, and gives
// way wherever the real one waits for another goroutine or for a server: those are the points at
// which everything else may happen, a crash included.
type task struct {
	name  string
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	ready func() bool // nil: always
	done  bool
}

// errKilled unwinds a task whose process is gone.
var errKilled = errors.New("killed")

// process is one process of the connector: connector.Run.
type process struct {
	w       *World
	id      int
	tasks   []*task
	cur     *task
	s       *session
	frozen  bool
	stopped bool // by itself
	dead    bool // killed
	asked   bool // to stop
	err     error
}

func (w *World) startProcess() *process {
	w.started++
	p := &process{w: w, id: w.started}
	w.procs = append(w.procs, p)
	p.spawn("main", p.run)
	w.note("process %d starts", p.id)
	return p
}

func (p *process) running() bool { return !p.stopped && !p.dead }

func (p *process) spawn(name string, f func()) *task {
	t := &task{name: name}
	t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		defer func() {
			t.done = true
			if r := recover(); r != nil && r != any(errKilled) {
				p.w.fail("panic", fmt.Sprint(r))
			}
		}()
		f()
	})
	p.tasks = append(p.tasks, t)
	return t
}

// until gives way until ready is true; nil is: once.
func (p *process) until(ready func() bool) {
	t := p.cur
	t.ready = ready
	if !t.yield(struct{}{}) {
		panic(errKilled)
	}
	t.ready = nil
}

// sleep is a bounded exponential wait with jitter in its upper half, as connector.backoff is.
func (p *process) sleep(tries int) {
	most := min(8<<min(tries, 6), 120)
	at := p.w.now + most/2 + p.w.jitter(most/2)
	p.until(func() bool { return p.w.now >= at })
}

func (p *process) resume(t *task) {
	was := p.cur
	p.cur = t
	t.next()
	p.cur = was
}

// end stops tasks; the one that runs is left alone.
func (p *process) end(tasks ...*task) {
	for _, t := range tasks {
		if !t.done && t != p.cur {
			t.stop()
			t.done = true
		}
	}
}

// kill is kill -9: nothing that the process holds is said to anybody.
func (p *process) kill() {
	p.dead = true
	p.end(p.tasks...)
	if p.s != nil {
		p.s.abandon()
	}
}

// run mirrors connector.Run: sessions until an ordered stop, or a fault for a person.
func (p *process) run() {
	for tries := 0; ; tries++ {
		p.s = newSession(p)
		err := p.s.through()
		if fenced(err) {
			err = p.s.explainFence(err)
		}
		p.s.abandon()
		p.w.note("process %d: session %d ended: %v", p.id, p.s.id, err)
		if err == nil {
			p.stopped = true
			return
		}
		switch code := fault.CodeOf(err); code {
		case fault.PostgresUnreachable, fault.BrokerUnreachable:
		default:
			p.stopped, p.err = true, err
			p.w.truth.stoppedWith(code, err)
			return
		}
		if p.asked {
			p.stopped = true
			return
		}
		p.sleep(min(tries, 2))
	}
}
