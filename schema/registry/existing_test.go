package registry

import (
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

const ours = `{"type":"record","name":"Envelope","namespace":"shop.public.t","fields":[
	{"name":"before","type":["null",{"type":"record","name":"Value","fields":[
		{"name":"id","type":["null","int"],"default":null,"pg_type":"integer"},
		{"name":"total","type":["null",{"type":"bytes","logicalType":"decimal","precision":10,
			"scale":2}],"default":null}]}],"default":null},
	{"name":"after","type":["null","Value"],"default":null},
	{"name":"image","type":{"type":"enum","name":"Image","symbols":["A","B"],"default":"A"}},
	{"name":"states","type":{"type":"array","items":"string"},"default":[]}]}`

// Each replacement in the schema, and where the difference is; none where bytes are the same.
func TestDifference(t *testing.T) {
	for _, tc := range []struct{ old, new, want string }{
		{"", "", ""},
		{`"pg_type":"integer"`, `"doc":"x"`, ""},
		{`"default":[]`, `"doc":"y","default":["a"]`, ""},
		{`"symbols":["A","B"],"default":"A"`, `"symbols":["A","B"]`, ""},
		{`["null","Value"]`, `["null","shop.public.t.Value"]`, ""},
		{`"items":"string"`, `"items":{"type":"string","avro.java.string":"String"}`, ""},
		{
			`"namespace":"shop.public.t",`, `"namespace":"shop.public.u",`, "the schema: record " +
				"shop.public.t.Envelope is written, and record shop.public.u.Envelope is registered",
		},
		{
			`["null","int"]`, `["null","long"]`, "the schema, field before, branch 1, field id, " +
				"branch 1: int is written, and long is registered",
		},
		{
			`["null","int"]`, `["int","null"]`, "the schema, field before, branch 1, field id, " +
				"branch 0: null is written, and int is registered",
		},
		{
			`"scale":2`, `"scale":3`, "the schema, field before, branch 1, field total, branch 1: bytes " +
				"logicalType decimal precision 10 scale 2 is written, and bytes logicalType decimal " +
				"precision 10 scale 3 is registered",
		},
		{
			`"symbols":["A","B"]`, `"symbols":["B","A"]`, "the schema, field image: enum " +
				"shop.public.t.Image [A B] is written, and enum shop.public.t.Image [B A] is registered",
		},
		{
			`{"name":"after","type":["null","Value"],"default":null},`, "",
			"the schema: field after is written where field image is registered",
		},
		{
			`,
	{"name":"states","type":{"type":"array","items":"string"},"default":[]}`, "",
			"the schema: field states is written, and not registered",
		},
		{
			`{"name":"states",`, `{"name":"states","type":"int"},{"name":"states2",`,
			"the schema, field states: array is written, and int is registered",
		},
		{
			`"default":[]}]}`, `"default":[]},{"name":"more","type":"int"}]}`,
			"the schema: field more is registered, and not written",
		},
	} {
		theirs := strings.Replace(ours, tc.old, tc.new, 1)
		if tc.old != "" && theirs == ours {
			t.Fatalf("%q is not in the schema", tc.old)
		}
		got, err := Difference(ours, theirs)
		if err != nil || got != tc.want {
			t.Errorf("%s -> %s: %v\n got %s\nwant %s", tc.old, tc.new, err, got, tc.want)
		}
	}
	for _, bad := range []string{"", "{", "3", `{"type":3}`, `{"type":"array"}`} {
		if _, err := Difference(ours, bad); err == nil {
			t.Errorf("%q is taken for a schema", bad)
		}
	}
}

// Nothing is registered: what the subject has is named, when it means the same.
func TestWhatIsRegisteredAlready(t *testing.T) {
	r := fake(t)
	c := newClient(t, Options{URLs: []string{r.URL()}, Normalize: true})
	for _, ask := range []func() (int, error){
		func() (int, error) { return c.Registered(t.Context(), "s", schemaV2) },
		func() (int, error) { return c.UsableLatest(t.Context(), "s", schemaV2) },
	} {
		if _, err := ask(); !fault.Has(err, fault.SchemaRejected) ||
			!strings.Contains(err.Error(), "subject s") {
			t.Errorf("an empty subject: %v", err)
		}
	}
	if r.SubjectExists("s") {
		t.Error("the question has registered something")
	}
	documented := strings.Replace(schemaV2, `"name":"Key"`, `"name":"Key","doc":"by hand"`, 1)
	v2 := registered(t, c, "s", documented)
	if id, err := c.UsableLatest(t.Context(), "s", schemaV2); id != v2 || err != nil {
		t.Errorf("documentation makes a difference: %d, %v", id, err)
	}
	registered(t, c, "s", schemaV1)
	if id, err := c.Registered(t.Context(), "s", documented); id != v2 || err != nil {
		t.Errorf("an earlier version: %d, %v; want %d", id, err, v2)
	}
	// Another client has not seen the answer.
	c = newClient(t, Options{URLs: []string{r.URL()}})
	_, err := c.UsableLatest(t.Context(), "s", schemaV2)
	wantCode(t, err, fault.SchemaRejected)
	if !strings.Contains(err.Error(), "version 2 of subject s") ||
		!strings.Contains(err.Error(), "the schema: field id is written, and not registered") {
		t.Errorf("the difference is not told: %v", err)
	}
}

func TestRecordName(t *testing.T) {
	for text, want := range map[string]string{
		schemaV1:                         "shop.public.t.Key",
		`{"type":"record","name":"a.B"}`: "a.B",
		`{"type":"record","name":"B"}`:   "B",
		"":                               "",
	} {
		if got := RecordName(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
