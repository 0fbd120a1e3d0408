package schema

import (
	"regexp"
	"testing"

	"pgregory.net/rapid"
)

func TestFieldName(t *testing.T) {
	for column, want := range map[string]string{
		"id":           "id",
		"Name":         "Name",
		"name":         "name",
		"a b":          "a_x0020_b",
		"a_b":          "a_b",
		"a-b":          "a_x002D_b",
		"a.b":          "a_x002E_b",
		"Id#":          "Id_x0023_",
		"1st":          "_x0031_st",
		"a1":           "a1",
		`say "hi"`:     "say_x0020__x0022_hi_x0022_",
		"é":            "_x00E9_",
		"名":            "_x540D_",
		"😀":            "_xD83D__xDE00_",
		"_x0041_":      "_x005F_x0041_",
		"_x0041":       "_x005F_x0041",
		"_x004g":       "_x004g",
		"_x00e9_":      "_x00e9_", // lower case is no escape
		"__x0041_":     "__x005F_x0041_",
		"a\xe9":        "a_xDCE9_",
		"_":            "_",
		"namespace":    "namespace",
		"\x01":         "_x0001_",
		"_x00_x005F_x": "_x00_x005F_x005F_x",
	} {
		if got := FieldName(column); got != want {
			t.Errorf("FieldName(%q) = %q, want %q", column, got, want)
		}
	}
}

func TestTopicName(t *testing.T) {
	for _, c := range []struct{ prefix, schema, table, topic, namespace string }{
		{"shop", "public", "orders", "shop.public.orders", "shop.public.orders"},
		{"shop", "a.b", "c", "shop.a_x002E_b.c", "shop.a_x002E_b.c"},
		{"shop", "a", "b.c", "shop.a.b_x002E_c", "shop.a.b_x002E_c"},
		{"my-shop.eu", "public", "a-b", "my-shop.eu.public.a-b", "my_x002D_shop.eu.public.a_x002D_b"},
		{"s", "public", "foo$bar", "s.public.foo_x0024_bar", "s.public.foo_x0024_bar"},
		{"s", "public", "foo@bar", "s.public.foo_x0040_bar", "s.public.foo_x0040_bar"},
		{"s", "2024", "1st", "s.2024.1st", "s._x0032_024._x0031_st"},
		{
			"s", "Sch.éma", "Weird $Table-名",
			"s.Sch_x002E__x00E9_ma.Weird_x0020__x0024_Table-_x540D_",
			"s.Sch_x002E__x00E9_ma.Weird_x0020__x0024_Table_x002D__x540D_",
		},
	} {
		topic := TopicName(c.prefix, c.schema, c.table)
		if topic != c.topic {
			t.Errorf("TopicName(%q, %q, %q) = %q, want %q", c.prefix, c.schema, c.table, topic, c.topic)
		}
		if got := AvroNamespace(topic); got != c.namespace {
			t.Errorf("AvroNamespace(%q) = %q, want %q", topic, got, c.namespace)
		}
	}
}

// awkward draws names of pieces that an escape could be mistaken in.
var awkward = rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{
	"_", "x", "_x", "0", "00", "0041", "_x0041", "_x005F_", "A", "é", ".", "-", "a", "😀", "\xff",
}), 1, 8), func(parts []string) string {
	s := ""
	for _, p := range parts {
		s += p
	}
	return s
})

func TestNamesAreInjective(t *testing.T) {
	field := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	topic := regexp.MustCompile(`^[A-Za-z0-9._-]+$`)
	fields, topics, namespaces := map[string]string{}, map[string]string{}, map[string]string{}
	rapid.Check(t, func(t *rapid.T) {
		a, b := awkward.Draw(t, "schema"), awkward.Draw(t, "table")
		for _, c := range []struct {
			seen     map[string]string
			out, in  string
			language *regexp.Regexp
		}{
			{fields, FieldName(a), a, field},
			{topics, TopicName("p", a, b), a + "\x00" + b, topic},
			{namespaces, AvroNamespace(TopicName("p", a, b)), a + "\x00" + b, topic},
		} {
			if !c.language.MatchString(c.out) {
				t.Fatalf("%q becomes %q", c.in, c.out)
			}
			if earlier, ok := c.seen[c.out]; ok && earlier != c.in {
				t.Fatalf("%q and %q both become %q", earlier, c.in, c.out)
			}
			c.seen[c.out] = c.in
		}
		want := "p." + FieldName(a) + "." + FieldName(b)
		if got := AvroNamespace(TopicName("p", a, b)); got != want {
			t.Fatalf("namespace %q, want %q", got, want)
		}
	})
}
