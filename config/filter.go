package config

import (
	"regexp"
	"slices"
	"strings"
)

// Filter decides which tables are captured. The expressions are those of schema.include.list and
// its siblings over "schema" and "schema.table": they match whole names without regard to case, as
// Debezium's. An empty include list includes everything.
type Filter struct {
	SchemaInclude, SchemaExclude []*regexp.Regexp
	TableInclude, TableExclude   []*regexp.Regexp
}

// Captured reports whether a table is captured. The server's schemas, tidemark's own one and
// PostGIS's reference table never are.
func (f *Filter) Captured(schema, table string) bool {
	if isSystem(schema) || table == "spatial_ref_sys" {
		return false
	}
	name := schema + "." + table
	switch {
	case len(f.SchemaInclude) > 0 && !matchesAny(f.SchemaInclude, schema):
		return false
	case matchesAny(f.SchemaExclude, schema):
		return false
	case len(f.TableInclude) > 0 && !matchesAny(f.TableInclude, name):
		return false
	default:
		return !matchesAny(f.TableExclude, name)
	}
}

// isSystem reports whether a schema is one whose tables are never captured.
func isSystem(schema string) bool {
	switch schema {
	case "pg_catalog", "information_schema", "pg_toast", "tidemark":
		return true
	default:
		return strings.HasPrefix(schema, "pg_temp") || strings.HasPrefix(schema, "pg_toast_temp")
	}
}

func matchesAny(list []*regexp.Regexp, name string) bool {
	return slices.ContainsFunc(list, func(re *regexp.Regexp) bool { return re.MatchString(name) })
}

// Literal returns the entries of table.include.list that are plain names, as {schema, table}.
// They are what somebody surely meant to exist.
func (f *Filter) Literal() [][2]string {
	var names [][2]string
	for _, re := range f.TableInclude {
		if parts, ok := plainParts(sourceOf(re)); ok && len(parts) == 2 {
			names = append(names, [2]string{parts[0], parts[1]})
		}
	}
	return names
}

// CouldMatchLater reports whether a table that is made later could be captured without a change of
// the configuration: true unless table.include.list holds nothing but plain names.
func (f *Filter) CouldMatchLater() bool {
	return len(f.TableInclude) == 0 || len(f.Literal()) < len(f.TableInclude)
}

// Unmatched returns the entries of schema.include.list and table.include.list, as written, that
// match none of the tables, each {schema, table}.
func (f *Filter) Unmatched(tables [][2]string) []string {
	var unmatched []string
	for _, re := range f.SchemaInclude {
		if !slices.ContainsFunc(tables, func(t [2]string) bool { return re.MatchString(t[0]) }) {
			unmatched = append(unmatched, sourceOf(re))
		}
	}
	for _, re := range f.TableInclude {
		if !slices.ContainsFunc(tables, func(t [2]string) bool {
			return re.MatchString(t[0] + "." + t[1])
		}) {
			unmatched = append(unmatched, sourceOf(re))
		}
	}
	return unmatched
}
