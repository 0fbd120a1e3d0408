package envelope

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tidemark-cdc/tidemark/schema"
)

// A record that its topic does not take, with record.too.large: truncate. What gives way, in this
// order, until it fits:
//
//  1. The old row: before is the complete old row or nothing, so a before that lost a value would
//     be a lie. before becomes null, before_image KEY, and before_key says which row it was. Not
//     where the table has no key (nothing else says which row it is), and not where
//     before.image.required names the table.
//  2. Values of the new row, the longest first, never one of the Key's columns: null, with the state
//     UNAVAILABLE and a text that says that it was left out, and how long it is. Without a text,
//     UNAVAILABLE is a value that the log did not carry because the change did not touch it; one
//     that was left out may well be new.
//
// What is still too large then is refused as without the option.

// SetLimit makes events of the table give way to n bytes, deliver's measure of a record. It is
// called before the first event.
func (t *Table) SetLimit(n int) { t.limit = n }

// EncodedSize is an upper bound of the bytes of a Kafka batch that holds only this record,
// uncompressed. Message format, version 2: 61 bytes of batch header (12 of them in front of its
// length), then the record: six numbers of at most five bytes (length, time delta, offset delta,
// lengths of key and value, number of headers), one byte of attributes, and the bytes.
func (r *Record) EncodedSize() int {
	n := encodedSize(len(r.Key), len(r.Value))
	for _, h := range r.Headers {
		n += encodedHeaderSize(len(h.Key), len(h.Value))
	}
	return n
}

const encodedNumber = 5

func encodedSize(key, value int) int { return 61 + 4 + 6*encodedNumber + 1 + key + value }

func encodedHeaderSize(key, value int) int { return 2*encodedNumber + key + value }

// size is EncodedSize of the record that a part will be, with a value of so many bytes.
func (e *Encoder) size(p *part, o *origin, value int) int {
	n := encodedSize(p.key.to-p.key.from, value)
	if !e.o.Headers {
		return n
	}
	for name, value := range map[string]int{
		HeaderOp:          1,
		HeaderHistory:     len(fmt.Sprint(o.pos.History)),
		HeaderCommitLSN:   len(fmt.Sprint(uint64(o.pos.CommitLSN))),
		HeaderEventIndex:  len(fmt.Sprint(o.pos.Index)),
		HeaderBeforeImage: len(imageSymbols[p.image]),
	} {
		n += encodedHeaderSize(len(name), value)
	}
	if p.otherName != "" {
		n += encodedHeaderSize(len(p.otherName), p.other.to-p.other.from)
	}
	return n
}

// leftOut is a value that gives way, and the bytes that it has.
type leftOut struct{ column, bytes int }

// fit writes an event's value anew, behind b[:from], until the record is within the table's limit
// or nothing is left that could give way. b[from:] is the value as it is.
func (e *Encoder) fit(b []byte, from int, p *part, t *Table, ev *event, o *origin) ([]byte, error) {
	over := func() int { return e.size(p, o, len(b)-from) - t.limit }
	const headers = 400 // more than all of them have, but for the other key
	rest := headers + p.key.to - p.key.from + p.other.to - p.other.from
	if len(b)-from+rest <= t.limit || over() <= 0 {
		return b, nil
	}
	defer func() { e.leftOut = e.leftOut[:0] }()
	var err error
	if ev.before != nil && t.HasKey() && !t.beforeRequired {
		ev.before, ev.image, p.image = nil, imageKey, imageKey
		if b, err = e.appendValue(b[:from], t, ev, o); err != nil {
			return b, err
		}
	}
	candidates := t.longest(ev)
	for over() > 0 && len(candidates) > 0 {
		for need := over(); need > 0 && len(candidates) > 0; candidates = candidates[1:] {
			c := candidates[0]
			e.leftOut = append(e.leftOut, c)
			need -= c.bytes - stateBytes - len(t.columns[c.column].label)
		}
		if b, err = e.appendValue(b[:from], t, ev, o); err != nil {
			return b, err
		}
	}
	if over() <= 0 {
		t.counters.truncated.Add(1)
	}
	return b, nil
}

// stateBytes is what a column's state needs beside its name: image, state, branch and text.
const stateBytes = 40

// longest are the new row's values that may be left out, the longest first.
func (t *Table) longest(ev *event) (all []leftOut) {
	var scratch []byte
	for i := range t.columns {
		c := &t.columns[i]
		if ev.after == nil || t.isKey(i) || c.rule.Out || c.fixed != nil {
			continue
		}
		d := ev.after[i]
		if c.identity || ev.fillAll {
			d = filled(d, ev.fill, i)
		}
		if d.Kind != schema.DatumText {
			continue
		}
		var err error
		if scratch, err = c.append(scratch[:0], d.Text); err != nil {
			scratch = append(scratch[:0], d.Text...) // it is in column_states
		}
		if n := len(scratch); n > stateBytes+len(c.label) {
			all = append(all, leftOut{i, n})
		}
	}
	slices.SortStableFunc(all, func(a, b leftOut) int { return cmp.Compare(b.bytes, a.bytes) })
	return all
}

func (t *Table) isKey(column int) bool {
	return slices.ContainsFunc(t.key, func(k keyColumn) bool { return k.column == column })
}

// leaves says whether a column of the new row is left out, and puts that into words.
func (e *Encoder) leaves(column int) ([]byte, bool) {
	for _, l := range e.leftOut {
		if l.column == column {
			return fmt.Appendf(nil, "left out: %d bytes", l.bytes), true
		}
	}
	return nil, false
}
