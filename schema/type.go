package schema

import (
	"encoding/json"
	"errors"
)

// AppendFunc appends the Avro body of T (no union branch in front) of a value's PostgreSQL text to
// dst. text is the type's text output under PinnedSettings; it is only read, and not kept.
//
// A value that T cannot hold, and a text that is not the type's, gives ErrUnrepresentable and dst
// at the length it came with; it never panics. Scalar types do not allocate, dst's growth aside.
type AppendFunc func(dst, text []byte) ([]byte, error)

// ErrUnrepresentable says that the Avro type cannot hold the value: the field becomes null with
// the column state UNREPRESENTABLE and the text, or, in a key, the connector stops.
var ErrUnrepresentable = errors.New("the Avro type cannot hold this value")

// Type is what a column becomes: the name that the schema's pg_type property carries, the Avro
// type T, and the one function that encodes it, for stream, snapshot, reselect and trigger alike.
type Type struct {
	PGName string // as format_type prints it: "numeric(10,2)", "integer[]"; a domain's own name
	Avro   any    // a json.RawMessage: T as JSON, the same bytes for the same type every time
	Append AppendFunc
}

// Values of Options.DecimalMode, from decimal.handling.mode.
const (
	DecimalPrecise = "precise" // numeric(p,s) is decimal, numeric without typmod is its text
	DecimalString  = "string"  // every numeric is its text
	DecimalDouble  = "double"  // every numeric is a double: lossy, as asked for
)

// Options are the settings that change what a type becomes.
type Options struct {
	DecimalMode string // DecimalPrecise when empty
	MoneyDigits int    // fractional digits of the database's currency: catalog.MoneyDigits
}

// maxNesting bounds domain over domain over array over ...: PostgreSQL cannot make a cycle, a
// wrong TypeSource could.
const maxNesting = 64

// Resolve gives the type of a column. It never fails: a type that nothing is known of is text.
// types may be nil; the built-in types do not need it.
func Resolve(col Column, types TypeSource, o Options) Type {
	r := resolver{types: types, options: o}
	return r.resolve(col.TypeOID, col.TypeMod, 0)
}

// TextType is the Type of a column that is carried as PostgreSQL's text whatever its type:
// key.text.columns asks for it.
func TextType(col Column, types TypeSource) Type {
	r := resolver{types: types}
	return textType(r.resolve(col.TypeOID, col.TypeMod, 0).PGName)
}

type resolver struct {
	types   TypeSource
	options Options
}

func (r resolver) resolve(oid uint32, typmod int32, depth int) Type {
	if b, ok := builtins[oid]; ok {
		return r.builtin(oid, b.name, typmod)
	}
	if elem, ok := builtinElements[oid]; ok {
		return arrayType(r.builtin(elem, builtins[elem].name, typmod), builtins[elem].delimiter())
	}
	if r.types == nil || depth == maxNesting {
		return textType(unknownName)
	}
	info, ok := r.types.Type(oid)
	switch {
	case !ok:
		return textType(unknownName)
	case info.Kind == 'd' && info.Base != 0:
		return domainType(info, r.resolve(info.Base, info.BaseMod, depth+1))
	case info.Elem != 0:
		return arrayType(r.resolve(info.Elem, typmod, depth+1), info.Delim)
	}
	return extensionType(info, typmod)
}

// builtin is the type of a row of pg_type that every PostgreSQL has under the same OID.
func (r resolver) builtin(oid uint32, name string, typmod int32) Type {
	name = withTypmod(oid, name, typmod)
	switch oid {
	case oidBool:
		return booleanType(name)
	case oidInt2:
		return integerType(name, 16)
	case oidInt4:
		return integerType(name, 32)
	case oidInt8:
		return integerType(name, 64)
	case oidOID, oidXID:
		return unsignedType(name)
	case oidFloat4:
		return realType(name)
	case oidFloat8:
		return doubleType(name)
	case oidNumeric:
		return numericType(name, typmod, r.options.DecimalMode)
	case oidMoney:
		return moneyType(name, r.options.MoneyDigits)
	case oidUUID:
		return uuidType(name)
	case oidBytea:
		return byteaType(name)
	case oidDate:
		return dateType(name)
	case oidTime:
		return timeType(name)
	case oidTimestamp:
		return timestampType(name)
	case oidTimestampTZ:
		return timestamptzType(name)
	case oidInterval:
		return intervalType(name)
	}
	return textType(name)
}

// extensionType is the type of a row of pg_type that an extension or a user made. Extensions are
// known by the type's name, since OIDs differ from database to database and the schema is the
// choice of whoever ran CREATE EXTENSION. Only base types count: a table may be called "vector".
func extensionType(info TypeInfo, typmod int32) Type {
	name := qualifiedName(info)
	if info.Kind != 'b' {
		return textType(name)
	}
	switch info.Name {
	case "hstore":
		return hstoreType(name)
	case "vector", "halfvec":
		return vectorType(name, typmod)
	case "geometry", "geography":
		return geometryType(name)
	}
	return textType(name)
}

// rawType is a Type of an Avro type that is written as JSON.
func rawType(pgName, avro string, appendTo AppendFunc) Type {
	return Type{PGName: pgName, Avro: json.RawMessage(avro), Append: appendTo}
}
