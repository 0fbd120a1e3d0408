package catalog_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-cdc/tidemark/schema"
	"github.com/tidemark-cdc/tidemark/schema/catalog"
)

// table looks up a table that is there.
func (d *database) table(c *catalog.Catalog, name string) (*schema.Relation, schema.TableInfo) {
	d.t.Helper()
	published, err := c.RelationOf(d.ctx, d.oid(name), "")
	if err != nil {
		d.t.Fatal(err)
	}
	info, err := c.Table(d.ctx, published.Relation)
	if err != nil {
		d.t.Fatal(err)
	}
	return published.Relation, info
}

func TestTable(t *testing.T) {
	onVersions(t, func(t *testing.T, _ string, db *database) {
		db.run(tables...)
		c := catalog.New(db.Conn)
		for name, want := range map[string]schema.TableInfo{
			"plain":    {PrimaryKey: []string{"b", "a"}, LeavesFull: true},
			`"Full é"`: {PrimaryKey: []string{"id"}, LeavesFull: true},
			"indexed":  {PrimaryKey: []string{"id"}, LeavesFull: true},
			"late":     {PrimaryKey: []string{}, LeavesFull: true}, // deferrable
			"keyless":  {PrimaryKey: []string{}, LeavesFull: true},
			"empty":    {PrimaryKey: []string{}, LeavesFull: true},
			"root":     {PrimaryKey: []string{"id"}, IsRoot: true},
			"leaf":     {PrimaryKey: []string{"id"}, LeavesFull: true},
		} {
			_, got := db.table(c, name)
			got.Types = nil
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: -want +got\n%s", name, diff)
			}
		}
	})
}

func TestARootIsFullWhenAllItsLeavesAre(t *testing.T) {
	db := newDatabase(t, "18")
	db.run(
		"SET search_path = public",
		"CREATE TABLE root (id int, x int) PARTITION BY RANGE (id)",
		"CREATE TABLE middle PARTITION OF root FOR VALUES FROM (0) TO (10) PARTITION BY LIST (x)",
	)
	c := catalog.New(db.Conn)
	leavesFull := func(when string, want bool) {
		t.Helper()
		if _, info := db.table(c, "root"); info.LeavesFull != want {
			t.Errorf("%s: the leaves are full: %v", when, info.LeavesFull)
		}
	}
	leavesFull("without a leaf", true)
	db.run("CREATE TABLE a PARTITION OF root FOR VALUES FROM (10) TO (20)",
		"CREATE TABLE b PARTITION OF middle FOR VALUES IN (1)")
	leavesFull("both leaves DEFAULT", false)
	db.run("ALTER TABLE a REPLICA IDENTITY FULL")
	leavesFull("one leaf FULL", false)
	db.run("ALTER TABLE b REPLICA IDENTITY FULL")
	leavesFull("both leaves FULL, root and middle DEFAULT", true)
}

func TestTypesThroughDomainsAndArrays(t *testing.T) {
	db := newDatabase(t, "18")
	db.run("SET search_path = public", "CREATE SCHEMA app",
		"CREATE DOMAIN amt AS numeric(8,3)", `CREATE DOMAIN app."Amt" AS amt`,
		`CREATE TABLE t (c app."Amt"[], v int2vector, b box[], o oidvector[])`)
	rel, info := db.table(catalog.New(db.Conn), "t")
	types := info.Types
	array, _ := types.Type(rel.Columns[0].TypeOID)
	domain, _ := types.Type(array.Elem)
	base, _ := types.Type(domain.Base)
	want := []schema.TypeInfo{
		{
			OID: rel.Columns[0].TypeOID, Schema: "app", Name: "_Amt", Kind: 'b', Category: 'A',
			Elem: domain.OID, Delim: ',', BaseMod: -1,
		},
		{
			OID: array.Elem, Schema: "app", Name: "Amt", Kind: 'd', Category: 'N', Delim: ',',
			Base: base.OID, BaseMod: -1,
		},
		{
			OID: domain.Base, Schema: "public", Name: "amt", Kind: 'd', Category: 'N', Delim: ',',
			Base: 1700, BaseMod: 8<<16 | 3 + 4,
		},
	}
	if diff := cmp.Diff(want, []schema.TypeInfo{array, domain, base}); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	for oid, elem := range map[uint32]uint32{22: 0, 1020: 603, 1013: 30} {
		if got, ok := types.Type(oid); !ok || got.Elem != elem {
			t.Errorf("type %d: element %d, want %d (%v)", oid, got.Elem, elem, ok)
		}
	}
	if got, _ := types.Type(1020); got.Delim != ';' {
		t.Errorf("the delimiter of box[] is %q", got.Delim)
	}
}

// Rows of a table that is gone since are still in the log, and so is its shape.
func TestWhatIsGoneSince(t *testing.T) {
	db := newDatabase(t, "18")
	db.run("SET search_path = public", "CREATE DOMAIN amt AS numeric(8,3)",
		"CREATE TABLE t (id int PRIMARY KEY, m amt)")
	c := catalog.New(db.Conn)
	rel, before := db.table(c, "t")
	db.run("DROP TABLE t", "DROP DOMAIN amt")
	for name, c := range map[string]*catalog.Catalog{"known": c, "new": catalog.New(db.Conn)} {
		info, err := c.Table(db.ctx, rel)
		if err != nil {
			t.Fatal(err)
		}
		if !info.Missing || len(info.PrimaryKey) > 0 || info.IsRoot {
			t.Errorf("%s: %+v", name, info)
		}
		got := schema.Resolve(rel.Columns[1], info.Types, schema.Options{}).PGName
		if want := map[string]string{"known": "amt", "new": "unknown"}[name]; got != want {
			t.Errorf("%s: its domain is %q, want %q", name, got, want)
		}
	}
	if before.Missing {
		t.Error("the table was missing before it was dropped")
	}
}

func TestMoneyDigits(t *testing.T) {
	db := newDatabase(t, "18", "SET lc_monetary = 'C.utf8'")
	digits, err := catalog.New(db.Conn).MoneyDigits(db.ctx)
	if err != nil || digits != 2 {
		t.Errorf("%d digits, %v; want 2", digits, err)
	}
}
