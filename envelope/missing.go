package envelope

import (
	"github.com/tidemark-cdc/tidemark/connector/decode"
	"github.com/tidemark-cdc/tidemark/schema"
)

// Missing appends to dst the indices of the columns of ev's new row whose values neither the log
// nor the old tuple carries; none for an operation that gives no record. Unless they are had from
// elsewhere (RowReread), Row flags them as UNAVAILABLE.
func (e *Encoder) Missing(dst []int, t *Table, ev *decode.Event) []int {
	if ev.Kind != decode.KindUpdate || e.o.Skipped['u'] || len(ev.New) != len(t.columns) ||
		ev.OldKind != 0 && len(ev.Old) != len(t.columns) {
		return dst
	}
	old := t.oldRow(ev)
	for i := range t.columns {
		c := &t.columns[i]
		if c.rule.Out || c.fixed != nil { // no value of it is sent
			continue
		}
		d := ev.New[i]
		if c.identity || old.fillAll {
			d = filled(d, old.tuple, i)
		}
		if d.Kind == schema.DatumUnchanged {
			dst = append(dst, i)
		}
	}
	return dst
}

// Identity appends to dst the texts of the columns by which the server finds ev's new row, in the
// order of IdentityColumns. ok is false when there are none, or one is not known. The texts are
// the event's.
func (t *Table) Identity(dst [][]byte, ev *decode.Event) (texts [][]byte, ok bool) {
	old := t.oldRow(ev)
	for _, i := range t.IdentityColumns {
		d := filled(ev.New[i], old.tuple, i)
		if d.Kind != schema.DatumText {
			return dst, false
		}
		dst = append(dst, d.Text)
	}
	return dst, len(t.IdentityColumns) > 0
}

// decideIdentity fills IdentityColumns. message.key.columns may be fewer columns than name a row.
func (t *Table) decideIdentity() {
	rel := t.Relation
	if rel.Identity == schema.IdentityFull {
		for i := range t.key {
			t.IdentityColumns = append(t.IdentityColumns, t.key[i].column)
		}
		return
	}
	for i, c := range rel.Columns {
		if c.Key {
			t.IdentityColumns = append(t.IdentityColumns, i)
		}
	}
}
