package consume

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// WriteJSON writes a message as one line of JSON:
//
//	{"topic":...,"partition":0,"offset":7,"timestamp_ms":...,"headers":{...},"key":...,"value":...}
//
// Avro values are written as JSON has them, unions without the name of their branch, fields in the
// order of the schema. What JSON has no type for is a string: decimals ("12.30", all digits of
// the scale), date "2026-11-30", time "23:59:59.5", timestamps without zone
// "2026-11-30T23:59:59.5" and with zone (in UTC) "2026-11-30T23:59:59.5Z", bytes "\x00ff", and
// NaN, Infinity and -Infinity. 64-bit integers are JSON numbers with all their digits. Bytes that
// could not be decoded: "key_error" or "value_error" with a sentence, and "key_bytes" or
// "value_bytes" with the bytes. "key_other" is the key in the header of a change of key.
func WriteJSON(w io.Writer, m *Message) error {
	var b bytes.Buffer
	j := jsonWriter{&b}
	b.WriteString(`{"topic":`)
	j.text(m.Topic)
	fmt.Fprintf(&b, `,"partition":%d,"offset":%d,"timestamp_ms":%d,"headers":{`,
		m.Partition, m.Offset, m.Time.UnixMilli())
	for i, h := range m.Headers {
		if i > 0 {
			b.WriteByte(',')
		}
		j.text(h.Key)
		b.WriteByte(':')
		j.text(h.Value)
	}
	b.WriteByte('}')
	j.side("key", m.Key, m.KeyErr, m.KeyBytes)
	if m.OtherKey != nil {
		b.WriteString(`,"key_other":`)
		j.value(m.OtherKey)
	}
	j.side("value", m.Value, m.ValueErr, m.ValueBytes)
	b.WriteString("}\n")
	_, err := w.Write(b.Bytes())
	return err
}

type jsonWriter struct{ *bytes.Buffer }

func (j jsonWriter) side(name string, v any, err error, raw []byte) {
	j.WriteString(`,"` + name)
	if err != nil {
		j.WriteString(`_error":`)
		j.text(err.Error())
		fmt.Fprintf(j, `,"%s_bytes":"\\x%x"`, name, raw)
		return
	}
	j.WriteString(`":`)
	j.value(v)
}

// text writes a string without making < > & into escapes: the line is no HTML.
func (j jsonWriter) text(s string) {
	e := json.NewEncoder(j)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always has a JSON form
	j.Truncate(j.Len() - 1)
}

func (j jsonWriter) value(v any) {
	switch v := v.(type) {
	case nil:
		j.WriteString("null")
	case Row:
		j.WriteByte('{')
		for i, f := range v {
			if i > 0 {
				j.WriteByte(',')
			}
			j.text(f.Name)
			j.WriteByte(':')
			j.value(f.Value)
		}
		j.WriteByte('}')
	case []any:
		j.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				j.WriteByte(',')
			}
			j.value(e)
		}
		j.WriteByte(']')
	case Map:
		j.WriteByte('{')
		for i, k := range v.keys() {
			if i > 0 {
				j.WriteByte(',')
			}
			j.text(k)
			j.WriteByte(':')
			j.value(v[k])
		}
		j.WriteByte('}')
	case Literal:
		j.text(string(v))
	case string:
		j.text(v)
	case json.Number:
		j.WriteString(string(v))
	case json.RawMessage:
		_ = json.Compact(j.Buffer, v) // was found valid when it was read
	default: // bool, int64
		fmt.Fprint(j, v)
	}
}

// keys returns the map's keys, sorted.
func (m Map) keys() []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
