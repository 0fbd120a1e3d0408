package envelope

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/linkedin/goavro/v2"
	"pgregory.net/rapid"

	"github.com/tidemark-cdc/tidemark/connector/decode"
	"github.com/tidemark-cdc/tidemark/schema"
)

// A second, plain implementation of the contract: a row is a list of cells, an event a map that
// goavro encodes. The encoder's bytes must be the same, and hamba/avro must read them.

// cell is a value of a generated row: PostgreSQL's text, and what goavro's union takes for it (nil
// when the type cannot hold it).
type cell struct {
	kind  schema.DatumKind
	text  string
	value any
}

type modelColumn struct {
	name  string
	oid   uint32
	avro  string
	value func(*rapid.T) cell
}

var modelTypes = []modelColumn{
	{oid: oidBool, avro: "boolean", value: func(t *rapid.T) cell {
		b := rapid.Bool().Draw(t, "bool")
		return cell{text: map[bool]string{true: "t", false: "f"}[b], value: b}
	}},
	{oid: oidInt4, avro: "int", value: func(t *rapid.T) cell {
		n := rapid.Int32().Draw(t, "int")
		return cell{text: strconv.Itoa(int(n)), value: n}
	}},
	{oid: oidInt8, avro: "long", value: func(t *rapid.T) cell {
		n := rapid.Int64().Draw(t, "long")
		return cell{text: strconv.FormatInt(n, 10), value: n}
	}},
	{oid: oidFloat8, avro: "double", value: func(t *rapid.T) cell {
		f := rapid.Float64().Draw(t, "double")
		if rapid.IntRange(0, 9).Draw(t, "special") == 0 {
			return cell{text: "-Infinity", value: math.Inf(-1)}
		}
		return cell{text: strconv.FormatFloat(f, 'g', -1, 64), value: f}
	}},
	{oid: oidText, avro: "string", value: func(t *rapid.T) cell {
		s := string(rapid.SliceOfN(rapid.Byte(), 0, 6).Draw(t, "bytes"))
		if rapid.Bool().Draw(t, "legal") {
			s = rapid.StringN(0, 100, -1).Draw(t, "string")
		}
		if !utf8.ValidString(s) {
			return cell{text: s}
		}
		return cell{text: s, value: s}
	}},
	{oid: oidTimestamp, avro: "long", value: func(t *rapid.T) cell {
		if rapid.IntRange(0, 4).Draw(t, "special") == 0 {
			return cell{text: "infinity"}
		}
		at := time.Unix(rapid.Int64Range(0, 4_000_000_000).Draw(t, "seconds"), 0).UTC()
		return cell{text: at.Format(time.DateTime), value: at.UnixMicro()}
	}},
}

type modelTable struct {
	rel         *schema.Relation
	info        schema.TableInfo
	leafNotFull bool
	cols        []modelColumn
	key         []int
}

func drawTable(t *rapid.T) modelTable {
	m := modelTable{rel: &schema.Relation{Namespace: "public", Name: "orders"}}
	m.rel.Identity = rapid.SampledFrom([]schema.Identity{
		schema.IdentityDefault, schema.IdentityIndex, schema.IdentityFull,
	}).Draw(t, "identity")
	full := m.rel.Identity == schema.IdentityFull
	for i := range rapid.IntRange(1, 6).Draw(t, "columns") {
		c := rapid.SampledFrom(modelTypes).Draw(t, "type")
		c.name = fmt.Sprintf("c%d", i)
		inKey := rapid.Bool().Draw(t, "key")
		m.cols = append(m.cols, c)
		m.rel.Columns = append(m.rel.Columns, col(c.name, c.oid, inKey || full))
		if inKey {
			m.key = append(m.key, i)
			m.info.PrimaryKey = append(m.info.PrimaryKey, c.name)
		}
	}
	m.info.IsRoot = rapid.Bool().Draw(t, "root")
	m.info.LeavesFull = rapid.Bool().Draw(t, "leaves full")
	m.leafNotFull = rapid.IntRange(0, 3).Draw(t, "leaf not full") == 0
	return m
}

func (m *modelTable) drawRow(t *rapid.T, kinds []schema.DatumKind) []cell {
	var cells []cell
	for i := range m.cols {
		k := rapid.SampledFrom(kinds).Draw(t, "kind")
		c := cell{}
		if k == schema.DatumText {
			c = m.cols[i].value(t)
		}
		c.kind = k
		cells = append(cells, c)
	}
	return cells
}

func tuple(cells []cell) schema.Tuple {
	var out schema.Tuple
	for _, c := range cells {
		out = append(out, schema.Datum{Kind: c.kind, Text: []byte(c.text)})
	}
	return out
}

// outcome is a record as goavro takes it; value nil is a tombstone.
type outcome struct {
	key, value map[string]any
}

const topic = "shop.public.orders"

// expect says which records a change makes, or that it stops.
func (m *modelTable) expect(ev *decode.Event, old, next []cell) (out []outcome, stops bool) {
	full := m.rel.Identity == schema.IdentityFull
	img := "ABSENT"
	switch {
	case ev.Kind == insert:
		img = "NOT_APPLICABLE"
	case ev.OldKind == 'O' && full && (!m.info.IsRoot || m.info.LeavesFull) && !m.leafNotFull:
		img = "FULL"
	case ev.OldKind != 0:
		img = "KEY"
	}
	if ev.Kind != insert && img != "FULL" && len(m.key) == 0 || ev.Kind == remove && ev.OldKind == 0 {
		return nil, true
	}
	var before, merged []cell
	if img == "FULL" {
		before = old
	}
	for i, c := range next {
		inIdentity := m.rel.Columns[i].Key && !full || m.inKey(i)
		if c.kind == schema.DatumUnchanged && ev.OldKind != 0 && old[i].kind == schema.DatumText &&
			(inIdentity || ev.OldKind == 'O') {
			c = old[i]
		}
		merged = append(merged, c)
	}
	oldKey, oldOK := m.keyOf(old)
	newKey, newOK := m.keyOf(merged)
	if ev.Kind != insert && ev.OldKind != 0 && !oldOK || ev.Kind != remove && !newOK {
		return nil, true
	}
	if ev.Kind == insert || ev.OldKind == 0 {
		old = nil
	}
	add := func(op string, key map[string]any, after []cell) {
		out = append(out, outcome{key, m.envelope(ev, op, img, before, after, old)})
	}
	switch {
	case ev.Kind == insert:
		add("c", newKey, merged)
	case ev.Kind == remove:
		add("d", oldKey, nil)
	case old != nil && fmt.Sprint(oldKey) != fmt.Sprint(newKey):
		add("d", oldKey, nil)
		out = append(out, outcome{key: oldKey})
		add("c", newKey, merged)
	default:
		add("u", newKey, merged)
	}
	if ev.Kind == remove && len(m.key) > 0 {
		out = append(out, outcome{key: oldKey})
	}
	return out, false
}

func (m *modelTable) inKey(i int) bool {
	for _, k := range m.key {
		if k == i {
			return true
		}
	}
	return false
}

func (m *modelTable) keyOf(cells []cell) (key map[string]any, ok bool) {
	if len(m.key) == 0 {
		return nil, true
	}
	key = map[string]any{}
	for _, i := range m.key {
		if i >= len(cells) || cells[i].kind != schema.DatumText || cells[i].value == nil {
			return nil, false
		}
		key[m.cols[i].name] = cells[i].value
	}
	return key, true
}

func (m *modelTable) envelope(
	ev *decode.Event, op, img string, before, after, old []cell,
) map[string]any {
	states := []any{}
	rowOf := func(side string, cells []cell) any {
		if cells == nil {
			return nil
		}
		fields := map[string]any{}
		for i, c := range cells {
			name := m.cols[i].name
			fields[name] = nil
			s := map[string]any{"image": side, "column": name, "text": nil}
			switch {
			case c.kind == schema.DatumUnchanged:
				s["state"] = "UNAVAILABLE"
				states = append(states, s)
			case c.kind == schema.DatumText && c.value == nil:
				text := c.text
				if !utf8.ValidString(text) {
					text = `\x` + hex.EncodeToString([]byte(text))
				}
				s["state"], s["text"] = "UNREPRESENTABLE", goavro.Union("string", text)
				states = append(states, s)
			case c.kind == schema.DatumText:
				fields[name] = goavro.Union(m.cols[i].avro, c.value)
			}
		}
		return goavro.Union(topic+".Value", fields)
	}
	v := map[string]any{
		"before": rowOf("BEFORE", before), "after": rowOf("AFTER", after), "before_image": img,
		"column_states": states, "op": op, "transaction": nil,
		"ts_ms": goavro.Union("long", int64(now/1000)), "ts_us": goavro.Union("long", int64(now)),
		"ts_ns": goavro.Union("long", int64(now*1000)),
		"source": map[string]any{
			"version": "1.2.3", "connector": "postgresql", "name": "shop", "db": "shopdb",
			"ts_ms":    ev.Tx.CommitMicros / 1000,
			"ts_us":    goavro.Union("long", ev.Tx.CommitMicros),
			"ts_ns":    goavro.Union("long", ev.Tx.CommitMicros*1000),
			"snapshot": goavro.Union("string", "false"),
			"sequence": goavro.Union("string", fmt.Sprintf("[%q,%q]",
				strconv.Itoa(int(ev.Tx.FinalLSN)), strconv.Itoa(int(ev.LSN)))),
			"schema": "public", "table": "orders", "xmin": nil, "history": int64(0),
			"txId":       goavro.Union("long", int64(ev.Tx.XID)),
			"lsn":        goavro.Union("long", int64(ev.LSN)),
			"commit_lsn": goavro.Union("long", int64(ev.Tx.FinalLSN)),
			"origin":     nil, "event_index": ev.Index,
		},
	}
	if len(m.key) == 0 {
		return v
	}
	v["before_key"] = nil
	if old != nil {
		fields := map[string]any{}
		for _, i := range m.key {
			fields[m.cols[i].name] = goavro.Union(m.cols[i].avro, old[i].value)
		}
		v["before_key"] = goavro.Union(topic+".BeforeKey", fields)
	}
	return v
}

func drawEvent(t *rapid.T, m *modelTable) (ev *decode.Event, old, next []cell) {
	ev = &decode.Event{
		Kind:  rapid.SampledFrom([]decode.Kind{insert, update, remove}).Draw(t, "change"),
		Index: rapid.Int64Range(0, 1<<40).Draw(t, "index"), LSN: 77, Relation: m.rel,
		Tx: &decode.Tx{
			FinalLSN: 1 << 40, XID: rapid.Uint32().Draw(t, "xid"),
			CommitMicros: rapid.Int64Range(0, 1<<51).Draw(t, "commit time"),
		},
	}
	if ev.Kind != insert {
		ev.OldKind = rapid.SampledFrom([]byte{0, 'K', 'O'}).Draw(t, "old")
	}
	mostly := []schema.DatumKind{
		schema.DatumText, schema.DatumText, schema.DatumText, schema.DatumText, schema.DatumNull,
	}
	if ev.OldKind != 0 {
		old = m.drawRow(t, mostly)
		ev.Old = tuple(old)
	}
	if ev.Kind == remove {
		return ev, old, nil
	}
	kinds := mostly
	if ev.Kind == update {
		kinds = append(kinds, schema.DatumUnchanged)
	}
	next = m.drawRow(t, kinds)
	for _, i := range m.key {
		if old != nil && rapid.Bool().Draw(t, "same key") {
			next[i] = old[i]
		}
	}
	ev.New = tuple(next)
	return ev, old, next
}

func TestBytesEqualGoavros(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawTable(t)
		e := New(options())
		defer e.Close()
		table, err := e.Compile(m.rel, m.info)
		if err != nil {
			t.Fatal(err)
		}
		table.SetIDs(keyID, valueID)
		if m.leafNotFull {
			table.LeafNotFull()
		}
		for range rapid.IntRange(1, 4).Draw(t, "events") {
			ev, old, next := drawEvent(t, &m)
			want, stops := m.expect(ev, old, next)
			recs, err := e.Row(nil, table, ev)
			if stops != (err != nil) || len(recs) != len(want) {
				t.Fatalf("%d records, want %d; stops %v: %v", len(recs), len(want), stops, err)
			}
			for i := range want {
				same(t, "key", table.KeySchema, keyID, want[i].key, recs[i].Key)
				same(t, "value", table.ValueSchema, valueID, want[i].value, recs[i].Value)
				recs[i].Buffer.Release()
			}
		}
	})
}
