package config

import (
	"encoding/json"
	"regexp"
	"strings"
)

// jsonSchema is the part of JSON Schema (draft 2020-12) that describes a configuration file.
type jsonSchema struct {
	Schema      string                 `json:"$schema,omitempty"`
	Title       string                 `json:"title,omitempty"`
	Description string                 `json:"description,omitempty"`
	Type        string                 `json:"type,omitempty"`
	AnyOf       []*jsonSchema          `json:"anyOf,omitempty"`
	Enum        []string               `json:"enum,omitempty"`
	Pattern     string                 `json:"pattern,omitempty"`
	Minimum     *int64                 `json:"minimum,omitempty"`
	Maximum     *int64                 `json:"maximum,omitempty"`
	Default     string                 `json:"default,omitempty"`
	Deprecated  bool                   `json:"deprecated,omitempty"`
	Items       *jsonSchema            `json:"items,omitempty"`
	Required    []string               `json:"required,omitempty"`
	Properties  map[string]*jsonSchema `json:"properties,omitempty"`
	Patterns    map[string]*jsonSchema `json:"patternProperties,omitempty"`
	Additional  any                    `json:"additionalProperties,omitempty"` // false or a schema
}

// Schema returns a JSON Schema for the YAML file, for editors. It knows keys, types, bounds and
// values; Load knows more.
func Schema() ([]byte, error) {
	root := &jsonSchema{
		Schema: "https://json-schema.org/draft/2020-12/schema", Title: "tidemark", Type: "object",
		Properties: map[string]*jsonSchema{
			"worker": schemaOf(InWorker),
			"connectors": {
				Type: "object", Description: "Connectors by name.",
				Additional: schemaOf(InConnector),
			},
		},
		Additional: false,
	}
	return json.MarshalIndent(root, "", "  ")
}

func schemaOf(scope Scope) *jsonSchema {
	s := &jsonSchema{
		Type: "object", Properties: map[string]*jsonSchema{}, Patterns: map[string]*jsonSchema{},
		Additional: false,
	}
	for _, k := range table() {
		if k.Scope&scope == 0 {
			continue
		}
		if k.Required && k.Name != "schema.registry.url" { // which converters can give
			s.Required = append(s.Required, k.Name)
		}
		if strings.Contains(k.Name, "*") {
			pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(k.Name), `\*`, ".+") + "$"
			// A pattern also covers names that have rows of their own, so it demands nothing.
			s.Patterns[pattern] = &jsonSchema{Description: k.description()}
			continue
		}
		s.Properties[k.Name] = k.schema()
	}
	return s
}

// schema describes one value. Each may be a string, as in Connect, and then also a reference.
func (k Key) schema() *jsonSchema {
	s := &jsonSchema{Description: k.description(), Default: k.Default}
	text := &jsonSchema{Type: "string"}
	switch {
	case k.Class == Ignored:
		s.Deprecated = true
	case k.Class == Refused && len(k.Same) == 0:
		s.Deprecated = true
		s.Enum = []string{""}
	case k.Class == Refused:
		s.Deprecated = true
	case k.Type == Boolean:
		text.Pattern = `^\s*([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee])\s*$|\$\{`
		s.AnyOf = []*jsonSchema{{Type: "boolean"}, text}
	case k.Type == Integer || k.Type == Bytes || k.Type == Duration:
		text.Pattern = `^\s*-?[0-9]+\s*$|\$\{`
		number := &jsonSchema{Type: "integer"}
		if k.Bounds != nil {
			number.Minimum, number.Maximum = &k.Bounds.Min, &k.Bounds.Max
		}
		s.AnyOf = []*jsonSchema{number, text}
	case k.Type == Enum:
		s.AnyOf = []*jsonSchema{{Enum: k.Enum}, {Type: "string", Pattern: `\$\{`}}
	case k.Type == List || k.Type == Regexes:
		s.AnyOf = []*jsonSchema{text, {Type: "array", Items: &jsonSchema{Type: "string"}}}
	default:
		s.AnyOf = []*jsonSchema{text, {Type: "number"}, {Type: "boolean"}}
	}
	return s
}

func (k Key) description() string {
	switch k.Class {
	case Ignored:
		return k.Meaning + " Without effect: " + k.Why + "."
	case Refused:
		return k.Meaning + " Refused: " + k.Why + "."
	default:
		return k.Meaning
	}
}
