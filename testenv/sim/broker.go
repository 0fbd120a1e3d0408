package sim

import (
	"errors"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/offsets"
)

const dataPartitions = 2

// event is one record of a change: a delete makes two, the event and the tombstone.
type event int

func eventOf(change, part int) event { return event(2*change + part) }

// logged is a record in a partition.
type logged struct {
	ev      event
	session int
	txn     *ktxn // nil: outside of transactions
}

// ktxn is a Kafka transaction.
type ktxn struct {
	state  byte // o open, c committed, a aborted
	events []event
	record []byte
}

// broker is the scripted Kafka: two partitions of data, the offsets topic's, and the coordinator of
// the connector's transactional id. What the connector asks of it goes through requests, which are
// carried out or lost, and whose answers come or are lost.
type broker struct {
	w         *World
	data      [dataPartitions][]logged
	epoch     int
	open      []*ktxn
	producers []*producer
	requests  []*request
	stored    *offsets.Record // the newest committed record, as it was read back
}

// producer is the client of one session.
type producer struct {
	b             *broker
	session       int
	transactional bool
	epoch         int
	txn           *ktxn
	queue         [dataPartitions][]handed
	acks          []func(error)
	waiting       int // handed and not answered
	err           error
	closed        bool
}

type handed struct {
	ev   event
	done func(error)
}

type request struct {
	p      *producer // nil: reading
	do     func() error
	done   bool
	err    error
	chance bool // it may be lost
}

var (
	errFenced  = fault.Wrap(fault.Fenced, "fenced", offsets.ErrFenced)
	errUnknown = fault.Wrap(fault.BrokerUnreachable, "no answer", offsets.ErrUnknownOutcome)
	errSend    = fault.New(fault.BrokerUnreachable, "a record was not delivered")
)

func (b *broker) newProducer(session int, transactional bool) *producer {
	p := &producer{b: b, session: session, transactional: transactional}
	b.producers = append(b.producers, p)
	return p
}

func (p *producer) send(partition int, ev event, done func(error)) {
	if p.err != nil || p.closed {
		done(errSend)
		return
	}
	p.waiting++
	p.queue[partition] = append(p.queue[partition], handed{ev, done})
}

// fail answers a partition's records, from the first one on, with an error: none of them may come
// before one that failed.
func (p *producer) fail(err error) {
	if p.err == nil {
		p.err = err
	}
	for i := range p.queue {
		for _, h := range p.queue[i] {
			p.waiting--
			h.done(err)
		}
		p.queue[i] = nil
	}
}

// close leaves what is in the network: some of what was handed over may still arrive.
func (p *producer) close(t *tape) {
	if p.closed {
		return
	}
	p.closed, p.acks = true, nil
	for i := range p.queue {
		p.queue[i] = p.queue[i][:t.n(len(p.queue[i])+1)]
		for j := range p.queue[i] {
			p.queue[i][j].done = func(error) {}
		}
	}
}

func (p *producer) spent() bool {
	return p.closed && len(p.queue[0])+len(p.queue[1]) == 0
}

// append puts the next record of a partition into its log.
func (p *producer) append(partition int) {
	h := p.queue[partition][0]
	if p.transactional {
		if !p.valid() {
			p.fail(errFenced)
			return
		}
		if p.txn == nil {
			p.begin()
		}
		p.txn.events = append(p.txn.events, h.ev)
	}
	p.queue[partition] = p.queue[partition][1:]
	p.b.data[partition] = append(p.b.data[partition], logged{h.ev, p.session, p.txn})
	if !p.transactional {
		p.b.w.truth.visible(h.ev)
	}
	p.acks = append(p.acks, h.done)
}

func (p *producer) valid() bool {
	return p.epoch == p.b.epoch && (p.txn == nil || p.txn.state == 'o')
}

func (p *producer) begin() {
	p.txn = &ktxn{state: 'o'}
	p.b.open = append(p.b.open, p.txn)
}

func (p *producer) acknowledge(i int) {
	done := p.acks[i]
	p.acks = append(p.acks[:i], p.acks[i+1:]...)
	p.waiting--
	done(nil)
}

// fence is InitProducerId: every earlier producer is refused from here on, and what it had open is
// aborted.
func (b *broker) fence() int {
	b.epoch++
	b.abort()
	return b.epoch
}

func (b *broker) abort() {
	for _, t := range b.open {
		t.state = 'a'
	}
	b.open = b.open[:0]
}

// put is the produce of the offsets record.
func (p *producer) put(value []byte) error {
	if !p.valid() {
		return errFenced
	}
	if p.txn == nil {
		p.begin()
	}
	p.txn.record = value
	return nil
}

// commit is EndTxn.
func (p *producer) commit() error {
	if !p.valid() || p.txn == nil {
		return errFenced
	}
	b, t := p.b, p.txn
	p.txn, t.state = nil, 'c'
	for i, o := range b.open {
		if o == t {
			b.open = append(b.open[:i], b.open[i+1:]...)
			break
		}
	}
	for _, ev := range t.events {
		b.w.truth.visible(ev)
	}
	// Read once: nobody changes a record that was read.
	r, err := offsets.UnmarshalRecord(t.record)
	if err != nil {
		return err
	}
	b.stored = r
	b.w.truth.stored(r)
	return nil
}

// carryOut runs a request, by choice without an answer, or not at all.
func (b *broker) carryOut(i int, t *tape) {
	r := b.requests[i]
	b.requests = append(b.requests[:i], b.requests[i+1:]...)
	fate := 0
	if r.chance {
		fate = t.n(24)
	}
	switch fate {
	case 22:
		_ = r.do()
		r.err = errUnknown
	case 23:
		r.err = errUnknown
	default:
		r.err = r.do()
	}
	r.done = true
}

func fenced(err error) bool { return errors.Is(err, offsets.ErrFenced) }
