package envelope

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/schema"
)

func TestKeyDecisions(t *testing.T) {
	for _, c := range []struct {
		name       string
		identity   schema.Identity
		flagged    string // columns of a, b, c with the Key flag
		info       schema.TableInfo
		configured []string
		want       []string
		reason     string
	}{
		{
			"DEFAULT: flagged columns in the stream's order", schema.IdentityDefault, "ac",
			schema.TableInfo{PrimaryKey: []string{"c", "a"}},
			nil,
			[]string{"a", "c"},
			"DEFAULT",
		},
		{
			"INDEX: flagged columns, not the primary key", schema.IdentityIndex, "b",
			schema.TableInfo{PrimaryKey: []string{"a"}},
			nil,
			[]string{"b"},
			"index",
		},
		{
			"FULL: the primary key", schema.IdentityFull, "abc",
			schema.TableInfo{PrimaryKey: []string{"c", "a"}},
			nil,
			[]string{"a", "c"},
			"FULL",
		},
		{
			"FULL without primary key", schema.IdentityFull, "abc",
			schema.TableInfo{},
			nil, nil, "no primary key",
		},
		{
			"FULL, gone from the catalog", schema.IdentityFull, "abc",
			schema.TableInfo{Missing: true},
			nil, nil, "gone",
		},
		{
			"FULL, a primary key column that the stream does not have", schema.IdentityFull, "abc",
			schema.TableInfo{PrimaryKey: []string{"a", "z"}},
			nil, nil, "no column z",
		},
		{
			"DEFAULT without primary key", schema.IdentityDefault, "",
			schema.TableInfo{},
			nil, nil, "none",
		},
		{
			"NOTHING", schema.IdentityNothing, "",
			schema.TableInfo{PrimaryKey: []string{"a"}},
			nil, nil, "none",
		},
		{
			"message.key.columns in their own order", schema.IdentityFull, "abc",
			schema.TableInfo{PrimaryKey: []string{"a"}},
			[]string{"c", "b"},
			[]string{"c", "b"},
			"message.key.columns",
		},
		{
			"message.key.columns within the identity", schema.IdentityDefault, "ab",
			schema.TableInfo{},
			[]string{"b"},
			[]string{"b"},
			"message.key.columns",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			table, err := compileKey(c.identity, c.flagged, c.info, c.configured)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, table.KeyColumns); d != "" {
				t.Errorf("key (-want +got):\n%s", d)
			}
			if !strings.Contains(table.KeyReason, c.reason) {
				t.Errorf("reason %q", table.KeyReason)
			}
			if table.HasKey() != (table.KeySchema != "") || table.HasKey() != (len(c.want) > 0) {
				t.Errorf("HasKey %v, schema %q", table.HasKey(), table.KeySchema)
			}
			if table.HasKey() != strings.Contains(table.ValueSchema, `"before_key"`) {
				t.Error("before_key is there without a key, or the other way round")
			}
		})
	}
}

func compileKey(identity schema.Identity, flagged string, info schema.TableInfo, key []string) (
	*Table, error,
) {
	rel := relation(identity)
	for _, name := range []string{"a", "b", "c"} {
		rel.Columns = append(rel.Columns, col(name, oidText, strings.Contains(flagged, name)))
	}
	o := options()
	o.KeyColumns = func(_, _ string) []string { return key }
	return New(o).Compile(rel, info)
}

func TestKeysThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		name     string
		identity schema.Identity
		flagged  string
		key      string
	}{
		{"outside the primary key", schema.IdentityDefault, "a", "b"},
		{"outside the index", schema.IdentityIndex, "b", "a"},
		{"identity NOTHING", schema.IdentityNothing, "", "a"},
		{"no such column", schema.IdentityFull, "abc", "z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := compileKey(c.identity, c.flagged, schema.TableInfo{}, []string{c.key})
			wantFault(t, err, fault.ReplicaIdentityUnusable, "public.orders", c.key, "message.key.columns")
			if c.key != "z" {
				wantFault(t, err, fault.ReplicaIdentityUnusable,
					`ALTER TABLE "public"."orders" REPLICA IDENTITY FULL`)
			}
		})
	}
}

func TestTopicTooLong(t *testing.T) {
	o := options()
	o.Prefix = strings.Repeat("p", 236) // with ".public.orders": 250
	_, err := New(o).Compile(orders(byDefault), withPK)
	wantFault(t, err, fault.TopicsCollide, "public.orders", "250", "249")
	o.Prefix = o.Prefix[1:]
	if _, err := New(o).Compile(orders(byDefault), withPK); err != nil {
		t.Error(err)
	}
}

// Names that Kafka or Avro do not take are escaped; source has the true ones.
func TestNames(t *testing.T) {
	rel := relation(byDefault, col("a b", oidInt4, true), col("a-b", oidText, false),
		col("_x0020_", oidText, false))
	rel.Namespace, rel.Name = "Sch.é", "my table"
	e := New(options())
	table := compile(t, e, rel, withPK)
	if want := "shop.Sch_x002E__x00E9_.my_x0020_table"; table.Topic != want {
		t.Errorf("topic %s, want %s", table.Topic, want)
	}
	recs := encode(t, e, table, change(update, rel, 0, nil, row("1", "x", unchanged)))
	lines(t, table, recs, "u key=(1) ABSENT before=- key=- after=(1,x,null)"+
		" AFTER._x005F_x0020_=UNAVAILABLE")
	v := native(t, table.ValueSchema, valueID, recs[0].Value)
	source := flat(v["source"])
	if source["schema"] != "Sch.é" || source["table"] != "my table" {
		t.Errorf("source %v.%v", source["schema"], source["table"])
	}
}

// A table without columns (wire-facts W19) has events like any other.
func TestNoColumns(t *testing.T) {
	rel := relation(byDefault)
	e := New(options())
	table := compile(t, e, rel, schema.TableInfo{})
	lines(t, table, encode(t, e, table, change(insert, rel, 0, nil, row())),
		"c key=- NOT_APPLICABLE before=- key=- after=()")
}
