package envelope

import (
	"bytes"
	"fmt"

	"github.com/tidemark-cdc/tidemark/connector/decode"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/schema"
)

// The tag of an old tuple does not say what it is worth. What the server sends, by the identity of
// the relation that rows name (the root, when a publication publishes via it) and of the leaf:
//
//	root     leaf     UPDATE                            DELETE
//	DEFAULT  DEFAULT  none, or K(key) when the key      K(key)
//	                  changed or is out of line
//	DEFAULT  FULL     K(complete row)                   K(complete row)
//	FULL     FULL     O(complete row)                   O(complete row)
//	FULL     DEFAULT  none, or O(key)                   O(key)
//
// Rows do not name their leaf, so O(complete row) and O(key) cannot be told apart when leaves
// differ: a null in it is a value in one and "not carried" in the other. So an old tuple is a
// complete row only when it is tagged O and the relation and every leaf known are FULL; else it is
// a key.
type oldRow struct {
	tuple schema.Tuple // nil: none
	image image        // ABSENT, KEY or FULL
	// fillAll: an unchanged out-of-line value of the new row may be taken from any column. In an
	// O tuple a value is the old row's value whatever the leaf; only a null may mean two things.
	fillAll bool
}

func (t *Table) oldRow(ev *decode.Event) oldRow {
	switch ev.OldKind {
	case 'O':
		if t.full && !t.leafNotFull.Load() {
			return oldRow{tuple: ev.Old, image: imageFull, fillAll: true}
		}
		return oldRow{tuple: ev.Old, image: imageKey, fillAll: true}
	case 'K':
		return oldRow{tuple: ev.Old, image: imageKey}
	}
	return oldRow{image: imageAbsent}
}

// nullIsAbsent: in a key tuple a null marks a column that is not carried.
func (o *oldRow) nullIsAbsent() bool { return o.image != imageFull }

// before is what the envelope's field before holds.
func (o *oldRow) before() schema.Tuple {
	if o.image == imageFull {
		return o.tuple
	}
	return nil
}

// admit stops what must not be sent: an old row that before.image.required asks to be full, and a
// change of a table without a key that does not say which row it is about.
func (t *Table) admit(old *oldRow) error {
	if old.image == imageFull {
		return nil
	}
	rel := t.Relation
	if t.beforeRequired {
		return fault.New(fault.BeforeImageMissing, "the log does not carry the complete old row of a "+
			"change of table "+tableName(rel)).With(identityFound(rel),
			"FULL, since before.image.required names it", alterFull(rel)+forLeaves)
	}
	if !t.HasKey() {
		return fault.New(fault.ReplicaIdentityUnusable, "a change of table "+tableName(rel)+
			" does not say which row it is about: the table has no key").With(identityFound(rel),
			"a key, or FULL on the table and each of its partitions", alterFull(rel)+forLeaves)
	}
	return nil
}

const forLeaves = ", and the same for each of its partitions"

func identityFound(rel *schema.Relation) string {
	found := "REPLICA IDENTITY " + identityWord[rel.Identity]
	if rel.Identity == schema.IdentityFull {
		found += " on the table, but not on each of its partitions"
	}
	return found
}

var identityWord = map[schema.Identity]string{
	schema.IdentityDefault: "DEFAULT",
	schema.IdentityIndex:   "USING INDEX",
	schema.IdentityFull:    "FULL",
	schema.IdentityNothing: "NOTHING",
}

// keyChanged says whether the old row has another key than the new one. Equal texts are equal
// keys; different texts may be equal keys too, so then the encoded keys decide, since they are
// what Kafka sees.
func (t *Table) keyChanged(old *oldRow, next schema.Tuple, scratch []byte) (bool, []byte, error) {
	if old.tuple == nil || !t.HasKey() {
		return false, scratch, nil
	}
	same := true
	for i := range t.key {
		c := t.key[i].column
		d := filled(next[c], old.tuple, c)
		o := old.tuple[c]
		same = same && d.Kind == schema.DatumText && o.Kind == schema.DatumText &&
			bytes.Equal(d.Text, o.Text)
	}
	if same {
		return false, scratch, nil
	}
	scratch, err := t.appendKey(scratch[:0], old.tuple, nil, old.nullIsAbsent())
	if err != nil {
		return false, scratch, err
	}
	n := len(scratch)
	scratch, err = t.appendKey(scratch, next, old.tuple, false)
	if err != nil {
		return false, scratch, err
	}
	return !bytes.Equal(scratch[:n], scratch[n:]), scratch, nil
}

// sameWidth guards the loops over columns: a tuple has the relation's number of columns.
func sameWidth(t *Table, tuple schema.Tuple, present bool) error {
	if present && len(tuple) != len(t.columns) {
		return fault.New(fault.ProtocolError, "a row of table "+tableName(t.Relation)+
			" has another number of columns than the table").With(
			fmt.Sprint(len(tuple)), fmt.Sprint(len(t.columns)), "")
	}
	return nil
}
