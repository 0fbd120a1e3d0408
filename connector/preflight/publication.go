package preflight

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/tidemark-cdc/tidemark/internal/pgdial"
)

// publicationFacts is a publication and what it holds.
type publicationFacts struct {
	AllTables bool
	ViaRoot   bool
	Insert    bool
	Update    bool
	Delete    bool
	Truncate  bool
	Owned     bool
	Tables    map[[2]string]publishedTable // by schema and name, as their rows will name them
}

// publishedTable is a row of pg_publication_tables.
type publishedTable struct {
	Columns []string // nil before 15: every column
	Filter  *string
}

const publicationSQL = `
SELECT puballtables, pubviaroot, pubinsert, pubupdate, pubdelete, pubtruncate,
       pg_has_role(pubowner, 'USAGE')
FROM pg_publication WHERE pubname = $1`

const publishedSQL = `
SELECT t.schemaname::text, t.tablename::text,
       CASE WHEN to_jsonb(t) ? 'attnames'
            THEN ARRAY(SELECT jsonb_array_elements_text(to_jsonb(t)->'attnames')) END,
       to_jsonb(t)->>'rowfilter'
FROM pg_publication_tables t WHERE t.pubname = $1`

// loadPublication returns nil when there is none of the name.
func loadPublication(ctx context.Context, conn *pgx.Conn, name string) (*publicationFacts, error) {
	f := publicationFacts{Tables: map[[2]string]publishedTable{}}
	err := conn.QueryRow(ctx, publicationSQL, name).Scan(
		&f.AllTables, &f.ViaRoot, &f.Insert, &f.Update, &f.Delete, &f.Truncate, &f.Owned)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, pgdial.Wrap(err)
	}
	rows, err := conn.Query(ctx, publishedSQL, name)
	if err != nil {
		return nil, pgdial.Wrap(err)
	}
	var key [2]string
	var t publishedTable
	_, err = pgx.ForEachRow(rows, []any{&key[0], &key[1], &t.Columns, &t.Filter}, func() error {
		f.Tables[key] = t
		t = publishedTable{}
		return nil
	})
	return &f, pgdial.Wrap(err)
}

// viaRoot reports whether rows of partitions will come under their root's name.
func (p *probe) viaRoot() bool {
	if p.publication != nil {
		return p.publication.ViaRoot
	}
	return p.cfg.PublishViaRoot
}

// autocreate reports whether the connector makes a publication that is missing.
func (p *probe) autocreate() bool { return p.cfg.PublicationAutocreate != "disabled" }

// createSQL is the statement that makes the publication.
func (p *probe) createSQL() string {
	target := ""
	switch {
	case p.cfg.PublicationAutocreate == "all_tables":
		target = " FOR ALL TABLES"
	case len(p.tables) > 0 && p.cfg.PublicationAutocreate != "no_tables":
		target = " FOR TABLE " + strings.Join(quotedNames(p.tables), ", ")
	}
	return fmt.Sprintf("CREATE PUBLICATION %s%s WITH (publish_via_partition_root = %t);%s",
		p.server.Publication, target, p.cfg.PublishViaRoot, mendFirst(p.tables))
}

// mendFirst is a comment for statements that publish tables: from then on the server refuses UPDATE
// and DELETE on those without a usable identity.
func mendFirst(rels []*relation) string {
	for _, r := range rels {
		for _, h := range rowHolders(r) {
			if found, _ := identityProblem(h); found != "" {
				return " -- not before replica_identity is mended"
			}
		}
	}
	return ""
}

func quotedNames(rels []*relation) []string {
	names := make([]string, len(rels))
	for i, r := range rels {
		names[i] = r.Quoted
	}
	return names
}

func checkPublication(_ context.Context, p *probe, o *outcome) error {
	object := "publication " + p.server.Publication
	switch {
	case p.publication != nil:
		o.ok("%s, %s", object, plural(len(p.publication.Tables), "table"))
	case !p.autocreate():
		o.fail(object, "none of this name in database "+p.server.Database, "a publication",
			p.createSQL())
	case p.server.Recovery:
		o.fail(object, "none of this name, and a standby cannot make it", "a publication",
			"on the primary: "+p.createSQL())
	default:
		o.ok("%s does not exist; the first start makes it", object)
	}
	return nil
}

// checkPublicationRight looks whether the role can make the publication, or extend it.
func checkPublicationRight(_ context.Context, p *probe, o *outcome) error {
	s := &p.server
	need := p.tables
	switch {
	case p.publication != nil:
		need = p.unpublished()
		if len(need) == 0 || !p.extends() {
			o.ok("nothing is to be made or changed")
			return nil
		}
		if !s.Superuser && !p.publication.Owned {
			o.fail("publication "+s.Publication, "not owned by "+s.Role,
				"its owner adds the tables that it lacks", p.addTablesSQL(need))
			return nil
		}
	case !p.autocreate() || s.Recovery:
		o.ok("the connector does not make it")
		return nil
	case p.cfg.PublicationAutocreate == "all_tables" && !s.Superuser:
		o.fail("role "+s.Role, "no superuser", "a superuser makes a publication FOR ALL TABLES",
			"as a superuser: "+p.createSQL())
		return nil
	case !s.CanCreate:
		o.fail("database "+s.Database, "no CREATE for "+s.Role, "CREATE, to make the publication",
			fmt.Sprintf("GRANT CREATE ON DATABASE %s TO %s; -- or as the tables' owner: %s",
				s.Database, s.Role, p.createSQL()))
		return nil
	}
	for _, r := range need {
		if !s.Superuser && !r.Owned {
			sql := p.createSQL()
			if p.publication != nil {
				sql = p.addTablesSQL(need)
			}
			o.fail(r.name(), "not owned by "+s.Role,
				"the owner of every table, to put it into the publication",
				"as the tables' owner or a superuser: "+sql)
			return nil // one statement mends all of them
		}
	}
	o.ok("%s may make or extend it", s.Role)
	return nil
}

func (p *probe) addTablesSQL(rels []*relation) string {
	return fmt.Sprintf("ALTER PUBLICATION %s ADD TABLE %s;%s", p.server.Publication,
		strings.Join(quotedNames(rels), ", "), mendFirst(rels))
}

// published reports whether the publication sends the table's rows under its name.
func (p *probe) published(r *relation) bool {
	_, ok := p.publication.Tables[[2]string{r.Schema, r.Name}]
	return ok
}

// extends reports whether a fresh start adds missing tables to the publication that exists.
func (p *probe) extends() bool {
	return p.cfg.PublicationAutocreate == "filtered" && !p.publication.AllTables
}

// unpublished returns the captured tables that an existing publication does not send.
func (p *probe) unpublished() []*relation {
	var missing []*relation
	for _, r := range p.tables {
		if !p.published(r) {
			missing = append(missing, r)
		}
	}
	return missing
}

func checkPublicationTables(_ context.Context, p *probe, o *outcome) error {
	if p.publication == nil {
		o.ok("the publication is made with the captured tables")
		return nil
	}
	missing := p.unpublished()
	switch {
	case len(missing) == 0:
		o.ok("every captured table is in it")
	case p.slot == nil && p.extends() && (p.server.Superuser || p.publication.Owned):
		o.ok("the first start adds %s", list(sortedNames(missing)))
	default:
		o.fail("publication "+p.server.Publication, "lacks "+list(sortedNames(missing))+
			": changes there do not reach the connector", "every captured table in it",
			p.addTablesSQL(missing))
	}
	return nil
}

func checkPublicationExtra(_ context.Context, p *probe, o *outcome) error {
	if p.publication == nil {
		o.ok("no publication yet")
		return nil
	}
	var extra []string
	for _, r := range p.relations {
		_, listed := p.publication.Tables[[2]string{r.Schema, r.Name}]
		if listed && r.isTable() && !p.cfg.Tables.Captured(r.Schema, r.Name) && !p.underRoot(r) {
			extra = append(extra, r.name())
		}
	}
	if len(extra) == 0 && !p.publication.AllTables {
		o.ok("nothing but captured tables")
		return nil
	}
	if p.publication.AllTables {
		o.fail("publication "+p.server.Publication,
			"FOR ALL TABLES: UPDATE and DELETE fail on every table without a replica identity",
			"the captured tables only", "before the first start: DROP PUBLICATION "+
				p.server.Publication+"; "+p.createSQL())
		return nil
	}
	o.fail("publication "+p.server.Publication, "holds "+list(extra)+
		", which no rule captures: the server sends rows that are dropped",
		"the captured tables only", fmt.Sprintf("ALTER PUBLICATION %s DROP TABLE %s;",
			p.server.Publication, strings.Join(p.quoteAll(extra), ", ")))
	return nil
}

// underRoot reports whether rows of the leaf come under the name of a captured root.
func (p *probe) underRoot(r *relation) bool {
	return p.viaRoot() && r.root != nil && p.cfg.Tables.Captured(r.root.Schema, r.root.Name)
}

func (p *probe) quoteAll(names []string) []string {
	quoted := map[string]string{}
	for _, r := range p.relations {
		quoted[r.name()] = r.Quoted
	}
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = quoted[n]
	}
	return out
}

func checkPublicationOperations(_ context.Context, p *probe, o *outcome) error {
	if p.publication == nil {
		o.ok("the publication is made with all operations")
		return nil
	}
	f := p.publication
	var present, missing, wanted []string
	for _, op := range []struct {
		name   string
		letter byte
		on     bool
	}{
		{"insert", 'c', f.Insert},
		{"update", 'u', f.Update},
		{"delete", 'd', f.Delete},
		{"truncate", 't', f.Truncate},
	} {
		skipped := p.cfg.SkippedOperations[op.letter]
		if op.on {
			present = append(present, op.name)
		}
		if op.on || !skipped {
			wanted = append(wanted, op.name)
		}
		if !op.on && !skipped {
			missing = append(missing, op.name)
		}
	}
	if len(missing) == 0 {
		o.ok("%s", strings.Join(present, ", "))
		return nil
	}
	o.fail("publication "+p.server.Publication, "without "+strings.Join(missing, ", ")+
		": such changes vanish", "every operation that skipped.operations does not name",
		fmt.Sprintf("ALTER PUBLICATION %s SET (publish = '%s');",
			p.server.Publication, strings.Join(wanted, ", ")))
	return nil
}

func checkPublicationRoot(_ context.Context, p *probe, o *outcome) error {
	f := p.publication
	switch {
	case f == nil || f.ViaRoot == p.cfg.PublishViaRoot:
		o.ok("publish_via_partition_root = %t", p.viaRoot())
	case !p.hasPartitions():
		o.ok("publish_via_partition_root = %t; no captured table is partitioned", f.ViaRoot)
	default:
		under := map[bool]string{true: "the root's name", false: "each partition's own name"}
		o.fail("publication "+p.server.Publication, fmt.Sprintf(
			"publish_via_partition_root = %t: rows come under %s", f.ViaRoot, under[f.ViaRoot]),
			fmt.Sprintf("%t, as publish.via.partition.root says", p.cfg.PublishViaRoot),
			fmt.Sprintf("set publish.via.partition.root: %t; or before the first start: "+
				"ALTER PUBLICATION %s SET (publish_via_partition_root = %t);",
				f.ViaRoot, p.server.Publication, p.cfg.PublishViaRoot))
	}
	return nil
}

func (p *probe) hasPartitions() bool {
	for _, r := range p.tables {
		if r.Kind == 'p' || r.Partition {
			return true
		}
	}
	return false
}

// checkPublicationFilters tells of rows and columns that the publication keeps back.
func checkPublicationFilters(_ context.Context, p *probe, o *outcome) error {
	if p.publication == nil {
		o.ok("none")
		return nil
	}
	for _, r := range p.tables {
		t, ok := p.publication.Tables[[2]string{r.Schema, r.Name}]
		if !ok {
			continue
		}
		if t.Filter != nil {
			o.fail(r.name(), "row filter "+*t.Filter+": other rows never arrive; an UPDATE into it "+
				"arrives as INSERT, one out of it as DELETE", "", "")
		}
		var left []string
		for _, c := range r.Columns {
			if t.Columns != nil && !c.Generated && !slices.Contains(t.Columns, c.Name) {
				left = append(left, c.Name)
			}
		}
		if len(left) > 0 {
			o.fail(r.name(), "column list without "+list(left)+": they never arrive", "", "")
		}
	}
	o.ok("none")
	return nil
}
