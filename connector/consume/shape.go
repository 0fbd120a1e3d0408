package consume

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// Row is a record's fields in the order of its schema.
type Row []Field

// Field is one field. Value is nil, bool, int64, json.Number (float, double), string, Literal,
// Row, []any (array) or Map.
type Field struct {
	Name  string
	Value any
}

// Map is an Avro map.
type Map map[string]any

// Literal is a value that has a text of its own which is no free text: a decimal, a date, a time,
// bytes ("\x" and hexadecimal digits, as PostgreSQL writes bytea), NaN and the infinities. In JSON
// it is a string; for a person it stands without quotes.
type Literal string

// Get returns a field's value; ok is false when the row has no such field.
func (r Row) Get(name string) (value any, ok bool) {
	for i := range r {
		if r[i].Name == name {
			return r[i].Value, true
		}
	}
	return nil, false
}

// shape is a node of a schema.
type shape struct {
	kind     string // a primitive's name, or record, enum, fixed, array, map, union
	logical  string
	scale    int
	name     string // full name of record, enum, fixed
	fields   []shapeField
	items    *shape   // array, map
	branches []*shape // union
}

type shapeField struct {
	name string
	*shape
}

// avroSchema is a schema object as JSON holds it.
type avroSchema struct {
	Type        json.RawMessage `json:"type"`
	LogicalType string          `json:"logicalType"`
	Scale       int             `json:"scale"`
	Name        string          `json:"name"`
	Namespace   *string         `json:"namespace"`
	Fields      []avroSchema    `json:"fields"`
	Items       json.RawMessage `json:"items"`
	Values      json.RawMessage `json:"values"`
}

// parseShape reads a schema that goavro has already accepted.
func parseShape(text string) (*shape, error) {
	p := shapes{named: map[string]*shape{}}
	return p.parse(json.RawMessage(text), "")
}

type shapes struct{ named map[string]*shape }

func (p *shapes) parse(raw json.RawMessage, namespace string) (*shape, error) {
	var name string
	if json.Unmarshal(raw, &name) == nil {
		return p.byName(name, namespace)
	}
	var union []json.RawMessage
	if json.Unmarshal(raw, &union) == nil {
		s := &shape{kind: "union"}
		for _, b := range union {
			branch, err := p.parse(b, namespace)
			if err != nil {
				return nil, err
			}
			s.branches = append(s.branches, branch)
		}
		return s, nil
	}
	var a avroSchema
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, fmt.Errorf("a schema is neither name, list nor object: %w", err)
	}
	return p.object(&a, namespace)
}

func (p *shapes) byName(name, namespace string) (*shape, error) {
	switch name {
	case "null", "boolean", "int", "long", "float", "double", "bytes", "string":
		return &shape{kind: name}, nil
	}
	if s := p.named[fullName(name, namespace)]; s != nil {
		return s, nil
	}
	if s := p.named[name]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("the schema has no type %s", name)
}

func (p *shapes) object(a *avroSchema, namespace string) (*shape, error) {
	var kind string
	if json.Unmarshal(a.Type, &kind) != nil {
		return p.parse(a.Type, namespace) // {"type": {...}} or {"type": [...]}
	}
	s := &shape{kind: kind, logical: a.LogicalType, scale: a.Scale}
	var err error
	switch kind {
	case "record", "error", "enum", "fixed":
		if a.Namespace != nil {
			namespace = *a.Namespace
		}
		s.name = fullName(a.Name, namespace)
		if at := strings.LastIndexByte(s.name, '.'); at >= 0 {
			namespace = s.name[:at]
		}
		p.named[s.name] = s // before its fields: it may hold itself
		for i := range a.Fields {
			f := &a.Fields[i]
			field, err := p.parse(f.Type, namespace)
			if err != nil {
				return nil, err
			}
			s.fields = append(s.fields, shapeField{f.Name, field})
		}
	case "array":
		s.items, err = p.parse(a.Items, namespace)
	case "map":
		s.items, err = p.parse(a.Values, namespace)
	default:
		named, err := p.byName(kind, namespace)
		if err != nil || named.name != "" {
			return named, err
		}
	}
	return s, err
}

func fullName(name, namespace string) string {
	if namespace == "" || strings.Contains(name, ".") {
		return name
	}
	return namespace + "." + name
}

var errShape = errors.New("the value is not what its schema says")

// plain turns goavro's native value into one of Field's.
func (s *shape) plain(native any) (any, error) {
	switch s.kind {
	case "union":
		return s.plainUnion(native)
	case "record", "error":
		m, ok := native.(map[string]any)
		if !ok {
			return nil, errShape
		}
		row := make(Row, len(s.fields))
		for i, f := range s.fields {
			v, err := f.plain(m[f.name])
			if err != nil {
				return nil, fmt.Errorf("field %s: %w", f.name, err)
			}
			row[i] = Field{f.name, v}
		}
		return row, nil
	case "array":
		list, ok := native.([]any)
		if !ok {
			return nil, errShape
		}
		out := make([]any, len(list))
		for i, e := range list {
			var err error
			if out[i], err = s.items.plain(e); err != nil {
				return nil, err
			}
		}
		return out, nil
	case "map":
		m, ok := native.(map[string]any)
		if !ok {
			return nil, errShape
		}
		out := make(Map, len(m))
		for k, e := range m {
			var err error
			if out[k], err = s.items.plain(e); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return s.scalar(native)
}

// plainUnion takes the name off: goavro gives a branch that is not null as a map of one entry.
func (s *shape) plainUnion(native any) (any, error) {
	if native == nil {
		return nil, nil
	}
	m, ok := native.(map[string]any)
	if !ok || len(m) != 1 {
		return nil, errShape
	}
	for name, v := range m {
		if b := s.branch(name); b != nil {
			return b.plain(v)
		}
	}
	return nil, errShape
}

// branch finds what goavro calls name: a full name, a primitive, or primitive.logicalType.
func (s *shape) branch(name string) *shape {
	var only *shape
	others := 0
	for _, b := range s.branches {
		if b.kind == "null" {
			continue
		}
		if name == b.name || name == b.kind || name == b.kind+"."+b.logical {
			return b
		}
		only = b
		others++
	}
	if others == 1 {
		return only
	}
	return nil
}

func (s *shape) scalar(native any) (any, error) {
	switch v := native.(type) {
	case nil, bool, string, int64:
		if n, ok := v.(int64); ok && s.logical == "local-timestamp-micros" {
			return Literal(stamp(time.UnixMicro(n))), nil
		}
		return v, nil
	case int32:
		return int64(v), nil
	case float32:
		return number(float64(v), 32), nil
	case float64:
		return number(v, 64), nil
	case []byte:
		return Literal(fmt.Sprintf(`\x%x`, v)), nil
	case *big.Rat:
		return Literal(v.FloatString(s.scale)), nil
	case time.Duration:
		return Literal(time.Unix(0, 0).UTC().Add(v).Format("15:04:05.999999")), nil
	case time.Time:
		switch s.logical {
		case "date":
			return Literal(v.UTC().Format("2006-01-02")), nil
		case "local-timestamp-micros", "local-timestamp-millis":
			return Literal(stamp(v)), nil
		}
		return Literal(stamp(v) + "Z"), nil
	}
	return nil, errShape
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999999") }

// number keeps the shortest text that gives the value back; JSON has no number for the rest.
func number(f float64, bits int) any {
	switch {
	case math.IsNaN(f):
		return Literal("NaN")
	case math.IsInf(f, 1):
		return Literal("Infinity")
	case math.IsInf(f, -1):
		return Literal("-Infinity")
	}
	return json.Number(strconv.FormatFloat(f, 'g', -1, bits))
}
