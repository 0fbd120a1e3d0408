package envelope

import (
	"crypto/sha256"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/connector/decode"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/schema"
)

var sha = &schema.Mask{Kind: schema.MaskHash, New: sha256.New, Salt: []byte("s")}

// printf sa | sha256sum, and so on.
const (
	hashOfA = "4cf6829aa93728e8f3c97df913fb1bfa95fe5810e2933a05943f8312a98d9cf2"
	hashOfB = "b831b33e0c05b45e15bbdd9b3bfa43825fee0aa0b6e5a54e31e2bd8b073b76b7"
)

func withRules(rules map[string]ColumnRule) *Encoder {
	o := options()
	o.Columns = func(_, _, column string) ColumnRule { return rules[column] }
	return New(o)
}

// Columns that are left out and masked, in each image, with what the log did not carry and what the
// type cannot hold.
func TestColumnsOutAndMasked(t *testing.T) {
	e := withRules(map[string]ColumnRule{
		"gone":  {Out: true, Key: "column.exclude.list"},
		"stars": {Mask: &schema.Mask{Kind: schema.MaskStars, Length: 3}},
		"hash":  {Mask: sha},
		"cut":   {Mask: &schema.Mask{Kind: schema.MaskTruncate, Length: 2}},
	})
	defer e.Close()
	rel := relation(schema.IdentityFull, col("id", oidInt4, true), col("gone", oidText, false),
		col("stars", oidText, false), col("hash", oidText, false), col("cut", oidText, false))
	table := compile(t, e, rel, schema.TableInfo{PrimaryKey: []string{"id"}})
	if strings.Contains(table.ValueSchema, "gone") {
		t.Errorf("the schema has the column: %s", table.ValueSchema)
	}
	whole := row("1", "g", "secret", "a", "abc")
	recs := encode(t, e, table, change(decode.KindInsert, rel, 0, nil, whole))
	recs = append(recs, encode(t, e, table, change(decode.KindUpdate, rel, 'O', whole,
		row("1", unchanged, unchanged, unchanged, "x\xff")))...)
	recs = append(recs, encode(t, e, table, change(decode.KindDelete, rel, 'O',
		row("1", null, null, null, null), nil))...)
	lines(t, table, recs,
		"c key=(1) NOT_APPLICABLE before=- key=- after=(1,MISSING,***,"+hashOfA+",ab)",
		"u key=(1) FULL before=(1,MISSING,***,"+hashOfA+",ab) key=(1) "+
			"after=(1,MISSING,***,"+hashOfA+",null) AFTER.cut=UNREPRESENTABLE",
		"d key=(1) FULL before=(1,MISSING,***,null,null) key=(1) after=-", "d key=(1) tombstone")
	for _, r := range recs {
		for _, secret := range []string{"secret", "abc", "x\xff", `x78ff`} {
			if strings.Contains(string(r.Value), secret) {
				t.Errorf("op %c shows %q", r.Op, secret)
			}
		}
		r.Buffer.Release()
	}

	// The log does not carry it: asterisks do not need it, a hash does.
	def := relation(schema.IdentityDefault, rel.Columns...)
	def.Columns[0].Key = true
	for i := range def.Columns[1:] {
		def.Columns[i+1].Key = false
	}
	table = compile(t, e, def, schema.TableInfo{})
	recs = encode(t, e, table, change(decode.KindUpdate, def, 0, nil,
		row("1", unchanged, unchanged, unchanged, unchanged)))
	lines(t, table, recs, "u key=(1) ABSENT before=- key=- after=(1,MISSING,***,null,null) "+
		"AFTER.hash=UNAVAILABLE AFTER.cut=UNAVAILABLE")
	recs[0].Buffer.Release()
}

// A hash in the key is that of the value, in every record and in before_key.
func TestAHashedKey(t *testing.T) {
	for _, asText := range []bool{false, true} {
		o := options()
		o.Columns = func(_, _, _ string) ColumnRule { return ColumnRule{Mask: sha} }
		o.KeyText = func(_, _, _ string) bool { return asText }
		e := New(o)
		defer e.Close()
		rel := relation(schema.IdentityDefault, col("k", oidText, true))
		table := compile(t, e, rel, schema.TableInfo{})
		recs := encode(t, e, table, change(decode.KindUpdate, rel, 'K', row("a"), row("b")))
		lines(t, table, recs,
			"d key=("+hashOfA+") KEY before=- key=("+hashOfA+") after=-",
			"d key=("+hashOfA+") tombstone",
			"c key=("+hashOfB+") KEY before=- key=("+hashOfA+") after=("+hashOfB+")")
		for _, r := range recs {
			r.Buffer.Release()
		}
	}
}

// What would harm a key, or cannot hide what it is asked to hide, is refused by name.
func TestColumnsThatCannotBeMasked(t *testing.T) {
	short := col("k", 1043, true)
	short.TypeMod = 20 + 4
	for name, tc := range map[string]struct {
		column schema.Column
		rule   ColumnRule
		want   string
	}{
		"out": {
			col("k", oidText, true),
			ColumnRule{Out: true, Key: "column.exclude.list"},
			"column.exclude.list leaves out key column public.orders.k",
		},
		"stars": {
			col("k", oidText, true),
			ColumnRule{Mask: &schema.Mask{Kind: schema.MaskStars}, Key: "column.mask.with.0.chars"},
			"column.mask.with.0.chars names key column public.orders.k: different keys",
		},
		"cut": {
			col("k", oidText, true), ColumnRule{
				Mask: &schema.Mask{Kind: schema.MaskTruncate, Length: 9},
				Key:  "column.truncate.to.9.chars",
			}, "column.truncate.to.9.chars names key column public.orders.k: different keys",
		},
		"short": {
			short,
			ColumnRule{Mask: sha, Key: "column.mask.hash.v2.SHA-256.with.salt.****"},
			"public.orders.k, which is too short for the hash: different keys could become the same " +
				"(found 20 characters, wanted 64",
		},
		"number": {
			col("k", oidInt4, true),
			ColumnRule{Mask: sha, Key: "column.mask.hash.x"},
			"column.mask.hash.x names column public.orders.k, whose field is not a string",
		},
	} {
		o := options()
		o.Columns = func(_, _, _ string) ColumnRule { return tc.rule }
		e := New(o)
		_, err := e.Compile(relation(schema.IdentityDefault, tc.column), schema.TableInfo{})
		if fault.CodeOf(err) != fault.ConfigInvalid || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
	// A cut leaves a number as it is, in a key too.
	e := withRules(map[string]ColumnRule{
		"k": {Mask: &schema.Mask{Kind: schema.MaskTruncate, Length: 1}},
	})
	table := compile(t, e, relation(schema.IdentityDefault, col("k", oidInt4, true)),
		schema.TableInfo{})
	if len(table.Masked) > 0 || !table.HasKey() {
		t.Errorf("a number that is not cut: %v", table.Masked)
	}
}
