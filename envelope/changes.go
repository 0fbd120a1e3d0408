package envelope

import (
	"encoding/json"
	"fmt"
	"strings"
)

// FieldChange is a field of Value whose values are written in another way than before.
type FieldChange struct {
	Field    string
	From, To string // the Avro types, in words: "decimal(10,2)", "array of long"
}

// String is the change as one clause.
func (c FieldChange) String() string {
	return c.Field + " was " + c.From + " and is " + c.To
}

// Changes compares the Value records of two Envelope schemas by their fields' names. changed are
// the fields of both whose type, logical type, precision or scale differ; fresh are those that
// earlier does not have. Reordering, pg_type and Debezium's connect.* properties are no changes,
// and neither is a widening that Avro's own schema resolution carries over exactly.
//
// It is for a person's eyes, and for a decision to stop: registries compare Avro types and nothing
// else, so that a reader with an earlier schema takes decimal(10,4) for decimal(10,2).
func Changes(earlier, next string) (changed []FieldChange, fresh []string, err error) {
	was, _, err := valueFields(earlier)
	if err != nil {
		return nil, nil, fmt.Errorf("the earlier schema: %w", err)
	}
	is, order, err := valueFields(next)
	if err != nil {
		return nil, nil, fmt.Errorf("the next schema: %w", err)
	}
	for _, field := range order {
		from, ok := was[field]
		switch to := is[field]; {
		case !ok:
			fresh = append(fresh, field)
		case from != to && !widened(from, to):
			changed = append(changed, FieldChange{field, from, to})
		}
	}
	return changed, fresh, nil
}

// widened: every value of from is the same value of to, and a reader's schema resolution says so.
func widened(from, to string) bool {
	return from == "int" && (to == "long" || to == "double") || from == "float" && to == "double"
}

// valueFields returns the types of the Value record's fields in words, and the fields' order. A
// schema without such a record has none.
func valueFields(schema string) (types map[string]string, order []string, err error) {
	type field struct {
		Name string `json:"name"`
		Type any    `json:"type"`
	}
	var envelope struct {
		Fields []field `json:"fields"`
	}
	if err := json.Unmarshal([]byte(schema), &envelope); err != nil {
		return nil, nil, err
	}
	types = map[string]string{}
	for _, f := range envelope.Fields {
		if f.Name != "before" {
			continue
		}
		branches, _ := f.Type.([]any)
		for _, b := range branches {
			value, ok := b.(map[string]any)
			if !ok {
				continue
			}
			fields, _ := value["fields"].([]any)
			for _, v := range fields {
				column, _ := v.(map[string]any)
				name, _ := column["name"].(string)
				types[name] = describe(column["type"])
				order = append(order, name)
			}
		}
	}
	return types, order, nil
}

// describe puts an Avro type into words. null in a union is left out: every field of Value may be
// null, and Debezium's of a NOT NULL column may not.
func describe(t any) string {
	switch t := t.(type) {
	case string:
		return t
	case []any:
		var parts []string
		for _, b := range t {
			if b != "null" {
				parts = append(parts, describe(b))
			}
		}
		return strings.Join(parts, " or ")
	case map[string]any:
		return describeObject(t)
	}
	return "?"
}

func describeObject(t map[string]any) string {
	base := describe(t["type"])
	switch base {
	case "array":
		return "array of " + describe(t["items"])
	case "map":
		return "map of " + describe(t["values"])
	case "record", "enum", "fixed":
		return fmt.Sprint(base, " ", t["name"])
	}
	switch logical, _ := t["logicalType"].(string); logical {
	case "":
		return base
	case "decimal":
		scale, ok := t["scale"]
		if !ok {
			scale = 0
		}
		return fmt.Sprintf("decimal(%v,%v)", t["precision"], scale)
	default:
		return base + " as " + logical
	}
}
