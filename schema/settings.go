package schema

// Setting is a configuration parameter of a PostgreSQL session.
type Setting struct{ Name, Value string }

// PinnedSettings are what a type's text output depends on. Every session whose values are
// encoded asks for them when it connects (parameters of the startup packet win over ALTER
// DATABASE and ALTER ROLE): stream, snapshot, reselect and trigger functions give the same text
// only if all of them do. The AppendFuncs take no other text.
//
// The list is complete for the types that PostgreSQL itself has; each entry says what it is for.
func PinnedSettings() []Setting {
	return []Setting{
		{"client_encoding", "UTF8"},      // everything; SQL_ASCII where the database is (pgdial)
		{"DateStyle", "ISO"},             // date, timestamp, timestamptz, and what contains them
		{"IntervalStyle", "iso_8601"},    // interval
		{"TimeZone", "UTC"},              // timestamptz: one offset, no LMT before 1900
		{"bytea_output", "hex"},          // bytea
		{"extra_float_digits", "3"},      // real, double, geometric: exact; 3 is exact before 12 too
		{"lc_monetary", "C"},             // money
		{"search_path", "pg_catalog"},    // regclass, regtype, ...: always with the schema
		{"quote_all_identifiers", "off"}, // the same: quoted only where SQL needs it
	}
}
