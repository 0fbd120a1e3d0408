package check

import (
	"encoding/hex"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/hamba/avro/v2"
)

// toText turns a value that hamba/avro decoded into the text that PostgreSQL prints for it, with
// TimeZone UTC, DateStyle ISO and bytea_output hex. It knows the types that hamba gives for the
// logical types of the contract; intervals and maps are not among the types that it is asked for, and
// are refused rather than guessed.
func toText(schema avro.Schema, value any) (*string, error) {
	if value == nil {
		return nil, nil
	}
	schema, value = unwrap(schema, value)
	text, err := plainText(schema, value)
	if err != nil {
		return nil, err
	}
	return &text, nil
}

// unwrap takes a value out of its union, which hamba leaves around types that have no Go type of
// their own.
func unwrap(schema avro.Schema, value any) (avro.Schema, any) {
	union, ok := schema.(*avro.UnionSchema)
	if !ok {
		return schema, value
	}
	for _, branch := range union.Types() {
		if branch.Type() == avro.Null {
			continue
		}
		if m, ok := value.(map[string]any); ok && len(m) == 1 {
			for _, inner := range m {
				return branch, inner
			}
		}
		return branch, value
	}
	return schema, value
}

func plainText(schema avro.Schema, value any) (string, error) {
	switch v := value.(type) {
	case bool:
		return strconv.FormatBool(v)[:1], nil
	case int:
		return strconv.Itoa(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float32:
		return FloatText(float64(v), 32), nil
	case float64:
		return FloatText(v, 64), nil
	case string:
		return v, nil
	case []byte:
		return `\x` + hex.EncodeToString(v), nil
	case *big.Rat:
		return v.FloatString(scaleOf(schema)), nil
	case time.Duration:
		return time.Time{}.Add(v).Format("15:04:05.999999"), nil
	case time.Time:
		return timeText(schema, v), nil
	case []any:
		return arrayText(schema, v)
	}
	return "", fmt.Errorf("a value of Go type %T has no text here", value)
}

func logicalOf(schema avro.Schema) avro.LogicalSchema {
	if s, ok := schema.(avro.LogicalTypeSchema); ok {
		return s.Logical()
	}
	return nil
}

func scaleOf(schema avro.Schema) int {
	if d, ok := logicalOf(schema).(*avro.DecimalLogicalSchema); ok {
		return d.Scale()
	}
	return 0
}

func timeText(schema avro.Schema, v time.Time) string {
	const day, second = "2006-01-02", "2006-01-02 15:04:05.999999"
	logical := logicalOf(schema)
	switch {
	case logical != nil && logical.Type() == avro.Date:
		return v.UTC().Format(day)
	case logical != nil && logical.Type() == avro.LocalTimestampMicros:
		return v.Format(second)
	}
	return v.UTC().Format(second) + "+00"
}

// arrayText is PostgreSQL's array literal, one dimension.
func arrayText(schema avro.Schema, values []any) (string, error) {
	array, ok := schema.(*avro.ArraySchema)
	if !ok {
		return "", fmt.Errorf("a list where the schema has %s", schema.Type())
	}
	parts := make([]string, len(values))
	for i, v := range values {
		text, err := toText(array.Items(), v)
		switch {
		case err != nil:
			return "", err
		case text == nil:
			parts[i] = "NULL"
		case *text == "", strings.EqualFold(*text, "null"), strings.ContainsAny(*text, "{}\",\\ \t\n"):
			parts[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(*text) + `"`
		default:
			parts[i] = *text
		}
	}
	return "{" + strings.Join(parts, ",") + "}", nil
}
