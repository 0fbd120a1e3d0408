package envelope

import (
	"github.com/tidemark-cdc/tidemark/connector/decode"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/offsets"
)

// message is the content of an envelope of op m.
type message struct {
	prefix, content []byte
}

func (m *message) append(dst []byte) []byte {
	dst = append(dst, branchValue, branchValue)
	dst = appendBytes(dst, m.prefix)
	return appendBytes(append(dst, branchValue), m.content)
}

// CompileMessages makes the Table of the topic <prefix>.message. Its Envelope is that of a table
// without columns and key, with a field message.
func (e *Encoder) CompileMessages() (*Table, error) {
	t := &Table{
		Topic:     e.o.Prefix + ".message",
		KeyReason: "none: logical messages",
		source:    newSourceText(&e.o, "", ""),
		counters:  e.counters.of("", "message"),

		collection: "message",
	}
	return t, t.buildSchemas(messageField())
}

// Message encodes a logical message as op m, with a null key, and appends its record to dst. One
// outside a transaction has its own LSN as position, index 0, no txId, and the time of processing
// as its time.
func (e *Encoder) Message(dst []Record, t *Table, ev *decode.Event) ([]Record, error) {
	if ev.Kind != decode.KindMessage || t.Relation != nil {
		return dst, fault.New(fault.Internal, "topic "+t.Topic+": not a logical message")
	}
	if e.o.Skipped['m'] {
		return dst, nil
	}
	if err := t.ready(); err != nil {
		return dst, err
	}
	e.begin()
	o := origin{
		op: 'm', lsn: ev.MessageLSN, micros: e.now, marker: "false",
		pos: offsets.Position{History: e.o.History, CommitLSN: ev.MessageLSN},
	}
	if ev.Tx != nil && ev.Transactional {
		o = e.streamed(ev, 'm')
	}
	p := part{op: 'm', image: imageNotApplicable, route: RouteOne}
	err := e.add(p, t, &event{
		op: 'm', image: imageNotApplicable,
		message: &message{prefix: ev.Prefix, content: ev.Content},
	}, &o)
	if err != nil {
		e.rollback()
		return dst, err
	}
	return e.cut(dst, t, &o), nil
}
