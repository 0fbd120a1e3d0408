package sim

import (
	"slices"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

func (p *process) sweep() {
	p.tasks = slices.DeleteFunc(p.tasks, func(t *task) bool { return t.done })
}

func (s *server) sweep() {
	s.senders = slices.DeleteFunc(s.senders, func(ws *walsender) bool { return !ws.alive })
}

func (b *broker) sweep() {
	b.producers = slices.DeleteFunc(b.producers, (*producer).spent)
}

// somebody returns a process of those that run, by choice.
func (w *World) somebody() *process {
	var running []*process
	for _, p := range w.procs {
		if p.running() {
			running = append(running, p)
		}
	}
	if len(running) == 0 {
		return nil
	}
	return running[w.n(len(running))]
}

// disturb is a fault of a process, a network, a server or the broker, or the end of one.
func (w *World) disturb() bool {
	p := w.somebody()
	if p == nil {
		w.startProcess()
		return true
	}
	switch w.n(16) {
	case 0, 1, 2:
		if running := w.running(); running < 2 {
			w.startProcess()
		}
	case 3, 4:
		w.count("kills")
		w.note("process %d is killed", p.id)
		p.kill()
	case 5:
		w.count("freezes")
		p.frozen = true
		w.note("process %d is frozen", p.id)
		if p.s != nil && p.s.ws != nil && w.n(4) != 0 {
			w.pg.drop(p.s.ws, errConnection) // wal_sender_timeout
		}
	case 6, 7:
		for _, q := range w.procs {
			q.frozen = false
		}
		w.note("whoever is frozen wakes up")
	case 8:
		w.note("process %d is asked to stop", p.id)
		p.asked = true
	case 9, 10:
		if ws := w.pg.slot.active; ws != nil {
			w.note("the connection of the walsender with PID %d breaks", ws.pid)
			w.pg.drop(ws, errConnection)
		}
	case 11:
		w.count("crashes of the server")
		w.note("the server crashes")
		w.pg.crash()
	case 12:
		w.note("the broker gives up open transactions")
		w.timedOut = true
		w.kafka.fence()
	case 13:
		w.pg.slot.persisted = w.pg.slot.confirmed
	default:
		for _, ws := range w.pg.senders {
			if ws.gone {
				w.note("the server notices that the client of PID %d is gone", ws.pid)
				w.pg.drop(ws, errConnection)
			}
		}
	}
	return true
}

func (w *World) running() int {
	n := 0
	for _, p := range w.procs {
		if p.running() {
			n++
		}
	}
	return n
}

// outside is what another program or a person does to the slot or the publication. A slot that is
// in use is taken away from its user first.
func (w *World) outside() bool {
	pg := w.pg
	w.lastOutside = w.now
	switch kind := w.n(12); kind {
	case 0, 1, 2, 3:
		w.takeSlot()
		if !pg.slot.exists {
			return false
		}
		w.truth.outsideSlot = true
		switch kind {
		case 0:
			pg.slot.confirmed = max(pg.slot.confirmed, pg.end)
			w.note("somebody advances the slot to %s", pg.end)
		case 1:
			pg.slot.exists = false
			w.note("somebody drops the slot")
		case 2:
			pg.slot.lost = true
			w.note("the server invalidates the slot")
		case 3:
			for len(pg.open) > 0 {
				pg.close(pg.open[0], false)
			}
			pg.createSlot()
			w.note("somebody makes the slot anew, at %s", pg.end)
		}
	case 4:
		w.truth.outsidePublication = true
		pg.pub.exists = false
		pg.advance(64)
		w.note("somebody drops the publication")
	case 5, 6:
		w.truth.outsidePublication = true
		pg.createPublication()
		w.note("somebody makes the publication anew")
	default:
		table := w.n(2)
		w.truth.outsidePublication = true
		in := pg.pub.tables[table].oid == 0
		pg.setTable(table, in)
		w.note("somebody sets %s in the publication: %t", tableNames[table], in)
	}
	return true
}

func (w *World) takeSlot() {
	if ws := w.pg.slot.active; ws != nil {
		w.pg.drop(ws, fault.New(fault.PostgresUnreachable, "terminating connection"))
	}
}
