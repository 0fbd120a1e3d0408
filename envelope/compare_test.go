package envelope

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hamba/avro/v2"
	"github.com/linkedin/goavro/v2"
)

// fataler is what testing.TB and rapid.T have in common here.
type fataler interface {
	Fatalf(format string, args ...any)
}

// same compares a record's bytes with goavro's of a native map and lets hamba read them.
func same(t fataler, what, schemaText string, id uint32, want map[string]any, got []byte) {
	if want == nil {
		if got != nil {
			t.Fatalf("%s is % x, want null", what, got)
		}
		return
	}
	codec, err := goavro.NewCodec(schemaText)
	if err != nil {
		t.Fatalf("%v", err)
	}
	bin, err := codec.BinaryFromNative(binary.BigEndian.AppendUint32([]byte{0}, id), want)
	if err != nil {
		t.Fatalf("goavro: %v", err)
	}
	if !bytes.Equal(bin, got) {
		t.Fatalf("%s\n got % x\nwant % x\nof %v", what, got, bin, want)
	}
	hambaReads(t, schemaText, want, got[5:])
}

// hambaReads decodes with hamba/avro and compares with the native map.
func hambaReads(t fataler, schemaText string, want map[string]any, body []byte) {
	s, err := avro.Parse(schemaText)
	if err != nil {
		t.Fatalf("hamba: %v", err)
	}
	var v any
	r := avro.NewReader(bytes.NewReader(body), len(body)+1)
	if r.ReadVal(s, &v); r.Error != nil {
		t.Fatalf("hamba cannot read: %v", r.Error)
	}
	if d := cmp.Diff(plain(want), plain(v)); d != "" {
		t.Fatalf("hamba read something else (-want +got):\n%s", d)
	}
}

// plain takes the unions out of a decoded value, which the two implementations write differently,
// and makes every integer and time an int64.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if inner, ok := branchOf(v); ok {
			return plain(inner)
		}
		out := map[string]any{}
		for name, f := range v {
			out[name] = plain(f)
		}
		return out
	case []any:
		out := []any{}
		for _, f := range v {
			out = append(out, plain(f))
		}
		return out
	case int:
		return int64(v)
	case int32:
		return int64(v)
	case time.Time:
		return v.UnixMicro()
	}
	return v
}

func branchOf(v map[string]any) (any, bool) {
	if len(v) != 1 {
		return nil, false
	}
	for _, name := range []string{
		"boolean", "int", "long", "long.local-timestamp-micros", "double", "string",
		topic + ".Value", topic + ".BeforeKey",
	} {
		if inner, ok := v[name]; ok {
			return inner, true
		}
	}
	return nil, false
}
