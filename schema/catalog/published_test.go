package catalog_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pglogrepl"

	"github.com/tidemark-cdc/tidemark/schema"
	"github.com/tidemark-cdc/tidemark/schema/catalog"
)

// tables are one of each kind that a Relation message depends on.
var tables = []string{
	"SET search_path = public",
	"CREATE DOMAIN amt AS numeric(8,3)",
	`CREATE TABLE plain (b int, gone int, a int, v varchar(20), m amt[],
		g int GENERATED ALWAYS AS (a + 1) STORED, PRIMARY KEY (a, b) INCLUDE (v))`,
	"ALTER TABLE plain DROP COLUMN gone",
	`CREATE TABLE "Full é" (id int PRIMARY KEY, "V" text)`,
	`ALTER TABLE "Full é" REPLICA IDENTITY FULL`,
	"CREATE TABLE indexed (id int PRIMARY KEY, u int NOT NULL UNIQUE, v text)",
	"ALTER TABLE indexed REPLICA IDENTITY USING INDEX indexed_u_key",
	"CREATE TABLE keyless (v text)",
	"CREATE TABLE empty ()",
	"CREATE TABLE late (id int PRIMARY KEY DEFERRABLE, v text)",
	"CREATE TABLE root (id int, v text, PRIMARY KEY (id)) PARTITION BY RANGE (id)",
	"CREATE TABLE leaf (v text, id int NOT NULL)",
	"ALTER TABLE root ATTACH PARTITION leaf FOR VALUES FROM (0) TO (100)",
	"CREATE TABLE outside (id int PRIMARY KEY)",
}

// writes make the stream announce each of them.
var writes = []string{
	"INSERT INTO plain VALUES (1, 2, 'v', NULL)",
	`INSERT INTO "Full é" VALUES (1, 'v')`,
	"INSERT INTO indexed VALUES (1, 1, 'v')",
	"INSERT INTO keyless VALUES ('v')",
	"INSERT INTO empty DEFAULT VALUES",
	"INSERT INTO late VALUES (1, 'v')",
	"INSERT INTO root VALUES (1, 'v')",
	"INSERT INTO outside VALUES (1)",
}

// announced are the Relation messages that a publication's stream really has for the writes, by
// OID.
func (d *database) announced(publication string) map[uint32]*schema.Relation {
	d.t.Helper()
	d.run("SELECT pg_create_logical_replication_slot('s', 'pgoutput')")
	d.run(writes...)
	rows, err := d.Query(d.ctx, `SELECT data FROM pg_logical_slot_get_binary_changes('s', NULL, NULL,
		'proto_version', '1', 'publication_names', $1)`, publication)
	if err != nil {
		d.t.Fatal(err)
	}
	relations := map[uint32]*schema.Relation{}
	for rows.Next() {
		var data []byte
		if err := rows.Scan(&data); err != nil {
			d.t.Fatal(err)
		}
		if pglogrepl.MessageType(data[0]) != pglogrepl.MessageTypeRelation {
			continue
		}
		message, err := pglogrepl.Parse(data)
		if err != nil {
			d.t.Fatal(err)
		}
		m := message.(*pglogrepl.RelationMessage)
		rel := &schema.Relation{
			OID: m.RelationID, Namespace: m.Namespace, Name: m.RelationName,
			Identity: schema.Identity(m.ReplicaIdentity), Columns: []schema.Column{},
		}
		for _, c := range m.Columns {
			rel.Columns = append(rel.Columns, schema.Column{
				Name: c.Name, TypeOID: c.DataType, TypeMod: c.TypeModifier, Key: c.Flags&1 != 0,
			})
		}
		relations[rel.OID] = rel
	}
	if err := rows.Err(); err != nil {
		d.t.Fatal(err)
	}
	d.run("SELECT pg_drop_replication_slot('s')")
	return relations
}

func TestPublishedIsWhatTheStreamAnnounces(t *testing.T) {
	const all = `plain, "Full é", indexed, keyless, empty, late, root`
	onVersions(t, func(t *testing.T, version string, db *database) {
		publications := map[string]string{
			"leaves": "FOR TABLE " + all,
			"roots":  "FOR TABLE " + all + " WITH (publish_via_partition_root)",
			"Every":  "FOR ALL TABLES WITH (publish_via_partition_root)",
		}
		if version != "14" {
			publications["listed"] = `FOR TABLE plain (b, a, m), root (id)
				WITH (publish_via_partition_root, publish = 'insert')`
			publications["schemas"] = "FOR TABLES IN SCHEMA public"
		}
		if version == "18" {
			publications["generated"] = "FOR TABLE " + all + " WITH (publish_generated_columns = stored)"
			publications["generated listed"] = "FOR TABLE plain (a, b, g)"
		}
		db.run(tables...)
		for name, what := range publications {
			db.run(fmt.Sprintf(`CREATE PUBLICATION "%s" %s`, name, what))
			streamed := db.announced(`"` + name + `"`)
			published, err := catalog.New(db.Conn).Published(db.ctx, name)
			if err != nil {
				t.Fatal(err)
			}
			if len(published) == 0 {
				t.Errorf("%s: there is nothing in it", name)
			}
			for _, p := range published {
				if diff := cmp.Diff(streamed[p.Relation.OID], p.Relation); diff != "" {
					t.Errorf("%s: %s: -stream +catalog\n%s", name, p.Relation.Name, diff)
				}
				delete(streamed, p.Relation.OID)
			}
			for _, left := range streamed { // under root publishing leaves are announced as well
				if left.Name != "leaf" {
					t.Errorf("%s: the stream has %s, the catalog has not", name, left.Name)
				}
			}
			db.run(fmt.Sprintf(`DROP PUBLICATION "%s"`, name),
				`TRUNCATE plain, "Full é", indexed, late, root, outside`)
		}
	})
}

func TestRelationOfOneTable(t *testing.T) {
	onVersions(t, func(t *testing.T, version string, db *database) {
		db.run(tables...)
		db.run("CREATE PUBLICATION roots FOR TABLE plain, root WITH (publish_via_partition_root)",
			"CREATE PUBLICATION leaves FOR TABLE root")
		c := catalog.New(db.Conn)
		for _, q := range []struct {
			table, publication string
			found              bool
		}{
			{"root", "roots", true},
			{"leaf", "roots", false},
			{"root", "leaves", false},
			{"leaf", "leaves", true},
			{"plain", "leaves", false},
			{"plain", "Roots", false},
			{"plain", "", true},
			{"root", "", true},
			{"leaf", "", true},
		} {
			p, err := c.RelationOf(db.ctx, db.oid(q.table), q.publication)
			if q.found && (err != nil || p.Relation.Name != q.table) ||
				!q.found && !errors.Is(err, catalog.ErrNoRelation) {
				t.Errorf("%s in %q: %v, %v", q.table, q.publication, p.Relation, err)
			}
		}
		root, err := c.RootOf(db.ctx, db.oid("leaf"))
		if err != nil || root != db.oid("root") {
			t.Errorf("the root of leaf is %d, %v", root, err)
		}
		root, err = c.RootOf(db.ctx, db.oid("plain"))
		if err != nil || root != db.oid("plain") {
			t.Errorf("the root of plain is %d, %v", root, err)
		}
		if _, err := c.RootOf(db.ctx, 1); !errors.Is(err, catalog.ErrNoRelation) {
			t.Errorf("the root of nothing: %v", err)
		}
		if version == "14" {
			return
		}
		db.run(`CREATE PUBLICATION filtered FOR TABLE plain WHERE (a > 5 AND v = 'x')`)
		p, err := c.RelationOf(db.ctx, db.oid("plain"), "filtered")
		const filter = "((a > 5) AND ((v)::text = 'x'::text))"
		if err != nil || p.RowFilter != filter {
			t.Errorf("the filter is %q, %v; want %q", p.RowFilter, err, filter)
		}
	})
}
