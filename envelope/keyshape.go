package envelope

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// KeyShape is how the fields of a Key's schema lie in its Avro body: enough to tell two versions of
// a key apart and to take a body to pieces without knowing what its values mean.
type KeyShape struct {
	fields []shapeField
}

type shapeField struct {
	name string
	typ  *shapeType
}

// shapeType is an Avro type as far as its encoding goes.
type shapeType struct {
	kind  string       // Avro's name; "varint" for int and long, which are encoded alike
	note  string       // logical type, with scale or size: the same bytes then mean the same
	parts []*shapeType // items or values; branches of a union; fields of a record
}

var errBody = errors.New("the bytes do not fit the key's schema")

// ParseKeyShape reads a Key's schema.
func ParseKeyShape(schema string) (*KeyShape, error) {
	var rec struct {
		Type   string `json:"type"`
		Fields []struct {
			Name string          `json:"name"`
			Type json.RawMessage `json:"type"`
		} `json:"fields"`
	}
	if err := json.Unmarshal([]byte(schema), &rec); err != nil || rec.Type != "record" {
		return nil, errors.New("a key's schema is not a record")
	}
	k := new(KeyShape)
	for _, f := range rec.Fields {
		typ, err := parseShape(f.Type)
		if err != nil {
			return nil, fmt.Errorf("field %s of a key's schema: %w", f.Name, err)
		}
		k.fields = append(k.fields, shapeField{f.Name, typ})
	}
	return k, nil
}

func parseShape(raw json.RawMessage) (*shapeType, error) {
	var name string
	if json.Unmarshal(raw, &name) == nil {
		return plainShape(name, "")
	}
	var union []json.RawMessage
	if json.Unmarshal(raw, &union) == nil {
		out := &shapeType{kind: "union"}
		return out, out.add(union)
	}
	var t struct {
		Type    json.RawMessage   `json:"type"`
		Logical string            `json:"logicalType"`
		Scale   int               `json:"scale"`
		Items   json.RawMessage   `json:"items"`
		Values  json.RawMessage   `json:"values"`
		Fields  []json.RawMessage `json:"fields"`
	}
	if err := json.Unmarshal(raw, &t); err != nil {
		return nil, err
	}
	if json.Unmarshal(t.Type, &name) != nil {
		return parseShape(t.Type)
	}
	switch name {
	case "array":
		out := &shapeType{kind: name}
		return out, out.add([]json.RawMessage{t.Items})
	case "map":
		out := &shapeType{kind: name}
		return out, out.add([]json.RawMessage{t.Values})
	}
	note := t.Logical
	if t.Scale != 0 {
		note = fmt.Sprintf("%s %d", note, t.Scale)
	}
	return plainShape(name, note)
}

func (t *shapeType) add(parts []json.RawMessage) error {
	for _, p := range parts {
		part, err := parseShape(p)
		if err != nil {
			return err
		}
		t.parts = append(t.parts, part)
	}
	return nil
}

func plainShape(name, note string) (*shapeType, error) {
	switch name {
	case "int", "long":
		return &shapeType{kind: "varint", note: note}, nil
	case "null", "boolean", "float", "double", "bytes", "string":
		return &shapeType{kind: name, note: note}, nil
	}
	return nil, fmt.Errorf("keys have no type %q", name)
}

// Same reports whether bodies of both shapes are the same key exactly when their bytes are equal:
// the same fields in the same order, encoded alike. An int that became a long is the same.
func (k *KeyShape) Same(other *KeyShape) bool {
	if len(k.fields) != len(other.fields) {
		return false
	}
	for i, f := range k.fields {
		if f.name != other.fields[i].name || f.typ.String() != other.fields[i].typ.String() {
			return false
		}
	}
	return true
}

func (t *shapeType) String() string {
	parts := make([]string, len(t.parts))
	for i, p := range t.parts {
		parts[i] = p.String()
	}
	return t.kind + " " + t.note + "(" + strings.Join(parts, ",") + ")"
}

// split cuts a body into its fields' bytes.
func (k *KeyShape) split(body []byte) ([][]byte, error) {
	out := make([][]byte, 0, len(k.fields))
	for _, f := range k.fields {
		rest, err := f.typ.skip(body)
		if err != nil {
			return nil, err
		}
		out = append(out, body[:len(body)-len(rest)])
		body = rest
	}
	if len(body) != 0 {
		return nil, errBody
	}
	return out, nil
}

// skip returns what follows one value.
func (t *shapeType) skip(b []byte) ([]byte, error) {
	switch t.kind {
	case "null":
		return b, nil
	case "boolean":
		return cutBytes(b, 1)
	case "float":
		return cutBytes(b, 4)
	case "double":
		return cutBytes(b, 8)
	case "varint":
		_, rest, err := cutVarint(b)
		return rest, err
	case "bytes", "string":
		n, rest, err := cutVarint(b)
		if err != nil {
			return nil, err
		}
		return cutBytes(rest, n)
	case "union":
		branch, rest, err := cutVarint(b)
		if err != nil || branch < 0 || branch >= int64(len(t.parts)) {
			return nil, errBody
		}
		return t.parts[branch].skip(rest)
	}
	return t.skipBlocks(b)
}

// skipBlocks skips an array or a map: blocks of items, the last of them empty.
func (t *shapeType) skipBlocks(b []byte) ([]byte, error) {
	for {
		n, rest, err := cutVarint(b)
		if err != nil || n == 0 {
			return rest, err
		}
		if n < 0 { // then the block's size in bytes follows
			if n, rest, err = cutVarint(rest); err == nil {
				b, err = cutBytes(rest, n)
			}
			if err != nil {
				return nil, err
			}
			continue
		}
		for ; n > 0; n-- {
			if t.kind == "map" {
				var size int64
				if size, rest, err = cutVarint(rest); err == nil {
					rest, err = cutBytes(rest, size)
				}
			}
			if err == nil {
				rest, err = t.parts[0].skip(rest)
			}
			if err != nil {
				return nil, err
			}
		}
		b = rest
	}
}

func cutVarint(b []byte) (int64, []byte, error) {
	v, n := binary.Varint(b)
	if n <= 0 {
		return 0, nil, errBody
	}
	return v, b[n:], nil
}

func cutBytes(b []byte, n int64) ([]byte, error) {
	if n < 0 || n > int64(len(b)) {
		return nil, errBody
	}
	return b[n:], nil
}
