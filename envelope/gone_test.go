package envelope

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/offsets"
)

var repaired = Snapshot{
	Pos: offsets.Position{CommitLSN: 5000, Index: -1}, LSN: 5000, Micros: 1_700_000_000_123_456,
}

func parsed(t *testing.T, schema string) *KeyShape {
	t.Helper()
	k, err := ParseKeyShape(schema)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestAKeyThatIsGoneGetsADeleteAndATombstone(t *testing.T) {
	e := New(options())
	table := compile(t, e, orders(byDefault), withPK)
	recs, err := e.Gone(nil, table, []byte("\x00\x00\x00\x00\x07\x54"), table.KeyShape(), repaired)
	if err != nil {
		t.Fatal(err)
	}
	lines(t, table, recs, "d key=(42) KEY before=- key=(42) after=-", "d key=(42) tombstone")
	want := "op=d\nhistory=0\ncommit_lsn=5000\nevent_index=-1\nbefore_image=KEY\n"
	for _, r := range recs {
		if d := cmp.Diff(want, headerText(r)); d != "" || string(r.HashKey) != "\x54" {
			t.Errorf("hashed % x, headers (-want +got):\n%s", r.HashKey, d)
		}
	}
	v := native(t, table.ValueSchema, valueID, recs[0].Value)
	if m := unwrap(v["source"]).(map[string]any); unwrap(m["snapshot"]) != "true" ||
		unwrap(m["commit_lsn"]) != int64(5000) {
		t.Errorf("source %v", m)
	}
}

// A key that was written under another schema is deleted under that schema's id, and before_key
// holds what the present key has of it.
func TestAKeyOfAnotherSchemaIsDeletedAsTheTopicHasIt(t *testing.T) {
	e := New(options())
	table := compile(t, e, orders(byDefault), withPK)
	old := parsed(t, `{"type":"record","name":"Key","fields":[{"name":"region","type":"string"},
		{"name":"id","type":"long"}]}`)
	key := "\x00\x00\x00\x00\x09\x04eu\x54"
	recs, err := e.Gone(nil, table, []byte(key), old, repaired)
	if err != nil || len(recs) != 2 || string(recs[0].Key) != key || string(recs[1].Key) != key {
		t.Fatalf("%v %+v", err, recs)
	}
	before := unwrap(native(t, table.ValueSchema, valueID, recs[0].Value)["before_key"])
	if got := fields([]string{"id"}, before); got != "(42)" {
		t.Errorf("before_key %s", got)
	}
	other := parsed(t, `{"type":"record","name":"Key","fields":[{"name":"id","type":"string"}]}`)
	recs, err = e.Gone(nil, table, []byte("\x00\x00\x00\x00\x09\x0442"), other, repaired)
	if err != nil {
		t.Fatal(err)
	}
	before = unwrap(native(t, table.ValueSchema, valueID, recs[0].Value)["before_key"])
	if got := fields([]string{"id"}, before); got != "(null)" {
		t.Errorf("before_key of another type %s", got)
	}
	recs, err = e.Gone(nil, table, []byte("\x00\x00\x00\x00\x09\x80"), nil, repaired)
	if err != nil || native(t, table.ValueSchema, valueID, recs[0].Value)["before_key"] != nil {
		t.Errorf("bytes that fit no schema: %v", err)
	}
}

func TestSkippedDeletesAndTombstonesAreSkippedForGoneKeys(t *testing.T) {
	o := options()
	o.Tombstones = false
	e := New(o)
	table := compile(t, e, orders(byDefault), withPK)
	recs, err := e.Gone(nil, table, []byte("\x00\x00\x00\x00\x07\x54"), nil, repaired)
	if err != nil || len(recs) != 1 || recs[0].Value == nil {
		t.Fatalf("without tombstones: %v %+v", err, recs)
	}
	o.Skipped = map[byte]bool{'d': true, 't': true}
	e = New(o)
	recs, err = e.Gone(nil, table, []byte("\x00\x00\x00\x00\x07\x54"), nil, repaired)
	if err != nil || len(recs) != 0 {
		t.Fatalf("skipped: %v %+v", err, recs)
	}
	if recs, err = e.Clear(nil, table, repaired); err != nil || len(recs) != 0 {
		t.Fatalf("skipped: %v %+v", err, recs)
	}
}

func TestClearIsATruncateAtTheSnapshotsPosition(t *testing.T) {
	e := New(options())
	table := compile(t, e, orders(byDefault), withPK)
	recs, err := e.Clear(nil, table, repaired)
	if err != nil || len(recs) != 1 || recs[0].Route != RouteEach || recs[0].Pos != repaired.Pos {
		t.Fatalf("%v %+v", err, recs)
	}
	lines(t, table, recs, "t key=- NOT_APPLICABLE before=- key=- after=-")
	_, err = e.Gone(nil, &Table{registered: true}, nil, nil, repaired)
	if fault.CodeOf(err) != fault.Internal {
		t.Error(err)
	}
}

func TestKeyShapes(t *testing.T) {
	field := func(typ string) string {
		return `{"type":"record","name":"Key","namespace":"x","fields":[{"name":"a","type":` + typ + `}]}`
	}
	long := parsed(t, field(`"long"`))
	for typ, same := range map[string]bool{
		`"int"`: true, `{"type":"long"}`: true, `"string"`: false,
		`{"type":"int","logicalType":"date"}`: false,
	} {
		if parsed(t, field(typ)).Same(long) != same {
			t.Errorf("%s as long: want %t", typ, same)
		}
	}
	two := parsed(t, field(`{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}`))
	three := parsed(t, field(`{"type":"bytes","logicalType":"decimal","precision":9,"scale":3}`))
	if two.Same(three) {
		t.Error("another scale gives the same bytes another value")
	}
	array := parsed(t, field(`{"type":"array","items":["null","string"]}`))
	for _, body := range []string{"\x00", "\x04\x00\x02\x02x\x00", "\x03\x08\x00\x02\x02x\x00"} {
		if _, err := array.split([]byte(body)); err != nil {
			t.Errorf("% x: %v", body, err)
		}
		if _, err := array.split([]byte(body + "\x01")); err == nil {
			t.Errorf("% x and one more was taken", body)
		}
	}
	everything := parsed(t, `{"type":"record","name":"Key","fields":[
		{"name":"b","type":"boolean"},{"name":"f","type":"float"},{"name":"d","type":"double"},
		{"name":"y","type":"bytes"},{"name":"m","type":{"type":"map","values":["null","string"]}}]}`)
	body := "\x01" + "\x00\x00\x80\x3f" + "\x00\x00\x00\x00\x00\x00\xf0\x3f" + "\x02\xff" +
		"\x02\x02k\x02\x02v\x00"
	parts, err := everything.split([]byte(body))
	if err != nil || len(parts) != 5 || string(parts[3]) != "\x02\xff" {
		t.Errorf("% x: %v", parts, err)
	}
	for i := range body {
		if _, err := everything.split([]byte(body[:i])); err == nil {
			t.Errorf("cut at %d was taken", i)
		}
	}
	for _, bad := range []string{`[]`, `{"type":"enum"}`, field(`"uuid"`), field(`{"type":"fixed"}`)} {
		if _, err := ParseKeyShape(bad); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}
