package catalog_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-cdc/tidemark/schema"
	"github.com/tidemark-cdc/tidemark/schema/catalog"
)

func TestCandidates(t *testing.T) {
	onVersions(t, func(t *testing.T, _ string, db *database) {
		db.run(tables...)
		db.run(
			"CREATE UNLOGGED TABLE fast (id int PRIMARY KEY)",
			"CREATE TEMPORARY TABLE passing (id int)",
			"CREATE VIEW seen AS SELECT 1",
			"ALTER TABLE indexed DROP CONSTRAINT indexed_u_key",
			"ALTER TABLE keyless REPLICA IDENTITY NOTHING",
			"INSERT INTO leaf SELECT 'v', i FROM generate_series(1, 50) i",
			"ANALYZE leaf", "ANALYZE root",
		)
		got, err := catalog.New(db.Conn).Candidates(db.ctx)
		if err != nil {
			t.Fatal(err)
		}
		id, none := []string{"id"}, []string{}
		own := func(r catalog.TableRow) catalog.TableRow {
			r.Schema, r.Selectable, r.Owned = "public", true, true
			return r
		}
		want := []catalog.TableRow{
			own(catalog.TableRow{
				Name: "Full é", Identity: 'f', IdentityColumns: none,
				PrimaryKey: id, NotNull: id, ToastColumns: []string{"V"},
			}),
			own(catalog.TableRow{
				Name: "empty", Identity: 'd', IdentityColumns: none,
				PrimaryKey: none, NotNull: none, ToastColumns: none,
			}),
			own(catalog.TableRow{
				Name: "fast", Identity: 'd', IdentityColumns: id,
				PrimaryKey: id, NotNull: id, ToastColumns: none, Unlogged: true,
			}),
			own(catalog.TableRow{ // its index is gone: nothing says which row it was
				Name: "indexed", Identity: 'i', IdentityColumns: none,
				PrimaryKey: id, NotNull: []string{"id", "u"}, ToastColumns: []string{"v"},
			}),
			own(catalog.TableRow{
				Name: "keyless", Identity: 'n', IdentityColumns: none,
				PrimaryKey: none, NotNull: none, ToastColumns: []string{"v"},
			}),
			own(catalog.TableRow{ // a deferrable key is no identity
				Name: "late", Identity: 'd', IdentityColumns: none,
				PrimaryKey: id, NotNull: id, ToastColumns: []string{"v"},
			}),
			own(catalog.TableRow{
				Name: "leaf", Partition: true, Identity: 'd', IdentityColumns: id,
				PrimaryKey: id, NotNull: id, ToastColumns: []string{"v"}, Rows: 50,
			}),
			own(catalog.TableRow{
				Name: "outside", Identity: 'd', IdentityColumns: id,
				PrimaryKey: id, NotNull: id, ToastColumns: none,
			}),
			own(catalog.TableRow{
				Name: "plain", Identity: 'd', IdentityColumns: []string{"b", "a"},
				PrimaryKey: []string{"b", "a"}, NotNull: []string{"b", "a"},
				ToastColumns: []string{"v", "m"}, Generated: "s",
			}),
			own(catalog.TableRow{
				Name: "root", Partitioned: true, Identity: 'd', IdentityColumns: id,
				PrimaryKey: id, NotNull: id, ToastColumns: []string{"v"}, Rows: 50,
			}),
		}
		for i, row := range want {
			want[i].OID = db.oid(`"` + row.Name + `"`)
			want[i].RootOID = want[i].OID
			if row.Name == "leaf" {
				want[i].RootOID = db.oid("root")
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		for _, row := range got {
			usable := map[string]bool{"empty": false, "indexed": false, "keyless": false, "late": false}
			if _, named := usable[row.Name]; row.UsableIdentity() == named {
				t.Errorf("%s: its identity is usable: %v", row.Name, row.UsableIdentity())
			}
		}
	})
}

// What the connector's role may do, which the superuser that tests run as may all do.
func TestCandidatesOfAnotherRole(t *testing.T) {
	db := newDatabase(t, "18")
	db.run(
		"CREATE ROLE capture",
		"CREATE TABLE public.granted (id int PRIMARY KEY)",
		"GRANT SELECT ON public.granted TO capture",
		"CREATE TABLE public.hidden (id int PRIMARY KEY)",
		"ALTER TABLE public.hidden ENABLE ROW LEVEL SECURITY",
		"CREATE TABLE public.owned (id int PRIMARY KEY)",
		"ALTER TABLE public.owned OWNER TO capture",
		"ALTER TABLE public.owned ENABLE ROW LEVEL SECURITY",
		"SET ROLE capture",
	)
	got, err := catalog.New(db.Conn).Candidates(db.ctx)
	db.run("RESET ROLE", "DROP OWNED BY capture CASCADE", "DROP ROLE capture")
	if err != nil {
		t.Fatal(err)
	}
	type rights struct{ Selectable, Owned, RowSecurity bool }
	want := map[string]rights{
		"granted": {Selectable: true},
		"hidden":  {RowSecurity: true},
		"owned":   {Selectable: true, Owned: true}, // an owner's policies do not bind the owner
	}
	found := map[string]rights{}
	for _, r := range got {
		found[r.Name] = rights{r.Selectable, r.Owned, r.RowSecurity}
		if r.Identity != schema.IdentityDefault {
			t.Errorf("%s: identity %c", r.Name, r.Identity)
		}
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
