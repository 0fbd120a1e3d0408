package schema

import (
	"strconv"
	"strings"
)

// unknownName is the name of a type that the catalog no longer has.
const unknownName = "unknown"

// withTypmod is a built-in type's name as format_type(oid, typmod) prints it, typmod -1 being
// none (src/backend/utils/adt/format_type.c and the types' typmodout functions).
func withTypmod(oid uint32, name string, typmod int32) string {
	if typmod < 0 {
		switch oid {
		case oidBPChar:
			return "bpchar" // "character" would mean character(1)
		case oidBit:
			return `"bit"` // bit would mean bit(1)
		}
		return name
	}
	mod := ""
	switch oid {
	case oidBPChar, oidVarchar:
		mod = parenthesised(typmod - lengthHeader)
	case oidBit, oidVarbit:
		mod = parenthesised(typmod)
	case oidNumeric:
		precision, scale := numericTypmod(typmod)
		mod = "(" + strconv.Itoa(precision) + "," + strconv.Itoa(scale) + ")"
	case oidTime, oidTimeTZ, oidTimestamp, oidTimestampTZ:
		first, rest, _ := strings.Cut(name, " ")
		return first + parenthesised(typmod) + " " + rest
	case oidInterval:
		mod = intervalTypmod(typmod)
	}
	return name + mod
}

// lengthHeader is VARHDRSZ, which the typmods of character types and numeric have on top.
const lengthHeader = 4

func parenthesised(n int32) string { return "(" + strconv.Itoa(int(n)) + ")" }

// qualifiedName is the name of a type that is not built in: with its schema unless that is
// pg_catalog or public, each part quoted where SQL needs it.
func qualifiedName(info TypeInfo) string {
	if info.Schema == "" || info.Schema == "pg_catalog" || info.Schema == "public" {
		return quoted(info.Name)
	}
	return quoted(info.Schema) + "." + quoted(info.Name)
}

// quoted is an identifier as quote_ident prints it, keywords aside: the result is for people and
// has only to be unambiguous.
func quoted(name string) string {
	plain := name != ""
	for i := range len(name) {
		c := name[i]
		switch {
		case c >= 'a' && c <= 'z', c == '_', i > 0 && c >= '0' && c <= '9':
		default:
			plain = false
		}
	}
	if plain {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}
