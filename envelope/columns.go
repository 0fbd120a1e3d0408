package envelope

import (
	"fmt"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/schema"
)

// ColumnRule is what the configuration says of a column.
type ColumnRule struct {
	Out  bool         // not part of Value
	Mask *schema.Mask // nil: none
	Key  string       // the configuration's key that says so, its salt left out
}

// MaskedColumn is a column whose values are not sent as they are, and the key that says so.
type MaskedColumn struct {
	Name string
	Key  string
}

// column makes a column of Value, under its rule.
func (e *Encoder) column(t *Table, c schema.Column, types schema.TypeSource) (column, error) {
	rel := t.Relation
	typ := schema.Resolve(c, types, e.o.Types)
	field := schema.FieldName(c.Name)
	out := column{
		name: c.Name, field: field, label: appendString(nil, field),
		pgType: typ.PGName, avro: typ.Avro, append: typ.Append, plain: typ.Append,
		identity: c.Key && rel.Identity != schema.IdentityFull,
		rule:     e.o.Columns(rel.Namespace, rel.Name, c.Name),
	}
	mask := out.rule.Mask
	switch {
	case out.rule.Out:
		t.Out = append(t.Out, c.Name)
		return out, nil
	case mask == nil:
		return out, nil
	}
	masked, ok := mask.Of(c, typ, types)
	switch {
	case ok:
	case mask.Kind == schema.MaskTruncate: // one that is not a string is never too long
		out.rule.Mask = nil
		return out, nil
	default:
		return out, fault.New(fault.ConfigInvalid, out.rule.Key+" names column "+tableName(rel)+"."+
			c.Name+", whose field is not a string").With("type "+typ.PGName,
			"a column of a character type, or another whose field is a string",
			"leave the column out with column.exclude.list, or take it out of "+out.rule.Key)
	}
	out.append = masked.Append
	if masked.Fixed != nil {
		out.fixed = append([]byte{branchValue}, masked.Fixed...)
	}
	t.Masked = append(t.Masked, MaskedColumn{c.Name, out.rule.Key})
	return out, nil
}

// maskKey puts the rule of a key column on its Key field. Keys that a mask would make equal are
// refused: compaction would keep one of them, and partitions would mix their order.
func (t *Table) maskKey(k *keyColumn, types schema.TypeSource) error {
	rel := t.Relation
	c, rule := rel.Columns[k.column], &t.columns[k.column].rule
	name := tableName(rel) + "." + k.name
	switch {
	case rule.Out:
		return fault.New(fault.ConfigInvalid, rule.Key+" leaves out key column "+name).With(
			"key: "+t.KeyReason, "every column of the key",
			"take the column out of column.exclude.list, or into column.include.list, or choose "+
				"another key with message.key.columns")
	case rule.Mask == nil:
		return nil
	case rule.Mask.Kind != schema.MaskHash:
		return fault.New(fault.ConfigInvalid, rule.Key+" names key column "+name+
			": different keys would become the same").With("key: "+t.KeyReason,
			"key columns as they are, or hashed",
			"use column.mask.hash.v2 for it, or choose another key with message.key.columns")
	}
	if n, all := rule.Mask.Digits(c, types), 2*rule.Mask.New().Size(); n < all {
		return fault.New(fault.ConfigInvalid, rule.Key+" names key column "+name+
			", which is too short for the hash: different keys could become the same").With(
			fmt.Sprintf("%d characters", n), fmt.Sprintf("%d", all),
			"use a shorter hash, or choose another key with message.key.columns")
	}
	masked, _ := rule.Mask.Of(c, schema.Type{Avro: k.avro, Append: k.append}, types)
	k.append = masked.Append
	return nil
}

// Omits reports whether the column of this index in the relation is not part of Value: nobody need
// read it.
func (t *Table) Omits(i int) bool { return t.columns[i].rule.Out }
