package snapshot

import (
	"bytes"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/schema"
)

// rowWriter splits COPY's text format into tuples.
//
// The format (manual: COPY, "Text Format"): a row ends with a newline, columns are parted by a
// tab, \N alone is null, and within a value a backslash stands before b, f, n, r, t, v or a
// backslash. A raw newline or tab never occurs inside of a value. A table without columns gives
// empty lines.
type rowWriter struct {
	columns int
	fn      func(schema.Tuple) error

	rows    int64
	err     error  // of fn, or of the format; the copy ends with it
	partial []byte // a row whose newline has not come yet
	tuple   schema.Tuple
	values  []byte // unescaped values of the present row
}

// Write implements io.Writer for pgconn's CopyTo.
func (w *rowWriter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			w.partial = append(w.partial, p...)
			return n, nil
		}
		line := p[:end]
		if len(w.partial) > 0 {
			w.partial = append(w.partial, line...)
			line = w.partial
		}
		if w.err = w.row(line); w.err != nil {
			return 0, w.err
		}
		w.partial = w.partial[:0]
		p = p[end+1:]
	}
	return n, nil
}

func (w *rowWriter) row(line []byte) error {
	w.tuple = w.tuple[:0]
	// Unescaping never makes a value longer, so that values never moves while the tuple is built.
	if cap(w.values) < len(line) {
		w.values = make([]byte, 0, 2*len(line))
	}
	w.values = w.values[:0]
	for w.columns > 0 {
		field, rest, more := bytes.Cut(line, []byte{'\t'})
		w.tuple = append(w.tuple, w.datum(field))
		if !more {
			break
		}
		line = rest
	}
	if len(w.tuple) != w.columns {
		return fault.New(fault.ProtocolError, "a row of COPY has another number of columns than asked")
	}
	w.rows++
	return w.fn(w.tuple)
}

func (w *rowWriter) datum(field []byte) schema.Datum {
	if len(field) == 2 && field[0] == '\\' && field[1] == 'N' {
		return schema.Datum{Kind: schema.DatumNull}
	}
	if bytes.IndexByte(field, '\\') < 0 {
		return schema.Datum{Kind: schema.DatumText, Text: field}
	}
	start := len(w.values)
	for i := 0; i < len(field); i++ {
		c := field[i]
		if c == '\\' && i+1 < len(field) {
			i++
			c = unescape(field[i])
		}
		w.values = append(w.values, c)
	}
	return schema.Datum{Kind: schema.DatumText, Text: w.values[start:]}
}

func unescape(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'v':
		return '\v'
	}
	return c
}
