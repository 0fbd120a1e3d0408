package cases_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/linkedin/goavro/v2"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"
)

// event is a record of a topic, decoded by goavro.
type event struct {
	key     map[string]any
	value   map[string]any // nil: tombstone
	headers map[string]string
	schema  int // the id in front of the value
}

// read returns the events of a topic that are there now; nil when there is no such topic.
func (r *rig) read(topic string) []event {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(r.broker.Addrs()...), kgo.ConsumeTopics(topic),
		kgo.KeepControlRecords())
	if err != nil {
		r.t.Fatal(err)
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil
	}
	if err != nil {
		r.t.Fatal(err)
	}
	total := 0
	ends.Each(func(o kadm.ListedOffset) { total += int(o.Offset) })
	d := r.decoder(ctx)
	var out []event
	for seen := 0; seen < total; {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			r.t.Fatalf("%d of %d events of %s came", len(out), total, topic)
		}
		fetches.EachRecord(func(rec *kgo.Record) {
			if seen++; rec.Attrs.IsControl() {
				return // the end of a Kafka transaction
			}
			e := event{
				key: d.decode(rec.Key), value: d.decode(rec.Value), headers: map[string]string{},
				schema: schemaID(rec.Value),
			}
			for _, h := range rec.Headers {
				e.headers[h.Key] = string(h.Value)
			}
			out = append(out, e)
		})
	}
	return out
}

// topic is the topic of a table of schema public.
func (r *rig) topic(table string) string { return "shop.public." + table }

// drain waits until everything is sent, and returns a table's events.
func (r *rig) drain(run *running, table string) []event {
	r.t.Helper()
	r.caughtUp(run)
	return r.read(r.topic(table))
}

type decoder struct {
	t      *testing.T
	ctx    context.Context
	reg    *sr.Client
	codecs map[int]*goavro.Codec
}

func (r *rig) decoder(ctx context.Context) *decoder {
	r.t.Helper()
	reg, err := sr.NewClient(sr.URLs(r.url))
	if err != nil {
		r.t.Fatal(err)
	}
	return &decoder{t: r.t, ctx: ctx, reg: reg, codecs: map[int]*goavro.Codec{}}
}

// schemaID is what a key or value says of its schema; 0 of a tombstone.
func schemaID(b []byte) int {
	if b == nil {
		return 0
	}
	return int(binary.BigEndian.Uint32(b[1:]))
}

func (d *decoder) decode(b []byte) map[string]any {
	d.t.Helper()
	if b == nil {
		return nil
	}
	id := schemaID(b)
	if d.codecs[id] == nil {
		s, err := d.reg.SchemaByID(d.ctx, id)
		if err != nil {
			d.t.Fatal(err)
		}
		if d.codecs[id], err = goavro.NewCodec(s.Schema); err != nil {
			d.t.Fatal(err)
		}
	}
	v, rest, err := d.codecs[id].NativeFromBinary(b[5:])
	if err != nil || len(rest) != 0 {
		d.t.Fatalf("decode: %v, %d bytes left", err, len(rest))
	}
	return v.(map[string]any)
}

// schemas returns the texts of a subject's versions.
func (r *rig) schemas(subject string) (texts []string) {
	r.t.Helper()
	reg, err := sr.NewClient(sr.URLs(r.url))
	if err != nil {
		r.t.Fatal(err)
	}
	all, err := reg.Schemas(r.t.Context(), subject)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, s := range all {
		texts = append(texts, s.Schema.Schema)
	}
	return texts
}

// level sets a subject's compatibility; no subject is the level of all.
func (r *rig) level(level sr.CompatibilityLevel, subjects ...string) {
	r.t.Helper()
	reg, err := sr.NewClient(sr.URLs(r.url))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, res := range reg.SetCompatibility(r.t.Context(), sr.SetCompatibility{Level: level},
		subjects...) {
		if res.Err != nil {
			r.t.Fatal(res.Err)
		}
	}
}

// inner takes a value out of goavro's form of a union.
func inner(v any) any {
	if m, ok := v.(map[string]any); ok && len(m) == 1 {
		for name, v := range m {
			if name != "map" {
				return v
			}
		}
	}
	return v
}

func row(v any) map[string]any {
	if v == nil {
		return nil
	}
	for _, m := range v.(map[string]any) {
		return m.(map[string]any)
	}
	return nil
}

// String is an event in one line:
//
//	op IMAGE key {after} before{...} old{before_key}
//
// Fields are in the order of their names. A string is quoted unless it is longer than 60 bytes,
// then its length stands for it; null is "-", a value that is flagged UNAVAILABLE "?", one that is
// UNREPRESENTABLE "!text"; "~" is in front of what is RESELECTED. A tombstone is "x".
func (e event) String() string {
	key := "-"
	if e.key != nil {
		key = fields(e.key, nil)
	}
	if e.value == nil {
		return "x " + key
	}
	out := fmt.Sprintf("%s %s %s", e.value["op"], e.value["before_image"], key)
	if m := e.after(); m != "" {
		out += " " + m
	}
	if m := e.before(); m != "" {
		out += " before" + m
	}
	if m := row(e.value["before_key"]); m != nil {
		out += " old" + fields(m, nil)
	}
	return out
}

func (e event) after() string  { return e.image("after", "AFTER") }
func (e event) before() string { return e.image("before", "BEFORE") }

func (e event) image(field, side string) string {
	if e.value == nil || e.value[field] == nil {
		return ""
	}
	states := map[string]string{}
	for _, s := range e.value["column_states"].([]any) {
		m := s.(map[string]any)
		if m["image"] != side {
			continue
		}
		column := m["column"].(string)
		switch m["state"] {
		case "UNREPRESENTABLE":
			states[column] += "!" + inner(m["text"]).(string)
		case "RESELECTED":
			states[column] += "~"
		default:
			states[column] += "?"
		}
	}
	return fields(row(e.value[field]), states)
}

func fields(m map[string]any, states map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		v := m[name]
		text := show(v)
		switch s := states[name]; {
		case s == "~":
			text = "~" + text
		case s != "" && v == nil:
			text = s
		case s != "":
			text = "flagged but not null: " + text
		}
		parts = append(parts, name+":"+text)
	}
	return "{" + strings.Join(parts, " ") + "}"
}

func show(v any) string {
	switch v := inner(v).(type) {
	case nil:
		return "-"
	case string:
		if len(v) > 60 {
			return fmt.Sprintf("<%d>", len(v))
		}
		return strconv.Quote(v)
	case []byte:
		return fmt.Sprintf("0x%x", v)
	case float32:
		return strconv.FormatFloat(float64(v), 'g', -1, 32)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case *big.Rat:
		digits, _ := v.FloatPrec()
		return v.FloatString(digits) + "d"
	case time.Time:
		return v.UTC().Format("2006-01-02T15:04:05.999999Z")
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = show(v[i])
		}
		return "[" + strings.Join(parts, " ") + "]"
	case map[string]any:
		if m, ok := v["map"].(map[string]any); ok && len(v) == 1 {
			return "map" + fields(m, nil)
		}
		return "map" + fields(v, nil)
	default:
		return fmt.Sprint(v)
	}
}

// lines renders events.
func lines(events []event) []string {
	out := make([]string, len(events))
	for i, e := range events {
		out[i] = e.String()
	}
	return out
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Errorf("%s %d: missing %s", what, i, want[i])
		case i >= len(want):
			t.Errorf("%s %d: too much: %s", what, i, got[i])
		case got[i] != want[i]:
			t.Errorf("%s %d:\n got %s\nwant %s", what, i, got[i], want[i])
		}
	}
}

// ops lists the operations of events, "x" being a tombstone.
func ops(events []event) string {
	var b strings.Builder
	for _, e := range events {
		if e.value == nil {
			b.WriteString("x")
			continue
		}
		b.WriteString(e.value["op"].(string))
	}
	return b.String()
}

// fold applies events as a sink that keeps the newest row of each key does, by the pair, and
// returns the rows that are left, by key.
func fold(t *testing.T, events []event) map[string]string {
	t.Helper()
	type pair struct{ lsn, index int64 }
	rows, last := map[string]string{}, map[string]pair{}
	for _, e := range events {
		if e.value == nil {
			continue
		}
		key := fields(e.key, nil)
		source := e.value["source"].(map[string]any)
		at := pair{inner(source["commit_lsn"]).(int64), source["event_index"].(int64)}
		prev, ok := last[key]
		if ok && (at.lsn < prev.lsn || at.lsn == prev.lsn && at.index <= prev.index) {
			continue
		}
		last[key] = at
		if e.value["op"] == "d" {
			delete(rows, key)
			continue
		}
		rows[key] = e.after()
	}
	return rows
}

// values holds a table's rows against what they must be in each way that a value takes: read by the
// snapshot, inserted, updated, and as the old row of a change under REPLICA IDENTITY FULL. The
// table must have a primary key and only out-of-line values that change. insert is run twice; want
// are the rows as event.after prints them, in the order of insertion.
func (r *rig) values(table, insert string, want ...string) {
	r.t.Helper()
	r.exec(insert)
	run := r.streaming()
	r.exec("DELETE FROM "+table, insert, "UPDATE "+table+" SET id = id",
		"ALTER TABLE "+table+" REPLICA IDENTITY FULL", "UPDATE "+table+" SET id = id")
	var snapshot, inserted, updated, before, after []string
	for _, e := range r.drain(run, table) {
		switch {
		case e.value == nil || e.value["op"] == "d":
		case e.value["op"] == "r":
			snapshot = append(snapshot, e.after())
		case e.value["op"] == "c":
			inserted = append(inserted, e.after())
		case e.value["before_image"] == "FULL":
			before, after = append(before, e.before()), append(after, e.after())
		default:
			updated = append(updated, e.after())
		}
	}
	same(r.t, "snapshot", snapshot, want...)
	same(r.t, "insert", inserted, want...)
	same(r.t, "update", updated, want...)
	same(r.t, "before", before, want...)
	same(r.t, "after", after, want...)
	r.clean(run)
}
