package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Difference says where two Avro schemas differ in what the bytes of a value are and mean: types and
// their full names, the order of fields, symbols and branches, sizes, logical types. It is empty
// when bytes that are written with the one are those of the other. Defaults, aliases, documentation
// and other properties do not count.
func Difference(ours, theirs string) (string, error) {
	a, err := parseLayout(ours)
	if err != nil {
		return "", err
	}
	b, err := parseLayout(theirs)
	if err != nil {
		return "", err
	}
	return differ(a, b, "the schema"), nil
}

// layout is an Avro type as far as its bytes go.
type layout struct {
	what  string // kind, full name, symbols, size, logical type
	parts []labelled
}

// labelled is a part of a type: a field by its name, a branch by its number, items, values.
type labelled struct {
	label string
	of    *layout
}

var errNotAvro = errors.New("not an Avro schema")

func parseLayout(text string) (*layout, error) {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotAvro, err)
	}
	return layoutOf(v, "")
}

// layoutOf reads a type; space is the namespace around it.
func layoutOf(v any, space string) (*layout, error) {
	switch v := v.(type) {
	case string:
		return &layout{what: nameOf(v, space)}, nil
	case []any:
		l := &layout{what: "union"}
		for i, branch := range v {
			if err := l.add(fmt.Sprintf("branch %d", i), branch, space); err != nil {
				return nil, err
			}
		}
		return l, nil
	case map[string]any:
		kind, ok := v["type"].(string)
		if !ok {
			return layoutOf(v["type"], space)
		}
		return layoutOfObject(v, kind, space)
	}
	return nil, errNotAvro
}

func layoutOfObject(v map[string]any, kind, space string) (*layout, error) {
	l := &layout{what: kind}
	var err error
	switch kind {
	case "array":
		err = l.add("items", v["items"], space)
	case "map":
		err = l.add("values", v["values"], space)
	case "record", "error", "enum", "fixed":
		name, _ := v["name"].(string)
		if own, ok := v["namespace"].(string); ok {
			space = own
		}
		name = nameOf(name, space)
		if at := strings.LastIndexByte(name, '.'); at >= 0 {
			space = name[:at]
		}
		l.what += " " + name
		if symbols, ok := v["symbols"]; ok {
			l.what += fmt.Sprint(" ", symbols)
		}
		if size, ok := v["size"]; ok {
			l.what += fmt.Sprint(" of ", size, " bytes")
		}
		fields, _ := v["fields"].([]any)
		for _, f := range fields {
			field, _ := f.(map[string]any)
			label, _ := field["name"].(string)
			if err = l.add("field "+label, field["type"], space); err != nil {
				break
			}
		}
	default:
		l.what = nameOf(kind, space)
	}
	for _, note := range []string{"logicalType", "precision", "scale"} {
		if value, ok := v[note]; ok && (note != "scale" || value != float64(0)) {
			l.what += fmt.Sprint(" ", note, " ", value)
		}
	}
	return l, err
}

func (l *layout) add(label string, v any, space string) error {
	of, err := layoutOf(v, space)
	l.parts = append(l.parts, labelled{label, of})
	return err
}

// nameOf is the full name that a type is referred to by.
func nameOf(name, space string) string {
	switch name {
	case "null", "boolean", "int", "long", "float", "double", "bytes", "string":
		return name
	}
	if space == "" || strings.ContainsRune(name, '.') {
		return name
	}
	return space + "." + name
}

// differ names the first place where two types differ.
func differ(a, b *layout, where string) string {
	if a.what != b.what {
		return fmt.Sprintf("%s: %s is written, and %s is registered", where, a.what, b.what)
	}
	for i, part := range a.parts {
		if i == len(b.parts) {
			return fmt.Sprintf("%s: %s is written, and not registered", where, part.label)
		}
		other := b.parts[i]
		if part.label != other.label {
			return fmt.Sprintf("%s: %s is written where %s is registered", where, part.label, other.label)
		}
		if text := differ(part.of, other.of, where+", "+part.label); text != "" {
			return text
		}
	}
	if len(b.parts) > len(a.parts) {
		return fmt.Sprintf("%s: %s is registered, and not written", where,
			b.parts[len(a.parts)].label)
	}
	return ""
}
