package envelope

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/linkedin/goavro/v2"
)

// Symbols of the enum BeforeImage, in the schema's order: what is known of the old row.
type image byte

const (
	imageUnknown       image = iota // the reader's default, never written
	imageNotApplicable              // there is no old row
	imageAbsent                     // there is one, and nothing is known of it
	imageKey                        // its key is known
	imageFull                       // all of it is known
)

var imageSymbols = []string{"UNKNOWN", "NOT_APPLICABLE", "ABSENT", "KEY", "FULL"}

// Symbols of the enum ColumnImage: which of the event's two rows a ColumnState is about.
type side byte

const (
	sideBefore side = iota
	sideAfter
)

var sideSymbols = []string{"BEFORE", "AFTER"}

// Symbols of the enum ColumnStateKind.
type stateKind byte

const (
	stateUnavailable stateKind = iota
	stateReselected
	stateUnrepresentable
)

var stateSymbols = []string{"UNAVAILABLE", "RESELECTED", "UNREPRESENTABLE"}

// The parts of an Avro schema that encoding/json writes in this order.
type avroRecord struct {
	Type      string      `json:"type"`
	Name      string      `json:"name"`
	Namespace string      `json:"namespace,omitempty"`
	Fields    []avroField `json:"fields"`
}

type avroField struct {
	Name    string          `json:"name"`
	Type    any             `json:"type"`
	Default json.RawMessage `json:"default,omitempty"`
	PGType  string          `json:"pg_type,omitempty"`
}

type avroEnum struct {
	Type    string   `json:"type"`
	Name    string   `json:"name"`
	Symbols []string `json:"symbols"`
	Default string   `json:"default"`
}

type avroArray struct {
	Type  string `json:"type"`
	Items any    `json:"items"`
}

var (
	defaultNull  = json.RawMessage(`null`)
	defaultZero  = json.RawMessage(`0`)
	defaultEmpty = json.RawMessage(`[]`)
)

func record(name, namespace string, fields []avroField) avroRecord {
	if fields == nil {
		fields = []avroField{}
	}
	return avroRecord{Type: "record", Name: name, Namespace: namespace, Fields: fields}
}

func nullable(t any) []any { return []any{"null", t} }

// optional is a field ["null", T] with default null.
func optional(name string, t any) avroField {
	return avroField{Name: name, Type: nullable(t), Default: defaultNull}
}

func required(name string, t any) avroField { return avroField{Name: name, Type: t} }

// keySchema is the Key: fields with name and type only, so that nothing but a change of the key
// makes another schema.
func keySchema(namespace string, key []keyColumn) (string, error) {
	fields := make([]avroField, 0, len(key))
	for _, k := range key {
		fields = append(fields, required(k.field, k.avro))
	}
	return checked(record("Key", namespace, fields))
}

// valueSchema is the Envelope. extra is appended to its fields (the message topic's).
func valueSchema(namespace string, cols []column, key []keyColumn, extra ...avroField) (
	string, error,
) {
	values := make([]avroField, 0, len(cols))
	for i := range cols {
		if cols[i].rule.Out {
			continue
		}
		f := optional(cols[i].field, cols[i].avro)
		f.PGType = cols[i].pgType
		values = append(values, f)
	}
	fields := []avroField{
		optional("before", record("Value", "", values)),
		optional("after", "Value"),
		{
			Name: "before_image", Type: enum("BeforeImage", imageSymbols, "UNKNOWN"),
			Default: json.RawMessage(`"UNKNOWN"`),
		},
	}
	if len(key) > 0 {
		old := make([]avroField, 0, len(key))
		for _, k := range key {
			old = append(old, optional(k.field, k.avro))
		}
		fields = append(fields, optional("before_key", record("BeforeKey", "", old)))
	}
	fields = append(fields, avroField{
		Name: "column_states", Type: avroArray{"array", columnStateSchema()}, Default: defaultEmpty,
	})
	fields = append(fields, required("source", sourceSchema()),
		optional("transaction", record("block", "event", []avroField{
			required("id", "string"),
			required("total_order", "long"),
			required("data_collection_order", "long"),
		})),
		required("op", "string"),
		optional("ts_ms", "long"), optional("ts_us", "long"), optional("ts_ns", "long"))
	return checked(record("Envelope", namespace, append(fields, extra...)))
}

func enum(name string, symbols []string, byDefault string) avroEnum {
	return avroEnum{Type: "enum", Name: name, Symbols: symbols, Default: byDefault}
}

func columnStateSchema() avroRecord {
	return record("ColumnState", "", []avroField{
		required("image", enum("ColumnImage", sideSymbols, "AFTER")),
		required("column", "string"),
		required("state", enum("ColumnStateKind", stateSymbols, "UNAVAILABLE")),
		optional("text", "string"),
	})
}

// sourceSchema has Debezium's name, field names and field types, so that a reader with this schema
// takes events that Debezium wrote; the fields from history on are ours and have defaults.
func sourceSchema() avroRecord {
	return record("Source", "io.debezium.connector.postgresql", []avroField{
		required("version", "string"),
		required("connector", "string"),
		required("name", "string"),
		required("ts_ms", "long"),
		optional("ts_us", "long"),
		optional("ts_ns", "long"),
		{
			Name: "snapshot", Type: []any{"string", "null"},
			Default: json.RawMessage(`"false"`),
		},
		required("db", "string"),
		optional("sequence", "string"),
		required("schema", "string"),
		required("table", "string"),
		optional("txId", "long"),
		optional("lsn", "long"),
		optional("xmin", "long"),
		{Name: "history", Type: "long", Default: defaultZero},
		optional("commit_lsn", "long"),
		{Name: "event_index", Type: "long", Default: defaultZero},
		optional("origin", "string"),
	})
}

// messageField holds a logical message's prefix and content, as Debezium's record does.
func messageField() avroField {
	return optional("message", record("Message", "io.debezium.connector.postgresql", []avroField{
		optional("prefix", "string"),
		optional("content", "bytes"),
	}))
}

// checked renders a schema and lets goavro parse it.
func checked(r avroRecord) (string, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("schema %s.%s: %w", r.Namespace, r.Name, err)
	}
	if _, err := goavro.NewCodec(string(text)); err != nil {
		return "", fmt.Errorf("schema %s.%s is not legal Avro: %w", r.Namespace, r.Name, err)
	}
	return string(text), nil
}

// Avro's binary encoding, from the specification's section "Binary Encoding": int and long are
// zig-zag variable-length numbers (binary.AppendVarint is the same code), a string is its length
// and its bytes, a union is its branch's index and the value, an enum its symbol's index.

const (
	branchNull  byte = 0 // index 0 of ["null", T], zig-zag
	branchValue byte = 2 // index 1
)

func appendString(dst []byte, s string) []byte {
	dst = binary.AppendVarint(dst, int64(len(s)))
	return append(dst, s...)
}

func appendBytes(dst, b []byte) []byte {
	dst = binary.AppendVarint(dst, int64(len(b)))
	return append(dst, b...)
}

// millis rounds down, before 1970 too.
func millis(micros int64) int64 {
	ms := micros / 1000
	if micros%1000 < 0 {
		ms--
	}
	return ms
}

// appendTimes writes microseconds as ts_ms (plain, or the branch of a union), ts_us and ts_ns.
// Milliseconds are rounded down, before 1970 too.
func appendTimes(dst []byte, micros int64, msIsUnion bool) []byte {
	if msIsUnion {
		dst = append(dst, branchValue)
	}
	dst = binary.AppendVarint(dst, millis(micros))
	dst = append(dst, branchValue)
	dst = binary.AppendVarint(dst, micros)
	dst = append(dst, branchValue)
	return binary.AppendVarint(dst, micros*1000)
}
