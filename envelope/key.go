package envelope

import (
	"slices"
	"strings"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/schema"
)

// decideKey fills the key of a Table. In this order: message.key.columns as it is written; the
// columns of the replica identity, in the order of the Relation message, which is the table's and
// thus the same for everybody who reads the stream; under FULL, where every column is flagged, the
// primary key that the catalog knows; else none.
func (e *Encoder) decideKey(t *Table, info schema.TableInfo) error {
	rel := t.Relation
	if names := e.o.KeyColumns(rel.Namespace, rel.Name); len(names) > 0 {
		t.KeyReason = "message.key.columns"
		return e.configuredKey(t, names, info)
	}
	switch rel.Identity {
	case schema.IdentityFull:
		e.primaryKey(t, info)
	case schema.IdentityDefault, schema.IdentityIndex:
		for i, c := range rel.Columns {
			if c.Key {
				e.addKey(t, i, info.Types)
			}
		}
		t.KeyReason = "primary key (REPLICA IDENTITY DEFAULT)"
		if rel.Identity == schema.IdentityIndex {
			t.KeyReason = "index of the replica identity"
		}
	case schema.IdentityNothing:
	}
	if len(t.key) == 0 && rel.Identity != schema.IdentityFull {
		// The server rejects UPDATE and DELETE on such a table, so only inserts can come.
		t.KeyReason = "none: the replica identity has no columns"
	}
	return nil
}

func (e *Encoder) configuredKey(t *Table, names []string, info schema.TableInfo) error {
	rel := t.Relation
	for _, name := range names {
		i := columnIndex(rel, name)
		if i < 0 {
			return fault.New(fault.ReplicaIdentityUnusable, "message.key.columns names a column that "+
				"table "+tableName(rel)+" does not publish").With(
				"no column "+name, "published columns only", "correct message.key.columns")
		}
		if rel.Identity == schema.IdentityNothing || !rel.Columns[i].Key {
			return fault.New(fault.ReplicaIdentityUnusable, "message.key.columns of table "+
				tableName(rel)+" has a column outside the replica identity: deletes would have no key").
				With("column "+name+" is not in it", "every key column in it, or FULL", alterFull(rel))
		}
		e.addKey(t, i, info.Types)
	}
	return nil
}

func (e *Encoder) primaryKey(t *Table, info schema.TableInfo) {
	t.KeyReason = "primary key (REPLICA IDENTITY FULL)"
	switch {
	case info.Missing:
		t.KeyReason = "none: REPLICA IDENTITY FULL, and the table is gone from the catalog"
		return
	case len(info.PrimaryKey) == 0:
		t.KeyReason = "none: REPLICA IDENTITY FULL and no primary key that is not deferrable"
		return
	}
	for _, name := range info.PrimaryKey {
		if columnIndex(t.Relation, name) < 0 {
			t.KeyReason = "none: REPLICA IDENTITY FULL, and the stream has no column " + name +
				" of the primary key"
			return
		}
	}
	for i, c := range t.Relation.Columns {
		if slices.Contains(info.PrimaryKey, c.Name) {
			e.addKey(t, i, info.Types)
		}
	}
}

func (e *Encoder) addKey(t *Table, i int, types schema.TypeSource) {
	c := &t.columns[i]
	c.identity = true
	k := keyColumn{column: i, name: c.name, field: c.field, avro: c.avro, append: c.plain}
	if e.o.KeyText(t.Relation.Namespace, t.Relation.Name, c.name) {
		text := schema.TextType(t.Relation.Columns[i], types)
		k.avro, k.append = text.Avro, text.Append
	}
	t.key = append(t.key, k)
	t.KeyColumns = append(t.KeyColumns, c.name)
}

func columnIndex(rel *schema.Relation, name string) int {
	return slices.IndexFunc(rel.Columns, func(c schema.Column) bool { return c.Name == name })
}

// appendKey writes the Key in wire format. Each column is taken from row, or from fill when row
// does not carry it (an unchanged out-of-line key). nullIsAbsent says that a null in row means
// "not carried", as in a K tuple.
func (t *Table) appendKey(dst []byte, row, fill schema.Tuple, nullIsAbsent bool) ([]byte, error) {
	dst = append(dst, t.keyHead[:]...)
	for i := range t.key {
		k := &t.key[i]
		d := filled(row[k.column], fill, k.column)
		if d.Kind != schema.DatumText {
			return dst, t.noKeyValue(k, d.Kind, nullIsAbsent)
		}
		var err error
		if dst, err = k.append(dst, d.Text); err != nil {
			return dst, t.illegalKeyValue(k, err)
		}
	}
	return dst, nil
}

// appendBeforeKey writes the BeforeKey of an old row: Key's fields, each with its union's branch.
func (t *Table) appendBeforeKey(dst []byte, old schema.Tuple, nullIsAbsent bool) ([]byte, error) {
	for i := range t.key {
		k := &t.key[i]
		d := old[k.column]
		if d.Kind != schema.DatumText {
			return dst, t.noKeyValue(k, d.Kind, nullIsAbsent)
		}
		var err error
		if dst, err = k.append(append(dst, branchValue), d.Text); err != nil {
			return dst, t.illegalKeyValue(k, err)
		}
	}
	return dst, nil
}

// filled returns d, or fill's value in its place when d was not carried and fill has a value. A
// null in fill proves nothing (in a K tuple it means "not carried") and an out-of-line value is
// never null.
func filled(d schema.Datum, fill schema.Tuple, i int) schema.Datum {
	if d.Kind == schema.DatumUnchanged && fill != nil && fill[i].Kind == schema.DatumText {
		return fill[i]
	}
	return d
}

func (t *Table) noKeyValue(k *keyColumn, kind schema.DatumKind, nullIsAbsent bool) error {
	rel := t.Relation
	if kind == schema.DatumNull && !nullIsAbsent {
		return fault.New(fault.KeyUnrepresentable, "key column "+k.name+" of table "+tableName(rel)+
			" is null").With("null", "key columns that are NOT NULL", "ALTER TABLE "+quoted(rel)+
			" ALTER COLUMN "+quote(k.name)+" SET NOT NULL, or other message.key.columns")
	}
	return fault.New(fault.ReplicaIdentityUnusable, "the log does not carry key column "+k.name+
		" of a changed row of table "+tableName(rel)).With("", "an identity that holds the key on "+
		"the table and on each of its partitions", alterFull(rel))
}

func (t *Table) illegalKeyValue(k *keyColumn, err error) error {
	rel := t.Relation
	return fault.Wrap(fault.KeyUnrepresentable, "key column "+k.name+" of table "+tableName(rel)+
		" holds a value that its Key field cannot hold", err).With("", "",
		"add "+tableName(rel)+"."+k.name+" to key.text.columns: its Key field is then a string "+
			"with PostgreSQL's text")
}

func alterFull(rel *schema.Relation) string {
	return "ALTER TABLE " + quoted(rel) + " REPLICA IDENTITY FULL"
}

func quoted(rel *schema.Relation) string { return quote(rel.Namespace) + "." + quote(rel.Name) }

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
