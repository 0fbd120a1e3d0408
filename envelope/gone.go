package envelope

import "github.com/tidemark-cdc/tidemark/internal/fault"

// keyHeadLength is what stands in front of a key's Avro body: a zero byte and the schema's id.
const keyHeadLength = 5

// Gone encodes the end of a key that the topic still has and the table no longer: an event of op d
// and its tombstone, at a snapshot's position. key is the record's key as the topic has it, under
// whatever schema id that is, so that compaction finds it; shape is that schema's, nil when it is
// not known. before_key holds the fields that the present key has too, encoded alike. A body that
// fits no schema gives an event without before_key.
func (e *Encoder) Gone(
	dst []Record, t *Table, key []byte, shape *KeyShape, s Snapshot,
) ([]Record, error) {
	if err := t.ready(); err != nil {
		return dst, err
	}
	if t.shape == nil || len(key) < keyHeadLength {
		return dst, fault.New(fault.Internal, "topic "+t.Topic+": a key that is gone has no key")
	}
	if e.o.Skipped['d'] {
		return dst, nil
	}
	before := t.beforeKeyOf(key[keyHeadLength:], shape)
	o := s.origin('d')
	e.begin()
	from := len(e.buf.Bytes)
	e.buf.Bytes = append(e.buf.Bytes, key...)
	p := part{op: 'd', image: imageKey, key: span{from, len(e.buf.Bytes)}}
	err := e.add(p, t, &event{op: 'd', image: imageKey, beforeKey: before}, &o)
	if err != nil {
		e.rollback()
		return dst, err
	}
	if e.o.Tombstones {
		p.headersOf = len(e.parts)
		e.parts = append(e.parts, p)
	}
	return e.cut(dst, t, &o), nil
}

// Clear encodes op t at a snapshot's position, to every partition: the rows that follow are all
// that the table has.
func (e *Encoder) Clear(dst []Record, t *Table, s Snapshot) ([]Record, error) {
	o := s.origin('t')
	return e.emptied(dst, t, &o)
}

// KeyShape is the shape of the table's Key; nil when it has none.
func (t *Table) KeyShape() *KeyShape { return t.shape }

// beforeKeyOf turns a Key's body into BeforeKey's: each field with its union's branch. nil when the
// body does not fit the shape.
func (t *Table) beforeKeyOf(body []byte, shape *KeyShape) []byte {
	if shape == nil {
		shape = t.shape
	}
	values, err := shape.split(body)
	if err != nil {
		return nil // the event goes without: what it is about, its key says
	}
	out := make([]byte, 0, len(body)+len(t.shape.fields))
	for _, f := range t.shape.fields {
		i := shape.field(f)
		if i < 0 {
			out = append(out, branchNull)
			continue
		}
		out = append(append(out, branchValue), values[i]...)
	}
	return out
}

// field finds the field of the same name and encoding; -1 when there is none.
func (k *KeyShape) field(f shapeField) int {
	for i, own := range k.fields {
		if own.name == f.name && own.typ.String() == f.typ.String() {
			return i
		}
	}
	return -1
}
