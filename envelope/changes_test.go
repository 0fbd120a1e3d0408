package envelope

import (
	"fmt"
	"testing"
)

// envelopeOf is an Envelope with these fields of Value.
func envelopeOf(fields string) string {
	return `{"type":"record","name":"Envelope","fields":[{"name":"op","type":"string"},
		{"name":"before","type":["null",{"type":"record","name":"Value","fields":[` + fields + `]}]},
		{"name":"after","type":["null","Value"]}]}`
}

func TestChangesOfAField(t *testing.T) {
	const decimal = `{"type":"bytes","logicalType":"decimal","precision":10,"scale":%d}`
	scale2, scale4 := fmt.Sprintf(decimal, 2), fmt.Sprintf(decimal, 4)
	for _, c := range []struct{ from, to, want string }{
		{scale2, scale2, ""},
		{scale2, scale4, "decimal(10,2) decimal(10,4)"},
		{`{"type":"bytes","logicalType":"decimal","precision":9}`, scale2, "decimal(9,0) decimal(10,2)"},
		{scale2, `"string"`, "decimal(10,2) string"},
		{scale2, `"bytes"`, "decimal(10,2) bytes"},
		{
			`{"type":"array","items":["null",` + scale2 + `]}`,
			`{"type":"array","items":["null",` + scale4 + `]}`,
			"array of decimal(10,2) array of decimal(10,4)",
		},
		{
			`{"type":"map","values":"int"}`, `{"type":"map","values":["null","string"]}`,
			"map of int map of string",
		},
		{
			`{"type":"long","logicalType":"timestamp-micros"}`,
			`{"type":"long","logicalType":"local-timestamp-micros"}`,
			"long as timestamp-micros long as local-timestamp-micros",
		},
		{`{"type":"long","connect.name":"io.debezium.time.MicroTimestamp"}`, `"long"`, ""},
		{`{"type":"bytes","scale":2,"precision":10,"connect.version":1,"logicalType":"decimal",
			"connect.parameters":{"scale":"2"}}`, scale2, ""},
		{`"int"`, `"long"`, ""},
		{`"int"`, `"float"`, "int float"},
		{`"long"`, `"int"`, "long int"},
		{`{"type":"int","logicalType":"date"}`, `"long"`, "int as date long"},
	} {
		for _, union := range []bool{false, true} {
			from := c.from
			if union {
				from = `["null",` + from + `]`
			}
			changed, fresh, err := Changes(
				envelopeOf(`{"name":"gone","type":"int"},{"name":"c","type":`+from+`}`),
				envelopeOf(`{"name":"c","type":["null",`+c.to+`],"pg_type":"x"},{"name":"n","type":"int"}`))
			got := ""
			for _, f := range changed {
				got += f.From + " " + f.To
			}
			if err != nil || got != c.want || fmt.Sprint(fresh) != "[n]" {
				t.Errorf("%s to %s: %q, fresh %v, %v; want %q", from, c.to, got, fresh, err, c.want)
			}
		}
	}
	if _, _, err := Changes("{", envelopeOf("")); err == nil {
		t.Error("a schema that is no JSON was compared")
	}
	if changed, fresh, err := Changes(`{"type":"string"}`, envelopeOf(`{"name":"c","type":"int"}`)); err != nil ||
		changed != nil || len(fresh) != 1 {
		t.Errorf("against another kind of schema: %v %v %v", changed, fresh, err)
	}
}
