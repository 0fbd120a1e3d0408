package envelope

import (
	"encoding/binary"
	"encoding/hex"
	"unicode/utf8"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/schema"
)

// event is what one Envelope says. All tuples are borrowed.
type event struct {
	op    byte
	image image
	// before is the complete old row or nil, after the new row or nil.
	before, after schema.Tuple
	// fill has the values of after's columns that the log did not repeat; may be nil. Only its
	// identity columns count, unless fillAll is set.
	fill    schema.Tuple
	fillAll bool
	// reread are columns of after that were read again.
	reread []int
	// key is the old row that before_key is made of, or nil; nullIsAbsent says that a null in it
	// means "not carried".
	key          schema.Tuple
	nullIsAbsent bool
	// beforeKey is before_key ready encoded, when there is no row to make it of.
	beforeKey []byte
	message   *message
}

// state is a ColumnState on its way: text is borrowed from the tuple.
type state struct {
	side   side
	kind   stateKind
	column *column
	text   []byte // UNAVAILABLE: why, nil when the log did not carry it
}

// appendValue writes an event's Envelope in wire format, in the order of valueSchema.
func (e *Encoder) appendValue(dst []byte, t *Table, ev *event, o *origin) ([]byte, error) {
	e.states = e.states[:0]
	dst = append(dst, t.valueHead[:]...)
	var err error
	if dst, err = e.appendRow(dst, t, ev.before, ev, sideBefore); err != nil {
		return dst, err
	}
	if dst, err = e.appendRow(dst, t, ev.after, ev, sideAfter); err != nil {
		return dst, err
	}
	dst = binary.AppendVarint(dst, int64(ev.image))
	if t.HasKey() {
		if dst, err = t.appendOptionalKey(dst, ev); err != nil {
			return dst, err
		}
	}
	dst = e.appendStates(dst)
	dst = e.appendSource(dst, &t.source, o)
	dst = e.appendTransaction(dst, t, o)
	dst = append(dst, 2, ev.op) // a string of length 1
	dst = append(dst, e.nowText()...)
	if t.Relation == nil {
		dst = ev.message.append(dst)
	}
	return dst, nil
}

// nowText is the time of processing as appendTimes writes it; changes that come together share it.
func (e *Encoder) nowText() []byte {
	if len(e.times) == 0 || e.timesOf != e.now {
		e.times, e.timesOf = appendTimes(e.times[:0], e.now, true), e.now
	}
	return e.times
}

func (t *Table) appendOptionalKey(dst []byte, ev *event) ([]byte, error) {
	switch {
	case ev.beforeKey != nil:
		return append(append(dst, branchValue), ev.beforeKey...), nil
	case ev.key == nil:
		return append(dst, branchNull), nil
	}
	return t.appendBeforeKey(append(dst, branchValue), ev.key, ev.nullIsAbsent)
}

// appendRow writes ["null", Value]. What is not simply the column's value becomes null and a
// state.
func (e *Encoder) appendRow(dst []byte, t *Table, row schema.Tuple, ev *event, s side) (
	[]byte, error,
) {
	if row == nil {
		return append(dst, branchNull), nil
	}
	dst = append(dst, branchValue)
	if s == sideAfter {
		e.markReread(t, ev.reread)
	}
	for i := range t.columns {
		c := &t.columns[i]
		if c.rule.Out {
			continue
		}
		if c.fixed != nil {
			dst = append(dst, c.fixed...)
			continue
		}
		d := row[i]
		if s == sideAfter && (c.identity || ev.fillAll) {
			d = filled(d, ev.fill, i)
		}
		if s == sideAfter && len(e.leftOut) > 0 {
			if why, ok := e.leaves(i); ok {
				dst = append(dst, branchNull)
				e.states = append(e.states, state{side: s, kind: stateUnavailable, column: c, text: why})
				continue
			}
		}
		switch d.Kind {
		case schema.DatumNull:
			dst = append(dst, branchNull)
		case schema.DatumUnchanged:
			dst = append(dst, branchNull)
			e.states = append(e.states, state{side: s, kind: stateUnavailable, column: c})
		case schema.DatumText:
			mark := len(dst)
			full, err := c.append(append(dst, branchValue), d.Text)
			if err == nil {
				dst = full
				continue
			}
			if e.o.FailUnrepresentable {
				return dst, valueFault(t, c, err)
			}
			dst = append(full[:mark], branchNull)
			e.states = append(e.states,
				state{side: s, kind: stateUnrepresentable, column: c, text: d.Text})
		default:
			return dst, fault.New(fault.ProtocolError, "column "+c.name+" of table "+
				tableName(t.Relation)+" has a tuple kind that pgoutput does not have")
		}
	}
	return dst, nil
}

// markReread says of columns that were read again that they may be newer. One whose value cannot be
// represented gets that state behind this one.
func (e *Encoder) markReread(t *Table, columns []int) {
	for _, i := range columns {
		e.states = append(e.states,
			state{side: sideAfter, kind: stateReselected, column: &t.columns[i]})
	}
}

func valueFault(t *Table, c *column, err error) error {
	return fault.Wrap(fault.ValueUnrepresented, "column "+c.name+" ("+c.pgType+") of table "+
		tableName(t.Relation)+" holds a value that its field cannot hold", err).With("", "",
		"set value.unrepresentable to flag: the field is then null, with the text in column_states")
}

// appendStates writes column_states: one block with their number, and the empty block that ends
// an array.
func (e *Encoder) appendStates(dst []byte) []byte {
	if len(e.states) == 0 {
		return append(dst, 0)
	}
	dst = binary.AppendVarint(dst, int64(len(e.states)))
	for i := range e.states {
		s := &e.states[i]
		dst = binary.AppendVarint(dst, int64(s.side))
		dst = append(dst, s.column.label...)
		dst = binary.AppendVarint(dst, int64(s.kind))
		switch {
		case s.kind != stateUnrepresentable && s.text == nil,
			s.kind == stateUnrepresentable && s.column.rule.Mask != nil:
			dst = append(dst, branchNull)
		case utf8.Valid(s.text):
			dst = appendBytes(append(dst, branchValue), s.text)
		default:
			dst = appendHex(append(dst, branchValue), s.text)
		}
	}
	return append(dst, 0)
}

// appendHex writes a string of `\x` and two digits a byte: an Avro string must be UTF-8, and the
// bytes must not be lost.
func appendHex(dst, text []byte) []byte {
	dst = binary.AppendVarint(dst, int64(2+2*len(text)))
	dst = append(dst, '\\', 'x')
	return hex.AppendEncode(dst, text)
}

// count adds the states of the event just written to the table's counters.
func (e *Encoder) count(t *Table) {
	for i := range e.states {
		switch e.states[i].kind {
		case stateUnavailable:
			if e.states[i].text == nil { // else fit counts the record
				t.counters.unavailable.Add(1)
			}
		case stateUnrepresentable:
			t.counters.unrepresentable.Add(1)
		case stateReselected:
			t.counters.reselected.Add(1)
		}
	}
}
