package check

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"net/http"
	"strconv"
	"time"

	"github.com/hamba/avro/v2"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A Decoder decodes records with hamba/avro and the registry's schemas. It is not safe for
// concurrent use.
type Decoder struct {
	url     string
	client  *http.Client
	schemas map[uint32]*parsed
}

// parsed is a schema of the registry; of an envelope its Value's fields too.
type parsed struct {
	schema avro.Schema
	row    *avro.RecordSchema // Key itself, or Value
	names  []string
	key    *avro.RecordSchema // BeforeKey, of an envelope that has it
}

// NewDecoder returns a decoder for the registry at url.
func NewDecoder(url string) *Decoder {
	return &Decoder{
		url: url, schemas: map[uint32]*parsed{},
		client: &http.Client{
			Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true},
		},
	}
}

// envelope is what of an event hamba fills; the rest of the record is decoded and left.
type envelope struct {
	Before       map[string]any `avro:"before"`
	After        map[string]any `avro:"after"`
	BeforeImage  string         `avro:"before_image"`
	BeforeKey    map[string]any `avro:"before_key"`
	ColumnStates []avroState    `avro:"column_states"`
	Source       avroSource     `avro:"source"`
	Op           string         `avro:"op"`
	TsMs         *int64         `avro:"ts_ms"`
	TsUs         *int64         `avro:"ts_us"`
	TsNs         *int64         `avro:"ts_ns"`
}

type avroState struct {
	Image  string  `avro:"image"`
	Column string  `avro:"column"`
	State  string  `avro:"state"`
	Text   *string `avro:"text"`
}

type avroSource struct {
	Schema     string `avro:"schema"`
	Table      string `avro:"table"`
	History    int64  `avro:"history"`
	CommitLSN  *int64 `avro:"commit_lsn"`
	EventIndex int64  `avro:"event_index"`
}

// Decode decodes a record of a table's topic.
func (d *Decoder) Decode(ctx context.Context, rec *kgo.Record) (*Event, error) {
	e := &Event{
		Topic: rec.Topic, Partition: rec.Partition, Offset: rec.Offset,
		Headers: make(map[string]string, len(rec.Headers)),
	}
	for _, h := range rec.Headers {
		e.Headers[h.Key] = string(h.Value)
	}
	if rec.Key != nil {
		s, body, err := d.schemaOf(ctx, rec.Key)
		if err != nil {
			return nil, fmt.Errorf("key: %w", err)
		}
		var fields map[string]any
		if err := avro.Unmarshal(s.schema, body, &fields); err != nil {
			return nil, fmt.Errorf("key: %w", err)
		}
		if e.Key, err = rowOf(s.row, fields); err != nil {
			return nil, fmt.Errorf("key: %w", err)
		}
		e.KeyBody = body
	}
	if rec.Value == nil {
		e.Tombstone = true
		return e, e.fromHeaders()
	}
	return e, d.value(ctx, e, rec.Value)
}

func (d *Decoder) value(ctx context.Context, e *Event, value []byte) error {
	s, body, err := d.schemaOf(ctx, value)
	if err != nil {
		return fmt.Errorf("value: %w", err)
	}
	var v envelope
	if err := avro.Unmarshal(s.schema, body, &v); err != nil {
		return fmt.Errorf("value: %w", err)
	}
	e.Op, e.Image, e.Columns = v.Op, v.BeforeImage, s.names
	e.Schema, e.Table = v.Source.Schema, v.Source.Table
	e.Pair = Pair{History: v.Source.History, Index: v.Source.EventIndex}
	if v.Source.CommitLSN != nil {
		e.Pair.CommitLSN = uint64(*v.Source.CommitLSN)
	}
	for _, c := range v.ColumnStates {
		e.States = append(e.States, State(c))
	}
	for _, r := range []struct {
		into   *Row
		schema *avro.RecordSchema
		from   map[string]any
	}{{&e.Before, s.row, v.Before}, {&e.After, s.row, v.After}, {&e.BeforeKey, s.key, v.BeforeKey}} {
		if r.from == nil {
			continue
		}
		for _, inner := range r.from { // hamba names the branch of a union with records
			fields, ok := inner.(map[string]any)
			if !ok {
				return fmt.Errorf("value: a row is a %T", inner)
			}
			if *r.into, err = rowOf(r.schema, fields); err != nil {
				return err
			}
		}
	}
	tail := unionSize(v.TsMs) + unionSize(v.TsUs) + unionSize(v.TsNs)
	e.content = maphash.Bytes(contentSeed, body[:max(len(body)-tail, 0)])
	if columns := e.unlogged(); len(columns) > 0 {
		e.content = e.logged(columns)
	}
	return nil
}

// unionSize is how many bytes a ["null", long] takes.
func unionSize(v *int64) int {
	if v == nil {
		return 1
	}
	return 1 + len(binary.AppendVarint(nil, *v))
}

// fromHeaders fills a tombstone from its headers.
func (e *Event) fromHeaders() error {
	e.Op, e.Image = e.Headers["tidemark.op"], e.Headers["tidemark.before_image"]
	var errs [3]error
	e.Pair.History, errs[0] = strconv.ParseInt(e.Headers["tidemark.history"], 10, 64)
	e.Pair.CommitLSN, errs[1] = strconv.ParseUint(e.Headers["tidemark.commit_lsn"], 10, 64)
	e.Pair.Index, errs[2] = strconv.ParseInt(e.Headers["tidemark.event_index"], 10, 64)
	for _, err := range errs {
		if err != nil {
			return fmt.Errorf("a tombstone's headers: %w", err)
		}
	}
	return nil
}

func rowOf(schema *avro.RecordSchema, fields map[string]any) (Row, error) {
	if schema == nil {
		return nil, fmt.Errorf("the schema has no such record")
	}
	row := make(Row, len(fields))
	for _, f := range schema.Fields() {
		text, err := toText(f.Type(), fields[f.Name()])
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", f.Name(), err)
		}
		row[f.Name()] = text
	}
	return row, nil
}

// schemaOf takes the wire format's head off: a zero and the schema's id in four bytes.
func (d *Decoder) schemaOf(ctx context.Context, b []byte) (*parsed, []byte, error) {
	if len(b) < 5 || b[0] != 0 {
		return nil, nil, fmt.Errorf("%d bytes without the wire format's head", len(b))
	}
	id := binary.BigEndian.Uint32(b[1:])
	if s := d.schemas[id]; s != nil {
		return s, b[5:], nil
	}
	text, err := d.fetch(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	s, err := parseSchema(text)
	if err != nil {
		return nil, nil, fmt.Errorf("schema %d: %w", id, err)
	}
	d.schemas[id] = s
	return s, b[5:], nil
}

func (d *Decoder) fetch(ctx context.Context, id uint32) (string, error) {
	url := fmt.Sprintf("%s/schemas/ids/%d", d.url, id)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := d.client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("GET %s: %s", url, resp.Status)
	}
	var answer struct {
		Schema string `json:"schema"`
	}
	return answer.Schema, json.NewDecoder(resp.Body).Decode(&answer)
}

func parseSchema(text string) (*parsed, error) {
	// A cache of its own: two topics' schemas may have records of one name.
	schema, err := avro.ParseWithCache(text, "", &avro.SchemaCache{})
	if err != nil {
		return nil, err
	}
	record, ok := schema.(*avro.RecordSchema)
	if !ok {
		return nil, fmt.Errorf("it is a %s, not a record", schema.Type())
	}
	p := &parsed{schema: schema, row: record}
	for _, f := range record.Fields() {
		switch f.Name() {
		case "before":
			p.row = recordIn(f.Type())
		case "before_key":
			p.key = recordIn(f.Type())
		}
	}
	if p.row == nil {
		return nil, fmt.Errorf("its before is no record")
	}
	for _, f := range p.row.Fields() {
		p.names = append(p.names, f.Name())
	}
	return p, nil
}

// recordIn returns the record of a ["null", record].
func recordIn(s avro.Schema) *avro.RecordSchema {
	union, ok := s.(*avro.UnionSchema)
	if !ok {
		return nil
	}
	for _, t := range union.Types() {
		if r, ok := t.(*avro.RecordSchema); ok {
			return r
		}
	}
	return nil
}
