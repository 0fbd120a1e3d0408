package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const referenceHead = `# Configuration reference

<!-- Generated from the table of keys by the tests of package config: go test ./config -update -->

One YAML file (JSON is YAML): worker's keys, then connectors by name. A connector's map is what
Kafka Connect takes as config. Connect-style JSON files, {"name": ..., "config": {...}}, can be
given beside it. Values may be written as strings, numbers or booleans; lists with commas or as YAML
sequences. Durations are whole milliseconds, sizes whole bytes. ` + "`${env:NAME}`" + ` and
` + "`${file:PATH:KEY}`" + ` are resolved at start; ` + "`${file:PATH:}`" + ` is the whole file.

Regular expressions match whole names without regard to case, as Debezium's do; the syntax is RE2's.
A comma that belongs to an expression is written \, or stands inside brackets.

Every key of Debezium's PostgreSQL connector is here, in one of three classes. *Supported*: it does
what it says. *Without effect*: accepted with a warning. *Refused*: ignoring it would change what
comes out of the topics, so it is an error that says what to do. An unknown key is an error.
A star in a name stands for any characters. "Theirs" is the default in Debezium, Connect or Kafka.
`

// Reference returns the configuration reference, in Markdown.
func Reference() string {
	var b strings.Builder
	b.WriteString(referenceHead)
	var areas []string
	byArea := map[string][]Key{}
	for _, k := range table() {
		if byArea[k.Area] == nil {
			areas = append(areas, k.Area)
		}
		byArea[k.Area] = append(byArea[k.Area], k)
	}
	for _, area := range areas {
		fmt.Fprintf(&b, "\n## %s\n", area)
		writeSupported(&b, byArea[area])
		writeOthers(&b, byArea[area])
	}
	return b.String()
}

func writeSupported(b *strings.Builder, keys []Key) {
	head := "\n| key | type | default | theirs | meaning |\n|---|---|---|---|---|\n"
	for _, k := range keys {
		if k.Class != Supported {
			continue
		}
		b.WriteString(head)
		head = ""
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", code(k.Name), cell(k.TypeText()),
			cell(k.defaultText()), code(k.Theirs), cell(k.meaningText()))
	}
}

func writeOthers(b *strings.Builder, keys []Key) {
	head := "\n| key | class | theirs | what it is | why, or what to do |\n|---|---|---|---|---|\n"
	for _, k := range keys {
		if k.Class == Supported {
			continue
		}
		b.WriteString(head)
		head = ""
		class := "without effect"
		if k.Class == Refused {
			class = "refused"
		}
		if k.Later {
			class += ", in this version"
		}
		why := k.Why
		if len(k.Same) > 0 {
			why += ". Accepted: " + codes(k.Same)
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", code(k.Name), class, code(k.Theirs),
			cell(k.Meaning), cell(why))
	}
}

// TypeText renders type, unit, bounds and values of a key.
func (k Key) TypeText() string {
	text := k.Type.String()
	if unit := k.Type.Unit(); unit != "" && unit != text {
		text += ", " + unit
	}
	if k.Bounds != nil {
		text += fmt.Sprintf(", %d to %d", k.Bounds.Min, k.Bounds.Max)
	}
	if len(k.Enum) > 0 {
		text += ": " + codes(k.Enum)
	}
	return text
}

func (k Key) defaultText() string {
	if k.Required {
		return "required"
	}
	return code(k.Default)
}

// meaningText adds to the meaning why the default is another than theirs, and what is refused.
func (k Key) meaningText() string {
	text := k.Meaning
	if k.Why != "" {
		text += " Default: " + k.Why + "."
	}
	for _, value := range slices.Sorted(maps.Keys(k.Instead)) {
		text += " Refused: " + code(value) + ", " + k.Instead[value] + "."
	}
	return text
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

func codes(values []string) string {
	shown := make([]string, len(values))
	for i, v := range values {
		if shown[i] = code(v); v == "" {
			shown[i] = "empty"
		}
	}
	return strings.Join(shown, ", ")
}

// cell escapes what would end a cell of a Markdown table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// MarshalJSON writes the row as `tidemark config keys --json` prints it.
func (k Key) MarshalJSON() ([]byte, error) {
	row := struct {
		Name     string            `json:"name"`
		Area     string            `json:"area"`
		Scope    string            `json:"scope"`
		Class    string            `json:"class"`
		Type     string            `json:"type"`
		Unit     string            `json:"unit,omitempty"`
		Required bool              `json:"required,omitempty"`
		Default  string            `json:"default,omitempty"`
		Theirs   string            `json:"theirs,omitempty"`
		Min      *int64            `json:"min,omitempty"`
		Max      *int64            `json:"max,omitempty"`
		Enum     []string          `json:"enum,omitempty"`
		Accepted []string          `json:"accepted,omitempty"`
		Instead  map[string]string `json:"instead,omitempty"`
		Later    bool              `json:"later,omitempty"`
		Meaning  string            `json:"meaning"`
		Why      string            `json:"why,omitempty"`
	}{
		Name: k.Name, Area: k.Area, Scope: k.Scope.String(), Class: k.Class.String(),
		Type: k.Type.String(), Unit: k.Type.Unit(), Required: k.Required, Default: k.Default,
		Theirs: k.Theirs, Enum: k.Enum, Accepted: k.Same, Instead: k.Instead, Later: k.Later,
		Meaning: k.Meaning, Why: k.Why,
	}
	if k.Bounds != nil {
		row.Min, row.Max = &k.Bounds.Min, &k.Bounds.Max
	}
	return json.Marshal(row)
}
