package envelope

import (
	"testing"

	"github.com/tidemark-cdc/tidemark/connector/decode"
	"github.com/tidemark-cdc/tidemark/schema"
)

func TestSmoke(t *testing.T) {
	e := New(options())
	rel := relation(schema.IdentityDefault, col("id", oidInt4, true), col("v", oidText, false))
	table := compile(t, e, rel, schema.TableInfo{})
	recs, err := e.Row(nil, table, change(decode.KindUpdate, rel, 'K', row("1", null), row("2", "x")))
	if err != nil {
		t.Fatal(err)
	}
	t.Log(table.KeySchema)
	t.Log(table.ValueSchema)
	for _, r := range recs {
		t.Logf("%s %c %x %q", r.Topic, r.Op, r.HashKey, r.Headers)
		t.Log(native(t, table.KeySchema, keyID, r.Key))
		if r.Value != nil {
			t.Log(native(t, table.ValueSchema, valueID, r.Value))
		}
		r.Buffer.Release()
	}
	m, err := e.CompileMessages()
	if err != nil {
		t.Fatal(err)
	}
	m.SetIDs(0, 5)
}
