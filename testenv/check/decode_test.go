package check

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
)

// tableSchema is an envelope with a column of each kind that has a text of its own.
const tableSchema = `{"type":"record","name":"Envelope","namespace":"p.s.t","fields":[
	{"name":"before","type":["null",{"type":"record","name":"Value","fields":[
		{"name":"id","type":["null","long"],"default":null},
		{"name":"price","type":["null",{"type":"bytes","logicalType":"decimal","precision":12,"scale":2}],
			"default":null},
		{"name":"at","type":["null",{"type":"long","logicalType":"timestamp-micros"}],"default":null},
		{"name":"day","type":["null",{"type":"int","logicalType":"date"}],"default":null},
		{"name":"tags","type":["null",{"type":"array","items":["null","int"]}],"default":null},
		{"name":"ok","type":["null","boolean"],"default":null}]}]},
	{"name":"after","type":["null","Value"]},
	{"name":"before_image","type":{"type":"enum","name":"BeforeImage","symbols":["UNKNOWN",
		"NOT_APPLICABLE","ABSENT","KEY","FULL"]}},
	{"name":"source","type":{"type":"record","name":"Source","fields":[
		{"name":"schema","type":"string"},{"name":"table","type":"string"},
		{"name":"history","type":"long"},{"name":"commit_lsn","type":["null","long"]},
		{"name":"event_index","type":"long"}]}},
	{"name":"op","type":"string"},
	{"name":"ts_ms","type":["null","long"]},{"name":"ts_us","type":["null","long"]},
	{"name":"ts_ns","type":["null","long"]}]}`

// value is an insert, byte by byte after the Avro specification, handled at that time.
func value(handled byte) []byte {
	return []byte{
		0, 0, 0, 0, 7, // wire format
		0,       // before: null
		2,       // after: a Value
		2, 0x0a, // id 5
		2, 0x04, 0xff, 0x7f, // price: two bytes, -129
		2, 0x80, 0x89, 0x7a, // at: 1 000 000 microseconds
		2, 0x04, // day 2
		2, 0x04, 0x02, 0x02, 0x00, 0x00, // tags: two items, 1 and null, the end
		2, 1, // ok
		2,                            // NOT_APPLICABLE
		2, 's', 2, 't', 0, 2, 20, 14, // source: history 0, commit LSN 10, index 7
		2, 'c', // op
		2, handled, 2, handled, 0, // ts
	}
}

func TestDecode(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		json.NewEncoder(w).Encode(map[string]string{"schema": tableSchema})
	}))
	defer server.Close()
	d := NewDecoder(server.URL)
	decode := func(value []byte) (*Event, error) {
		return d.Decode(t.Context(), &kgo.Record{Topic: topicName, Value: value})
	}
	e, err := decode(value(8))
	if err != nil {
		t.Fatal(err)
	}
	want := Row{
		"id": text("5"), "price": text("-1.29"), "at": text("1970-01-01 00:00:01+00"),
		"day": text("1970-01-03"), "tags": text("{1,NULL}"), "ok": text("t"),
	}
	if diff := cmp.Diff(want, e.After); diff != "" {
		t.Error(diff)
	}
	if e.Op != "c" || e.Image != "NOT_APPLICABLE" || e.Before != nil ||
		e.Pair != (Pair{CommitLSN: 10, Index: 7}) || e.Schema != "s" || e.Table != "t" {
		t.Errorf("decoded %+v", e)
	}
	again, err := decode(value(10))
	if err != nil || again.content != e.content {
		t.Errorf("another processing time makes another content (%v)", err)
	}
	other := value(8)
	other[8] = 0x0c // id 6
	if changed, err := decode(other); err != nil || changed.content == e.content {
		t.Errorf("another row has the same content (%v)", err)
	}
	if _, err := decode(value(8)[:20]); err == nil {
		t.Error("half a value decodes")
	}
	if _, err := decode([]byte("{}")); err == nil {
		t.Error("JSON decodes")
	}
}

// A row that is read again may be newer when its event is repeated; what the log said may not differ.
func TestARepeatMayFindAnotherValueInTheTable(t *testing.T) {
	event := func(state, note, qty string) *Event {
		e := &Event{Op: "u", Image: "ABSENT", After: Row{"id": text("1"), "qty": text(qty)}}
		e.States = []State{{Image: "AFTER", Column: "note", State: state}}
		if e.After["note"] = nil; state == "RESELECTED" {
			e.After["note"] = text(note)
		}
		return e
	}
	content := func(e *Event) uint64 { return e.logged(e.unlogged()) }
	first := content(event("RESELECTED", "old", "7"))
	if first != content(event("RESELECTED", "new", "7")) || first != content(event("UNAVAILABLE", "", "7")) {
		t.Error("a value that was read again counts as content")
	}
	if first == content(event("RESELECTED", "old", "8")) ||
		first == content(event("UNREPRESENTABLE", "", "7")) {
		t.Error("another row has the same content")
	}
}
