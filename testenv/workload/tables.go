package workload

import (
	"fmt"
	"strings"

	"github.com/tidemark-cdc/tidemark/testenv/check"
)

// Schema is where the captured tables are; AuditTable has every committed change of them.
const (
	Schema     = "w"
	AuditTable = "tm.audit"
	// NoteColumn is the column of every table that a marker's text is in.
	NoteColumn = "note"
)

// table is a captured table and how statements name its rows.
type table struct {
	check.Table
	ddl string
	// key is a row's condition, and insert the values of its key columns, for the row of a number.
	key    func(n int64) string
	insert func(n int64) string
	// keyBody are the Kafka key's fields.
	keyBody func(n int64) []any
	weight  int
	// perWriter: no constraint keeps two writers from inserting the same row, so each has its own.
	perWriter bool
	toasted   bool
}

func byID(n int64) string     { return fmt.Sprintf("id = %d", n) }
func idValue(n int64) string  { return fmt.Sprint(n) }
func idField(n int64) []any   { return []any{n} }
func codeOf(n int64) string   { return fmt.Sprintf("code-%d", n) }
func regionOf(n int64) string { return fmt.Sprintf("region %d", n%7) }

// buckets are the leaves of the partitioned table.
const buckets = 3

// common are the columns of every table behind its key: values of many types.
const common = `v bigint NOT NULL DEFAULT 0, note text, qty int NOT NULL DEFAULT 1,
	price numeric(12,2), paid boolean, placed timestamptz, day date, tags int[], free numeric,
	doc jsonb, raw bytea, uid uuid`

func tables() []*table {
	keyed := func(name string, weight int, ddl string) *table {
		return &table{
			Table: check.Table{
				Schema: Schema, Name: name, Identity: check.IdentityKey, Key: []string{"id"},
				NotNull: []string{"id", "v", "qty"}, Version: "v",
			},
			ddl: ddl, key: byID, insert: idValue, keyBody: idField, weight: weight,
		}
	}
	orders := keyed("orders", 6, "CREATE TABLE w.orders (id bigint PRIMARY KEY, "+common+")")
	byIndex := keyed("by_index", 3, "CREATE TABLE w.by_index (code text NOT NULL, "+common+`);
		CREATE UNIQUE INDEX by_index_code ON w.by_index (code);
		ALTER TABLE w.by_index REPLICA IDENTITY USING INDEX by_index_code`)
	byIndex.Key, byIndex.NotNull = []string{"code"}, []string{"code", "v", "qty"}
	byIndex.key = func(n int64) string { return "code = '" + codeOf(n) + "'" }
	byIndex.insert = func(n int64) string { return "'" + codeOf(n) + "'" }
	byIndex.keyBody = func(n int64) []any { return []any{codeOf(n)} }

	full := keyed("full_pk", 4, "CREATE TABLE w.full_pk (id bigint PRIMARY KEY, "+common+
		", body text STORAGE EXTERNAL); ALTER TABLE w.full_pk REPLICA IDENTITY FULL")
	full.Identity, full.toasted = check.IdentityFull, true

	bare := keyed("full_bare", 2, "CREATE TABLE w.full_bare (id bigint NOT NULL, "+common+
		"); CREATE INDEX ON w.full_bare (id); ALTER TABLE w.full_bare REPLICA IDENTITY FULL")
	bare.Identity, bare.Keyless, bare.perWriter = check.IdentityFull, true, true

	composite := keyed("composite", 3, "CREATE TABLE w.composite (region text, num bigint, "+common+
		", PRIMARY KEY (region, num))")
	composite.Key, composite.NotNull = []string{"region", "num"}, []string{"region", "num", "v", "qty"}
	composite.key = func(n int64) string {
		return fmt.Sprintf("region = '%s' AND num = %d", regionOf(n), n)
	}
	composite.insert = func(n int64) string { return fmt.Sprintf("'%s', %d", regionOf(n), n) }
	composite.keyBody = func(n int64) []any { return []any{regionOf(n), n} }

	parted := keyed("parted", 3, partedDDL())
	parted.Key, parted.NotNull = []string{"bucket", "id"}, []string{"bucket", "id", "v", "qty"}
	parted.key = func(n int64) string { return fmt.Sprintf("bucket = %d AND id = %d", n%buckets, n) }
	parted.insert = func(n int64) string { return fmt.Sprintf("%d, %d", n%buckets, n) }
	parted.keyBody = func(n int64) []any { return []any{n % buckets, n} }

	toasted := keyed("toasted", 2, "CREATE TABLE w.toasted (id bigint PRIMARY KEY, "+common+
		", body text STORAGE EXTERNAL)")
	toasted.toasted = true
	evolving := keyed("evolving", 2, "CREATE TABLE w.evolving (id bigint PRIMARY KEY, "+common+")")
	truncated := keyed("truncated", 1, "CREATE TABLE w.truncated (id bigint PRIMARY KEY, "+common+")")
	copied := keyed("copied", 0, "CREATE TABLE w.copied (id bigint PRIMARY KEY, "+common+")")
	return []*table{
		orders, byIndex, full, bare, composite, parted, toasted, evolving, truncated, copied,
	}
}

func partedDDL() string {
	var b strings.Builder
	b.WriteString("CREATE TABLE w.parted (bucket int, id bigint, " + common +
		", PRIMARY KEY (bucket, id)) PARTITION BY LIST (bucket)")
	for n := range buckets {
		fmt.Fprintf(&b, "; CREATE TABLE w.parted_%d PARTITION OF w.parted FOR VALUES IN (%d)", n, n)
	}
	return b.String()
}

// support are the tables that nobody captures.
const support = `
CREATE SCHEMA w;
CREATE SCHEMA tm;
CREATE TABLE tm.audit (seq bigserial PRIMARY KEY, op "char" NOT NULL, rel text NOT NULL,
	key text NOT NULL, v bigint NOT NULL);
CREATE TABLE tm.versions (rel text, key text, v bigint NOT NULL, PRIMARY KEY (rel, key));
CREATE TABLE tm.noise (id bigserial PRIMARY KEY, text text);
CREATE FUNCTION tm.bump(r text, k text, o "char") RETURNS bigint LANGUAGE sql AS $$
	WITH n AS (INSERT INTO tm.versions VALUES (r, k, 1)
		ON CONFLICT (rel, key) DO UPDATE SET v = versions.v + 1 RETURNING v)
	INSERT INTO tm.audit (op, rel, key, v) SELECT o, r, k, n.v FROM n RETURNING v $$;
CREATE FUNCTION tm.truncate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO tm.audit (op, rel, key, v) VALUES ('t', TG_ARGV[0], '', 0); RETURN NULL; END $$;
`

// triggers are a table's: one before each row that counts and writes down, one for TRUNCATE.
// Table copied has its counter from the client and is written down behind each row, since a trigger
// before the row keeps COPY from writing many rows as one WAL record.
func (t *table) triggers() string {
	key := func(row string) string {
		parts := make([]string, len(t.Key))
		for i, c := range t.Key {
			parts[i] = row + "." + c
		}
		return strings.Join(parts, "||'|'||") + "::text"
	}
	if len(t.Key) == 1 {
		key = func(row string) string { return row + "." + t.Key[0] + "::text" }
	}
	if t.Name == "copied" {
		return `
CREATE FUNCTION tm.copied() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO tm.audit (op, rel, key, v) VALUES ('c', 'w.copied', NEW.id::text, NEW.v);
	RETURN NULL; END $$;
CREATE TRIGGER audit AFTER INSERT ON w.copied FOR EACH ROW EXECUTE FUNCTION tm.copied()`
	}
	return fmt.Sprintf(`
CREATE FUNCTION tm.%[1]s() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	IF TG_OP = 'DELETE' THEN
		PERFORM tm.bump('%[2]s', %[3]s, 'd');
		RETURN OLD;
	ELSIF TG_OP = 'INSERT' THEN
		NEW.v := tm.bump('%[2]s', %[4]s, 'c');
	ELSIF %[3]s <> %[4]s THEN
		PERFORM tm.bump('%[2]s', %[3]s, 'd');
		NEW.v := tm.bump('%[2]s', %[4]s, 'c');
	ELSE
		NEW.v := tm.bump('%[2]s', %[4]s, 'u');
	END IF;
	RETURN NEW; END $$;
CREATE TRIGGER audit BEFORE INSERT OR UPDATE OR DELETE ON %[2]s
	FOR EACH ROW EXECUTE FUNCTION tm.%[1]s();
CREATE TRIGGER truncated AFTER TRUNCATE ON %[2]s
	FOR EACH STATEMENT EXECUTE FUNCTION tm.truncate('%[2]s')`,
		t.Name, t.ID(), key("OLD"), key("NEW"))
}
