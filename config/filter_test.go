package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// filterOf loads lists through the settings.
func filterOf(t *testing.T, lists map[string]string) *Filter {
	t.Helper()
	worker, connector := base()
	for key, list := range lists {
		connector[key] = list
	}
	f, _, err := FromMaps(worker, map[string]map[string]string{"c": connector})
	if err != nil {
		t.Fatal(err)
	}
	return &f.Connectors[0].Tables
}

func TestCaptured(t *testing.T) {
	for _, tc := range []struct {
		name    string
		lists   map[string]string
		yes, no []string
	}{
		{
			"nothing given", nil,
			[]string{"public.t", "other.t", "pgx.t"},
			[]string{
				"pg_catalog.pg_class", "information_schema.tables", "pg_toast.pg_toast_1",
				"pg_temp_3.t", "pg_toast_temp_1.t", "tidemark.log", "public.spatial_ref_sys",
			},
		},
		{
			"expressions match the whole name, without regard to case",
			map[string]string{"table.include.list": `public.orders, shop\..*`},
			[]string{"public.orders", "public.Orders", "shop.a", "shop.a.b"},
			[]string{"public.orders2", "xpublic.orders", "public.customers", "myshop.a"},
		},
		{
			"alternatives are anchored too",
			map[string]string{"table.include.list": `public.a|public.b`},
			[]string{"public.a", "public.b"},
			[]string{"public.ab", "xpublic.b"},
		},
		{
			"a comma in brackets belongs to the expression",
			map[string]string{"table.include.list": `public.t{1,2},public.[a,b],public.x\,y`},
			[]string{"public.t", "public.tt", "public.a", "public.,", "public.x,y"},
			[]string{"public.ttt", "public.c", "public.x"},
		},
		{
			"schemas and tables both decide",
			map[string]string{"schema.include.list": "a,b", "table.exclude.list": `a\.x.*`},
			[]string{"a.t", "b.x1"},
			[]string{"a.x1", "c.t", "ab.t"},
		},
		{
			"a system schema cannot be asked for",
			map[string]string{"table.include.list": ".*"},
			[]string{"public.t"},
			[]string{"pg_catalog.pg_class", "tidemark.x"},
		},
		{
			"excluded schemas",
			map[string]string{"schema.exclude.list": "audit.*"},
			[]string{"public.t"},
			[]string{"audit.t", "audit2.t"},
		},
	} {
		f := filterOf(t, tc.lists)
		for want, names := range map[bool][]string{true: tc.yes, false: tc.no} {
			for _, name := range names {
				schema, table, _ := strings.Cut(name, ".")
				if f.Captured(schema, table) != want {
					t.Errorf("%s: %s is captured: %v", tc.name, name, !want)
				}
			}
		}
	}
}

func TestLiteralAndUnmatched(t *testing.T) {
	f := filterOf(t, map[string]string{
		"table.include.list": `public.orders, Sales\.Big_Table, public.t.*, public.größe`,
	})
	want := [][2]string{{"public", "orders"}, {"Sales", "Big_Table"}, {"public", "größe"}}
	if diff := cmp.Diff(want, f.Literal()); diff != "" {
		t.Error(diff)
	}
	if !f.CouldMatchLater() {
		t.Error("public.t.* can match a table made later")
	}
	got := f.Unmatched([][2]string{{"public", "orders"}, {"public", "x"}})
	if !slices.Equal(got, []string{`Sales\.Big_Table`, "public.t.*", "public.größe"}) {
		t.Errorf("unmatched: %q", got)
	}
	if f := filterOf(t, map[string]string{"table.include.list": "a.b,c.d"}); f.CouldMatchLater() {
		t.Error("plain names can only match what they name")
	}
	if f := filterOf(t, nil); !f.CouldMatchLater() || f.Unmatched(nil) != nil {
		t.Error("without lists everything can match")
	}
}

func TestANameThatPostgreSQLCutsIsCutToo(t *testing.T) {
	// 62 letters and é (two bytes): PostgreSQL keeps 62, since é would not fit whole.
	long := strings.Repeat("a", 62) + "é_tail"
	f, warnings, bad := loadText(t, withConnector("table.include.list: public."+long))
	if bad != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "as the server cuts it") {
		t.Fatalf("violations %q, warnings %q", bad, warnings)
	}
	filter := &f.Connectors[0].Tables
	if !filter.Captured("public", strings.Repeat("a", 62)) {
		t.Error("the table under its cut name is not captured")
	}
	want := [][2]string{{"public", strings.Repeat("a", 62)}}
	if !slices.Equal(filter.Literal(), want) {
		t.Errorf("literal: %q", filter.Literal())
	}
	// An expression is left alone: nobody can tell what it was meant to match.
	f, warnings, _ = loadText(t, withConnector("table.include.list: public."+long+".*"))
	if len(warnings) != 0 || f.Connectors[0].Tables.Captured("public", strings.Repeat("a", 62)) {
		t.Errorf("an expression was cut; warnings %q", warnings)
	}
}
