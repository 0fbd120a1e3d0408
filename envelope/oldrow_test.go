package envelope

import (
	"testing"

	"github.com/tidemark-cdc/tidemark/connector/decode"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/schema"
)

// shape is a tuple shape as the server sends it (wire-facts, "Tuple shapes") for the table
// (id int primary key, v text, big text), and the records that it makes.
type shape struct {
	name        string
	identity    schema.Identity
	info        schema.TableInfo
	leafNotFull bool
	kind        decode.Kind
	oldKind     byte
	old, next   schema.Tuple
	want        []string
}

var (
	withPK    = schema.TableInfo{PrimaryKey: []string{"id"}}
	withoutPK = schema.TableInfo{}
	fullRoot  = schema.TableInfo{PrimaryKey: []string{"id"}, IsRoot: true, LeavesFull: true}
	mixedRoot = schema.TableInfo{PrimaryKey: []string{"id"}, IsRoot: true}
)

const (
	byDefault = schema.IdentityDefault
	byFull    = schema.IdentityFull
	byNothing = schema.IdentityNothing
	insert    = decode.KindInsert
	update    = decode.KindUpdate
	remove    = decode.KindDelete
)

var shapes = []shape{
	{
		name: "insert", identity: byDefault, kind: insert, next: row("1", "a", null),
		want: []string{"c key=(1) NOT_APPLICABLE before=- key=- after=(1,a,null)"},
	},
	{
		name: "insert under FULL", identity: byFull, info: withPK, kind: insert, next: row("1", "a", "b"),
		want: []string{"c key=(1) NOT_APPLICABLE before=- key=- after=(1,a,b)"},
	},
	{
		name: "DEFAULT, non-key update, unchanged 5 kB column", identity: byDefault, kind: update,
		next: row("1", "a", unchanged),
		want: []string{"u key=(1) ABSENT before=- key=- after=(1,a,null) AFTER.big=UNAVAILABLE"},
	},
	{
		name: "DEFAULT, a null and an unchanged value stay apart", identity: byDefault, kind: update,
		next: row("1", null, unchanged),
		want: []string{"u key=(1) ABSENT before=- key=- after=(1,null,null) AFTER.big=UNAVAILABLE"},
	},
	{
		name: "DEFAULT, key change", identity: byDefault, kind: update,
		oldKind: 'K', old: row("1", null, null), next: row("9", "a", unchanged),
		want: []string{
			"d key=(1) KEY before=- key=(1) after=-",
			"d key=(1) tombstone",
			"c key=(9) KEY before=- key=(1) after=(9,a,null) AFTER.big=UNAVAILABLE",
		},
	},
	{
		name: "DEFAULT, K without a change of key", identity: byDefault, kind: update,
		oldKind: 'K', old: row("1", null, null), next: row(unchanged, "2", unchanged),
		want: []string{"u key=(1) KEY before=- key=(1) after=(1,2,null) AFTER.big=UNAVAILABLE"},
	},
	{
		name: "DEFAULT, K with the same key in the new row", identity: byDefault, kind: update,
		oldKind: 'K', old: row("1", null, null), next: row("1", "2", "3"),
		want: []string{"u key=(1) KEY before=- key=(1) after=(1,2,3)"},
	},
	{
		name: "DEFAULT delete", identity: byDefault, kind: remove,
		oldKind: 'K', old: row("1", null, null),
		want: []string{"d key=(1) KEY before=- key=(1) after=-", "d key=(1) tombstone"},
	},
	{
		name: "FULL update", identity: byFull, info: withPK, kind: update,
		oldKind: 'O', old: row("1", null, "long"), next: row("1", "a", unchanged),
		want: []string{"u key=(1) FULL before=(1,null,long) key=(1) after=(1,a,long)"},
	},
	{
		name: "FULL key change", identity: byFull, info: withPK, kind: update,
		oldKind: 'O', old: row("1", "a", "long"), next: row("9", null, unchanged),
		want: []string{
			"d key=(1) FULL before=(1,a,long) key=(1) after=-",
			"d key=(1) tombstone",
			"c key=(9) FULL before=(1,a,long) key=(1) after=(9,null,long)",
		},
	},
	{
		name: "FULL delete", identity: byFull, info: withPK, kind: remove,
		oldKind: 'O', old: row("1", null, "long"),
		want: []string{
			"d key=(1) FULL before=(1,null,long) key=(1) after=-", "d key=(1) tombstone",
		},
	},
	{
		name: "FULL without primary key, update", identity: byFull, info: withoutPK, kind: update,
		oldKind: 'O', old: row("1", "a", "b"), next: row("2", "a", unchanged),
		want: []string{"u key=- FULL before=(1,a,b) key=- after=(2,a,b)"},
	},
	{
		name: "FULL without primary key, delete: no tombstone", identity: byFull, info: withoutPK,
		kind: remove, oldKind: 'O', old: row(null, "a", "b"),
		want: []string{"d key=- FULL before=(null,a,b) key=- after=-"},
	},
	{
		name: "FULL, table gone from the catalog", identity: byFull,
		info: schema.TableInfo{Missing: true},
		kind: remove, oldKind: 'O', old: row("1", "a", "b"),
		want: []string{"d key=- FULL before=(1,a,b) key=- after=-"},
	},
	{
		name: "root FULL, all leaves FULL, delete", identity: byFull, info: fullRoot, kind: remove,
		oldKind: 'O', old: row("1", null, "b"),
		want: []string{"d key=(1) FULL before=(1,null,b) key=(1) after=-", "d key=(1) tombstone"},
	},
	{
		name: "root FULL, leaf DEFAULT, update: N only", identity: byFull, info: mixedRoot, kind: update,
		next: row("1", "a", unchanged),
		want: []string{"u key=(1) ABSENT before=- key=- after=(1,a,null) AFTER.big=UNAVAILABLE"},
	},
	{
		name: "root FULL, leaf DEFAULT, key change: O(key only)", identity: byFull, info: mixedRoot,
		kind: update, oldKind: 'O', old: row("1", null, null), next: row("9", "a", unchanged),
		want: []string{
			"d key=(1) KEY before=- key=(1) after=-",
			"d key=(1) tombstone",
			"c key=(9) KEY before=- key=(1) after=(9,a,null) AFTER.big=UNAVAILABLE",
		},
	},
	{
		name: "root FULL, leaf DEFAULT, delete: O(key, null)", identity: byFull, info: mixedRoot,
		kind: remove, oldKind: 'O', old: row("1", null, null),
		want: []string{"d key=(1) KEY before=- key=(1) after=-", "d key=(1) tombstone"},
	},
	{
		name: "root FULL, one leaf not: a complete O is KEY too", identity: byFull, info: mixedRoot,
		kind: update, oldKind: 'O', old: row("1", "a", "long"), next: row("1", "b", unchanged),
		want: []string{"u key=(1) KEY before=- key=(1) after=(1,b,long)"},
	},
	{
		name: "root FULL, the stream announced a leaf that is not", identity: byFull, info: fullRoot,
		leafNotFull: true, kind: remove, oldKind: 'O', old: row("1", null, null),
		want: []string{"d key=(1) KEY before=- key=(1) after=-", "d key=(1) tombstone"},
	},
	{
		name: "root DEFAULT, leaf FULL, update: K with complete old row", identity: byDefault,
		kind: update, oldKind: 'K', old: row("1", "a", "long"), next: row("1", "b", unchanged),
		want: []string{"u key=(1) KEY before=- key=(1) after=(1,b,null) AFTER.big=UNAVAILABLE"},
	},
	{
		name: "root DEFAULT, leaf FULL, delete: K with complete old row", identity: byDefault,
		kind: remove, oldKind: 'K', old: row("1", "a", "long"),
		want: []string{"d key=(1) KEY before=- key=(1) after=-", "d key=(1) tombstone"},
	},
	{
		name: "identity NOTHING, insert", identity: byNothing, kind: insert, next: row("1", "a", "b"),
		want: []string{"c key=- NOT_APPLICABLE before=- key=- after=(1,a,b)"},
	},
}

func (s *shape) compile(t *testing.T, e *Encoder) (*Table, *schema.Relation) {
	rel := relation(s.identity, col("id", oidInt4, s.identity == byDefault),
		col("v", oidText, false), col("big", oidText, false))
	table := compile(t, e, rel, s.info)
	if s.leafNotFull {
		table.LeafNotFull()
	}
	return table, rel
}

func TestTupleShapes(t *testing.T) {
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			e := New(options())
			table, rel := s.compile(t, e)
			recs := encode(t, e, table, change(s.kind, rel, s.oldKind, s.old, s.next))
			lines(t, table, recs, s.want...)
			for _, r := range recs {
				if want := map[bool]Route{true: RouteKey, false: RouteOne}[r.Key != nil]; r.Route != want {
					t.Errorf("route %d with key %x", r.Route, r.Key)
				}
			}
		})
	}
}

// USING INDEX on a unique column that is not the primary key: the flag marks the index's columns.
func TestIdentityByIndex(t *testing.T) {
	e := New(options())
	rel := relation(schema.IdentityIndex, col("id", oidInt4, false), col("code", oidText, true))
	table := compile(t, e, rel, withPK)
	lines(t, table, encode(t, e, table, change(update, rel, 0, nil, row("9", "x"))),
		"u key=(x) ABSENT before=- key=- after=(9,x)")
	lines(t, table, encode(t, e, table, change(remove, rel, 'K', row(null, "x"), nil)),
		"d key=(x) KEY before=- key=(x) after=-", "d key=(x) tombstone")
}

// A key of two columns, one of which is out of line, of which the other changes.
func TestKeyChangeWithUnchangedKeyColumn(t *testing.T) {
	e := New(options())
	rel := relation(byDefault, col("a", oidText, true), col("b", oidInt4, true))
	table := compile(t, e, rel, withPK)
	ev := change(update, rel, 'K', row("long", "1"), row(unchanged, "2"))
	lines(t, table, encode(t, e, table, ev),
		"d key=(long,1) KEY before=- key=(long,1) after=-",
		"d key=(long,1) tombstone",
		"c key=(long,2) KEY before=- key=(long,1) after=(long,2)")
}

// Texts that differ and encode to the same Key are no change of key: Kafka sees one key.
func TestEqualKeyBytesAreNoKeyChange(t *testing.T) {
	e := New(options())
	numeric := schema.Column{Name: "id", TypeOID: oidNumeric, TypeMod: 10<<16 | 2 + 4, Key: true}
	rel := relation(byDefault, numeric, col("v", oidText, false))
	table := compile(t, e, rel, schema.TableInfo{})
	recs := encode(t, e, table, change(update, rel, 'K', row("1.5", null), row("1.50", "x")))
	if len(recs) != 1 || recs[0].Op != 'u' {
		t.Errorf("%d records, the first %c", len(recs), recs[0].Op)
	}
}

func TestChangesThatStop(t *testing.T) {
	required := options()
	required.BeforeRequired = func(schema, table string) bool { return table == "orders" }
	keyed := options()
	keyed.KeyColumns = func(_, _ string) []string { return []string{"v"} }
	for _, c := range []struct {
		shape
		o    Options
		code fault.Code
	}{
		{shape{
			name: "no before, required, update", identity: byDefault, kind: update,
			next: row("1", "a", "b"),
		}, required, fault.BeforeImageMissing},
		{shape{
			name: "key only, required, delete", identity: byDefault, kind: remove,
			oldKind: 'K', old: row("1", null, null),
		}, required, fault.BeforeImageMissing},
		{shape{
			name: "leaf not FULL, required", identity: byFull, info: mixedRoot, kind: remove,
			oldKind: 'O', old: row("1", "a", "b"),
		}, required, fault.BeforeImageMissing},
		{shape{
			name: "no key, leaf not FULL", identity: byFull,
			info: schema.TableInfo{IsRoot: true}, kind: remove, oldKind: 'O', old: row("1", "a", null),
		}, options(), fault.ReplicaIdentityUnusable},
		{shape{
			name: "configured key is null", identity: byFull, info: withPK, kind: insert,
			next: row("1", null, "b"),
		}, keyed, fault.KeyUnrepresentable},
		{shape{
			name: "configured key is not in the leaf's identity", identity: byFull, info: mixedRoot,
			kind: remove, oldKind: 'O', old: row("1", null, null),
		}, keyed, fault.ReplicaIdentityUnusable},
		{shape{
			name: "key out of line and not carried", identity: byDefault, kind: update,
			next: row(unchanged, "a", "b"),
		}, options(), fault.ReplicaIdentityUnusable},
		{shape{
			name: "too few columns", identity: byDefault, kind: insert, next: row("1"),
		}, options(), fault.ProtocolError},
		{shape{
			name: "too many columns in the old row", identity: byDefault, kind: remove,
			oldKind: 'K', old: row("1", "2", "3", "4"),
		}, options(), fault.ProtocolError},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := New(c.o)
			table, rel := c.compile(t, e)
			recs, err := e.Row(nil, table, change(c.kind, rel, c.oldKind, c.old, c.next))
			if !fault.Has(err, c.code) || len(recs) > 0 {
				t.Fatalf("want %s, got %d records and %v", c.code, len(recs), err)
			}
			t.Log(err)
		})
	}
}
