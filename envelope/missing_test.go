package envelope

import (
	"reflect"
	"testing"

	"github.com/tidemark-cdc/tidemark/connector/decode"
	"github.com/tidemark-cdc/tidemark/schema"
)

// What is missing is what Row would flag: not what an old tuple has, nor a column whose value is
// not sent. Read again, it is masked like any other value.
func TestWhatIsMissingAndReadAgain(t *testing.T) {
	rules := map[string]ColumnRule{
		"gone": {Out: true}, "stars": {Mask: &schema.Mask{Kind: schema.MaskStars, Length: 3}},
		"hash": {Mask: sha},
	}
	e := withRules(rules)
	defer e.Close()
	rel := relation(schema.IdentityDefault, col("id", oidText, true), col("gone", oidText, false),
		col("stars", oidText, false), col("hash", oidText, false), col("n", oidInt4, false))
	table := compile(t, e, rel, schema.TableInfo{})
	ev := change(decode.KindUpdate, rel, 'K', row("k", null, null, null, null),
		row(unchanged, unchanged, unchanged, unchanged, unchanged))
	missing := e.Missing(nil, table, ev)
	if !reflect.DeepEqual(missing, []int{3, 4}) {
		t.Errorf("missing are %v", missing)
	}
	identity, ok := table.Identity(nil, ev)
	if !ok || len(identity) != 1 || string(identity[0]) != "k" {
		t.Errorf("identity %q, %t", identity, ok)
	}
	copy(ev.New[3:], row("a", "seven"))
	recs, err := e.RowReread(nil, table, ev, missing)
	if err != nil {
		t.Fatal(err)
	}
	lines(t, table, recs, "u key=(k) KEY before=- key=(k) after=(k,MISSING,***,"+hashOfA+",null) "+
		"AFTER.hash=RESELECTED AFTER.n=RESELECTED AFTER.n=UNREPRESENTABLE(seven)")
	recs[0].Buffer.Release()
	if got := e.Stats()[0]; got.Reselected != 2 || got.Unrepresentable != 1 || got.Unavailable != 0 {
		t.Errorf("counted %+v", got)
	}

	insert := change(decode.KindInsert, rel, 0, nil, row("k", null, null, null, "1"))
	if got := e.Missing(nil, table, insert); len(got) != 0 {
		t.Errorf("an insert misses %v", got)
	}
	if _, ok := table.Identity(nil, change(decode.KindUpdate, rel, 0, nil,
		row(unchanged, null, null, null, null))); ok {
		t.Error("a row without its key has an identity")
	}
	o := options()
	o.Skipped = map[byte]bool{'u': true}
	skips := New(o)
	defer skips.Close()
	if got := skips.Missing(nil, compile(t, skips, rel, schema.TableInfo{}), ev); len(got) != 0 {
		t.Errorf("an update that is not sent misses %v", got)
	}
}

// Under FULL every column is flagged as identity: a row is named by its key, if it has one.
func TestIdentityUnderFull(t *testing.T) {
	e := New(options())
	defer e.Close()
	rel := relation(schema.IdentityFull, col("v", oidText, true), col("id", oidInt4, true))
	table := compile(t, e, rel, schema.TableInfo{PrimaryKey: []string{"id"}})
	ev := change(decode.KindUpdate, rel, 0, nil, row(unchanged, "5"))
	identity, ok := table.Identity(nil, ev)
	if !ok || len(identity) != 1 || string(identity[0]) != "5" ||
		!reflect.DeepEqual(e.Missing(nil, table, ev), []int{0}) {
		t.Errorf("identity %q, %t", identity, ok)
	}
	ev = change(decode.KindUpdate, rel, 'O', row("v", "5"), row(unchanged, "5"))
	if got := e.Missing(nil, table, ev); len(got) != 0 {
		t.Errorf("the old row has it: %v", got)
	}
	table = compile(t, e, rel, schema.TableInfo{})
	if _, ok := table.Identity(nil, ev); ok || table.IdentityColumns != nil {
		t.Error("a table without a key names its rows")
	}
}
