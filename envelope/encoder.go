package envelope

import (
	"strconv"

	"github.com/tidemark-cdc/tidemark/connector/decode"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/offsets"
	"github.com/tidemark-cdc/tidemark/schema"
)

// Encoder makes records of row changes. One goroutine uses it; Stats may be called by others.
// Several Encoders may share Tables that are compiled and have ids.
type Encoder struct {
	o        Options
	counters counterSet

	buf  *Buffer // the current one; the Encoder holds a reference of it
	mark int     // length of buf.Bytes before the change that is being encoded
	now  int64   // time of processing of that change

	parts       []part
	states      []state
	leftOut     []leftOut // of the event that fit is about
	keys        []byte    // old and new key, side by side, of keyChanged
	historyText []byte
	history     int64 // what historyText says
	source      fixedSource
	reread      []int // of the change that is being encoded
	counting    counting
	times       []byte // now as appendTimes writes it
	timesOf     int64  // the now of times

	// The decimal text of a commit LSN is in the current Buffer once for each stretch of changes
	// that have it. commitText is empty when the Buffer has none.
	commitText span
	commitLSN  offsets.LSN
}

// New returns an Encoder.
func New(o Options) *Encoder {
	o.setDefaults()
	return &Encoder{
		o: o, history: o.History, historyText: strconv.AppendInt(nil, o.History, 10),
		parts: make([]part, 0, 4),
	}
}

// Close gives the current Buffer back. Records that were handed out stay valid. The Encoder can
// be used again.
func (e *Encoder) Close() {
	if e.buf != nil {
		e.buf.Release()
		e.buf, e.commitText = nil, span{}
	}
}

// Row encodes an Insert, Update or Delete and appends its records to dst: one; two for a delete
// and its tombstone; three for a change of key (the old key's delete and tombstone, the new key's
// create); none for a skipped operation. Each record holds one reference of its Buffer. ev is not
// kept. On a fault dst is returned as it came.
func (e *Encoder) Row(dst []Record, t *Table, ev *decode.Event) ([]Record, error) {
	return e.RowReread(dst, t, ev, nil)
}

// RowReread is Row for an event whose new row was completed with values that were read again;
// reread are the indices of their columns, which Missing has named.
func (e *Encoder) RowReread(
	dst []Record, t *Table, ev *decode.Event, reread []int,
) ([]Record, error) {
	op := operation(ev.Kind)
	if op == 0 || ev.Tx == nil {
		return dst, fault.New(fault.Internal, "topic "+t.Topic+": not a row change in a transaction")
	}
	if e.o.Skipped[op] {
		return dst, nil
	}
	if err := t.ready(); err != nil {
		return dst, err
	}
	o := e.streamed(ev, op)
	e.reread = reread
	e.begin()
	if err := e.row(t, ev, &o); err != nil {
		e.rollback()
		return dst, err
	}
	return e.cut(dst, t, &o), nil
}

func operation(k decode.Kind) byte {
	switch k {
	case decode.KindInsert:
		return 'c'
	case decode.KindUpdate:
		return 'u'
	case decode.KindDelete:
		return 'd'
	default:
		return 0
	}
}

// streamed is the origin of an event of the stream that is in a transaction.
func (e *Encoder) streamed(ev *decode.Event, op byte) origin {
	return origin{
		op:  op,
		pos: offsets.Position{History: e.o.History, CommitLSN: ev.Tx.FinalLSN, Index: ev.Index},
		lsn: ev.LSN, micros: ev.Tx.CommitMicros, xid: ev.Tx.XID, hasXID: true,
		marker: "false", name: ev.Tx.Origin, inTx: true,
	}
}

func (e *Encoder) row(t *Table, ev *decode.Event, o *origin) error {
	if err := sameWidth(t, ev.New, ev.Kind != decode.KindDelete); err != nil {
		return err
	}
	if err := sameWidth(t, ev.Old, ev.OldKind != 0); err != nil {
		return err
	}
	if ev.Kind == decode.KindInsert {
		return e.insert(t, ev.New, o)
	}
	old := t.oldRow(ev)
	if err := t.admit(&old); err != nil {
		return err
	}
	if ev.Kind == decode.KindDelete {
		return e.remove(t, &old, nil, o)
	}
	changed, keys, err := t.keyChanged(&old, ev.New, e.keys)
	e.keys = keys
	switch {
	case err != nil:
		return err
	case changed:
		return e.changeKey(t, &old, ev.New, o)
	}
	return e.update(t, &old, ev.New, o)
}

func (e *Encoder) insert(t *Table, row schema.Tuple, o *origin) error {
	p := part{op: o.op, image: imageNotApplicable}
	if err := e.key(&p, t, row, nil, false); err != nil {
		return err
	}
	return e.add(p, t, &event{op: o.op, image: imageNotApplicable, after: row}, o)
}

func (e *Encoder) update(t *Table, old *oldRow, row schema.Tuple, o *origin) error {
	p := part{op: 'u', image: old.image}
	if err := e.key(&p, t, row, old.tuple, false); err != nil {
		return err
	}
	return e.add(p, t, &event{
		op: 'u', image: old.image, before: old.before(), after: row,
		fill: old.tuple, fillAll: old.fillAll, reread: e.reread,
		key: old.tuple, nullIsAbsent: old.nullIsAbsent(),
	}, o)
}

// remove adds a delete and its tombstone. next is the new key in wire format when the row lives on
// under another key, else nil.
func (e *Encoder) remove(t *Table, old *oldRow, next *span, o *origin) error {
	if old.tuple == nil {
		return fault.New(fault.ProtocolError, "a delete of table "+tableName(t.Relation)+
			" has no old tuple")
	}
	p := part{op: 'd', image: old.image}
	if next != nil {
		p.otherName, p.other = HeaderKeyNew, *next
	}
	if err := e.key(&p, t, old.tuple, nil, old.nullIsAbsent()); err != nil {
		return err
	}
	err := e.add(p, t, &event{
		op: 'd', image: old.image, before: old.before(),
		key: old.tuple, nullIsAbsent: old.nullIsAbsent(),
	}, o)
	if err != nil || !e.o.Tombstones || !t.HasKey() {
		return err
	}
	p.headersOf = len(e.parts)
	e.parts = append(e.parts, p)
	return nil
}

// changeKey adds the delete of the old key, its tombstone, and the create of the new key.
func (e *Encoder) changeKey(t *Table, old *oldRow, row schema.Tuple, o *origin) error {
	c := part{op: 'c', image: old.image, otherName: HeaderKeyOld}
	if err := e.key(&c, t, row, old.tuple, false); err != nil {
		return err
	}
	if err := e.remove(t, old, &c.key, o); err != nil {
		return err
	}
	c.other = e.parts[0].key
	return e.add(c, t, &event{
		op: 'c', image: old.image, before: old.before(), after: row,
		fill: old.tuple, fillAll: old.fillAll, reread: e.reread,
		key: old.tuple, nullIsAbsent: old.nullIsAbsent(),
	}, o)
}

// Snapshot says where a row was read.
type Snapshot struct {
	// Pos orders the row among the stream's events: CommitLSN is a position of which it is certain
	// that every transaction not visible in the snapshot commits after it, Index is -1.
	Pos    offsets.Position
	Micros int64       // when the snapshot was taken, microseconds since the Unix epoch
	LSN    offsets.LSN // source.lsn
	XID    uint32      // source.txId; 0: none
	Marker string      // source.snapshot, "true" when empty
}

func (s *Snapshot) origin(op byte) origin {
	o := origin{
		op: op, pos: s.Pos, lsn: s.LSN, micros: s.Micros, xid: s.XID, hasXID: s.XID != 0,
		marker: s.Marker,
	}
	if o.marker == "" {
		o.marker = "true"
	}
	return o
}

// Read encodes a row of a snapshot as op r and appends its record to dst. row is not kept.
func (e *Encoder) Read(dst []Record, t *Table, row schema.Tuple, s Snapshot) ([]Record, error) {
	if err := t.ready(); err != nil {
		return dst, err
	}
	if err := sameWidth(t, row, true); err != nil {
		return dst, err
	}
	o := s.origin('r')
	e.begin()
	if err := e.insert(t, row, &o); err != nil {
		e.rollback()
		return dst, err
	}
	return e.cut(dst, t, &o), nil
}

// Truncate encodes op t for one of the tables that a Truncate message names: a null key, to every
// partition of the topic.
func (e *Encoder) Truncate(dst []Record, t *Table, ev *decode.Event) ([]Record, error) {
	if ev.Kind != decode.KindTruncate || ev.Tx == nil {
		return dst, fault.New(fault.Internal, "topic "+t.Topic+": not a truncate in a transaction")
	}
	o := e.streamed(ev, 't')
	return e.emptied(dst, t, &o)
}

// emptied adds the record that says that a table has no rows any more.
func (e *Encoder) emptied(dst []Record, t *Table, o *origin) ([]Record, error) {
	if e.o.Skipped['t'] {
		return dst, nil
	}
	if err := t.ready(); err != nil {
		return dst, err
	}
	e.begin()
	p := part{op: 't', image: imageNotApplicable, route: RouteEach}
	if err := e.add(p, t, &event{op: 't', image: imageNotApplicable}, o); err != nil {
		e.rollback()
		return dst, err
	}
	return e.cut(dst, t, o), nil
}
