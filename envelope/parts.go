package envelope

import (
	"strconv"

	"github.com/tidemark-cdc/tidemark/schema"
)

// Names of the headers that each record has, tombstones included, and of the two that tie the
// records of a change of key together. Values are text, but for the keys.
const (
	HeaderOp          = "tidemark.op"
	HeaderHistory     = "tidemark.history"
	HeaderCommitLSN   = "tidemark.commit_lsn"   // decimal
	HeaderEventIndex  = "tidemark.event_index"  // decimal
	HeaderBeforeImage = "tidemark.before_image" // a symbol of the enum BeforeImage
	HeaderKeyNew      = "tidemark.key.new"      // on the old key's delete and tombstone
	HeaderKeyOld      = "tidemark.key.old"      // on the new key's create
)

// span is a part of the current Buffer. Growing a Buffer moves its bytes, so slices of it are cut
// when all of a change is written.
type span struct{ from, to int }

// part is a record on its way.
type part struct {
	op        byte
	image     image
	route     Route
	key       span // empty: null
	value     span // empty: null, a tombstone
	otherName string
	other     span
	headersOf int // a tombstone's headers are those of part headersOf-1; 0: its own
}

// begin starts a change: it makes sure of a Buffer and remembers where the change begins. A new
// Buffer is taken when the current one is nearly full; a change that is larger than what is left
// grows it.
func (e *Encoder) begin() {
	if e.buf != nil && cap(e.buf.Bytes)-len(e.buf.Bytes) < cap(e.buf.Bytes)/8 {
		e.Close()
	}
	if e.buf == nil {
		e.buf = e.o.Pool.Get()
	}
	e.mark = len(e.buf.Bytes)
	e.parts = e.parts[:0]
	e.now = e.o.Now()
}

// rollback forgets a change that could not be encoded.
func (e *Encoder) rollback() { e.buf.Bytes = e.buf.Bytes[:e.mark] }

// key writes a record's key, if the table has one.
func (e *Encoder) key(p *part, t *Table, row, fill schema.Tuple, nullIsAbsent bool) error {
	if !t.HasKey() {
		p.route = RouteOne
		return nil
	}
	from := len(e.buf.Bytes)
	b, err := t.appendKey(e.buf.Bytes, row, fill, nullIsAbsent)
	if err != nil {
		return err
	}
	e.buf.Bytes = b
	p.key = span{from, len(b)}
	return nil
}

// add writes a record's value and puts the record at the end of the change's parts.
func (e *Encoder) add(p part, t *Table, ev *event, o *origin) error {
	from := len(e.buf.Bytes)
	b, err := e.appendValue(e.buf.Bytes, t, ev, o)
	if err != nil {
		return err
	}
	if t.limit > 0 {
		if b, err = e.fit(b, from, &p, t, ev, o); err != nil {
			return err
		}
	}
	e.buf.Bytes = b
	p.value = span{from, len(b)}
	e.parts = append(e.parts, p)
	e.count(t)
	return nil
}

// cut turns the parts into records.
func (e *Encoder) cut(dst []Record, t *Table, o *origin) []Record {
	commitLSN, index := e.positionText(o)
	b := e.buf
	for i := range e.parts {
		p := &e.parts[i]
		dst = append(dst, Record{})
		r := &dst[len(dst)-1]
		r.Topic, r.Key, r.Value = t.Topic, b.cut(p.key), b.cut(p.value)
		r.Route, r.Op, r.Pos, r.Buffer = p.route, p.op, o.pos, b
		r.HashKey = r.Key
		if r.Key != nil && !e.o.HashWholeKey {
			r.HashKey = r.Key[len(t.keyHead):]
		}
		switch {
		case p.headersOf > 0:
			r.Headers = dst[len(dst)-2].Headers
		case e.o.Headers:
			r.Headers = e.headers(p, o, b.cut(commitLSN), b.cut(index))
		}
	}
	b.refs.Add(int64(len(e.parts)))
	return dst
}

// cut returns a part of the Buffer, nil for an empty one; its capacity ends with it.
func (b *Buffer) cut(s span) []byte {
	if s.from == s.to {
		return nil
	}
	return b.Bytes[s.from:s.to:s.to]
}

// positionText writes the two numbers that the headers of all of a change's records share.
func (e *Encoder) positionText(o *origin) (commitLSN, index span) {
	if !e.o.Headers {
		return span{}, span{}
	}
	b := e.buf.Bytes
	if e.commitText == (span{}) || e.commitLSN != o.pos.CommitLSN {
		from := len(b)
		b = strconv.AppendUint(b, uint64(o.pos.CommitLSN), 10)
		e.commitText, e.commitLSN = span{from, len(b)}, o.pos.CommitLSN
	}
	from := len(b)
	b = strconv.AppendInt(b, o.pos.Index, 10)
	e.buf.Bytes = b
	if e.history != o.pos.History {
		// Not in place: records that were handed out may point to the old text.
		e.history, e.historyText = o.pos.History, strconv.AppendInt(nil, o.pos.History, 10)
	}
	return e.commitText, span{from, len(b)}
}

// headersPerRecord is the most that a record has.
const headersPerRecord = 6

func (e *Encoder) headers(p *part, o *origin, commitLSN, index []byte) []Header {
	b := e.buf
	if cap(b.headers)-len(b.headers) < headersPerRecord {
		b.headers = make([]Header, 0, max(2*cap(b.headers), 64*headersPerRecord))
	}
	from := len(b.headers)
	h := append(b.headers,
		Header{HeaderOp, opTexts[p.op]},
		Header{HeaderHistory, e.historyText},
		Header{HeaderCommitLSN, commitLSN},
		Header{HeaderEventIndex, index},
		Header{HeaderBeforeImage, imageTexts[p.image]},
	)
	if p.otherName != "" {
		h = append(h, Header{p.otherName, b.cut(p.other)})
	}
	b.headers = h
	return h[from:len(h):len(h)]
}

// Texts of header values that never change; nobody may write into them.
var (
	opTexts = func() (texts [256][]byte) {
		for _, op := range []byte("cudrtm") {
			texts[op] = []byte{op}
		}
		return texts
	}()
	imageTexts = func() (texts [][]byte) {
		for _, s := range imageSymbols {
			texts = append(texts, []byte(s))
		}
		return texts
	}()
)
