package preflight

import (
	"context"
	"fmt"
	"strings"

	"github.com/tidemark-cdc/tidemark/internal/pgdial"
	schemacatalog "github.com/tidemark-cdc/tidemark/schema/catalog"
)

// checkCatalog reads relations and publication, and decides which tables are captured.
func checkCatalog(ctx context.Context, p *probe, o *outcome) error {
	err := p.readCatalog(ctx)
	if err != nil {
		p.away[needCatalog] = "the catalog could not be read"
		return err
	}
	o.ok("%s in database %s", plural(len(p.relations), "relation"), p.server.Database)
	return nil
}

func (p *probe) readCatalog(ctx context.Context) (err error) {
	if p.publication, err = loadPublication(ctx, p.conn, p.cfg.Publication); err != nil {
		return err
	}
	if p.relations, err = loadRelations(ctx, p.conn); err != nil {
		return err
	}
	var detailed []*relation
	for _, r := range p.relations {
		if !p.captures(r) {
			continue
		}
		p.tables = append(p.tables, r)
		detailed = append(append(detailed, r), r.leaves...)
	}
	return loadDetails(ctx, p.conn, detailed)
}

// captures reports whether events come under the relation's name and a rule captures it: roots and
// tables outside of partition trees where the publication publishes by root, else leaves and those.
func (p *probe) captures(r *relation) bool {
	announced := r.Kind == 'r'
	if p.viaRoot() {
		announced = r.isTable() && !r.Partition
	}
	return announced && r.Persistence == 'p' && p.cfg.Tables.Captured(r.Schema, r.Name)
}

func checkTables(_ context.Context, p *probe, o *outcome) error {
	if len(p.tables) > 0 {
		o.ok("%s: %s", plural(len(p.tables), "table"), list(sortedNames(p.tables)))
		return nil
	}
	severity := Error
	if p.cfg.Tables.CouldMatchLater() {
		severity = Warning
	}
	o.failAs(severity, "", "no table of database "+p.server.Database+" is captured",
		"at least one", "correct table.include.list and its siblings")
	return nil
}

func checkIncludeEntries(_ context.Context, p *probe, o *outcome) error {
	var names [][2]string
	for _, r := range p.relations {
		if r.isTable() {
			names = append(names, [2]string{r.Schema, r.Name})
		}
	}
	for _, entry := range p.cfg.Tables.Unmatched(names) {
		o.fail(entry, "matches no table", "a table of database "+p.server.Database,
			"correct the entry or take it out of the include list")
	}
	o.ok("every entry matches a table")
	return nil
}

func checkColumns(ctx context.Context, p *probe, o *outcome) error {
	if p.columns == nil || p.cfg.Columns.IsZero() {
		o.ok("every column is sent as it is")
		return nil
	}
	publication := ""
	if p.publication != nil {
		publication = p.cfg.Publication
	}
	faults, unmatched, err := p.columns(ctx, schemacatalog.New(p.conn), p.cfg, publication, p.viaRoot())
	if err != nil {
		return err
	}
	for _, err := range faults {
		found, wanted, fix := describe(err)
		o.fail("", found, wanted, fix)
	}
	for _, entry := range unmatched {
		o.failAs(Warning, entry[1], "matches no column, in "+entry[0], "a column of a captured table",
			"correct the entry or take it out of the list")
	}
	o.ok("every entry matches a column, and no key is harmed")
	return nil
}

// kinds are the words for what is no ordinary table.
var kinds = map[byte]string{
	'v': "a view", 'm': "a materialized view", 'f': "a foreign table", 'S': "a sequence",
}

func checkNotCarried(_ context.Context, p *probe, o *outcome) error {
	named := len(p.cfg.Tables.TableInclude) > 0
	for _, r := range p.relations {
		if r.Kind == 'S' || !p.cfg.Tables.Captured(r.Schema, r.Name) {
			continue
		}
		switch {
		case r.isTable() && r.Persistence == 'u':
			o.fail(r.name(), "UNLOGGED: its changes are not in the log, so it is not captured",
				"an ordinary table", "ALTER TABLE "+r.Quoted+" SET LOGGED;")
		case !r.isTable() && named && r.root == nil:
			o.fail(r.name(), kinds[r.Kind]+": logical replication does not carry it",
				"an ordinary table", "capture the tables that it is made of, or take it out of "+
					"table.include.list")
		case r.Kind == 'f' && r.root != nil:
			o.fail(r.name(), "a foreign partition: its rows are not in this server's log",
				"ordinary partitions", "ALTER TABLE "+r.root.Quoted+" DETACH PARTITION "+r.Quoted+";")
		}
	}
	o.ok("nothing that logical replication cannot carry is named")
	return nil
}

func checkSequences(_ context.Context, p *probe, o *outcome) error {
	schemas := map[string]int{}
	for _, r := range p.tables {
		schemas[r.Schema] += 0
	}
	n := 0
	for _, r := range p.relations {
		if _, captured := schemas[r.Schema]; captured && r.Kind == 'S' {
			n++
		}
	}
	if n > 0 {
		o.fail("", plural(n, "sequence")+" in captured schemas (serial and identity columns have "+
			"one): rows carry the numbers, but a sequence's own position is never sent", "", "")
	}
	o.ok("no sequence in captured schemas")
	return nil
}

// snapshots reports whether rows are read by SELECT.
func (p *probe) snapshots() bool {
	return p.cfg.SnapshotMode != "no_data" && p.cfg.SnapshotMode != "never"
}

func checkSelect(_ context.Context, p *probe, o *outcome) error {
	if !p.snapshots() {
		o.ok("snapshot.mode %s reads no rows", p.cfg.SnapshotMode)
		return nil
	}
	for _, r := range p.tables {
		if r.Usage && r.Select {
			continue
		}
		var found, sql []string
		if !r.Usage {
			found = append(found, "no USAGE on schema "+r.Schema)
			sql = append(sql, fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %s;",
				r.QuotedIn, p.server.Role))
		}
		if !r.Select {
			found = append(found, "no SELECT")
			sql = append(sql, fmt.Sprintf("GRANT SELECT ON %s TO %s;", r.Quoted, p.server.Role))
		}
		o.fail(r.name(), strings.Join(found, ", ")+" for "+p.server.Role,
			"USAGE and SELECT, for the snapshot", strings.Join(sql, " "))
	}
	o.ok("%s may read every captured table", p.server.Role)
	return nil
}

func checkRowSecurity(_ context.Context, p *probe, o *outcome) error {
	if !p.snapshots() {
		o.ok("snapshot.mode %s reads no rows", p.cfg.SnapshotMode)
		return nil
	}
	for _, r := range p.tables {
		if r.RLS {
			o.fail(r.name(), "row security policies apply to "+p.server.Role+
				": a snapshot would miss rows, so it is refused", "a role that no policy limits",
				"ALTER ROLE "+p.server.Role+" BYPASSRLS;")
		}
	}
	o.ok("no policy hides rows from %s", p.server.Role)
	return nil
}

func checkLargeObjects(ctx context.Context, p *probe, o *outcome) error {
	var exist bool
	err := p.conn.QueryRow(ctx,
		`SELECT EXISTS (SELECT FROM pg_largeobject_metadata)`).Scan(&exist)
	if err != nil {
		return pgdial.Wrap(err)
	}
	const oidType = 26 // pg_type.dat
	for _, r := range p.tables {
		var columns []string
		for _, c := range r.Columns {
			if c.TypeName == "lo" || c.TypeOID == oidType && exist {
				columns = append(columns, c.Name)
			}
		}
		if len(columns) > 0 {
			o.fail(r.name(), "columns "+list(columns)+" can name large objects: events carry the "+
				"number, and never the object's contents", "bytea or text columns", "")
		}
	}
	o.ok("no column names a large object")
	return nil
}

func checkGenerated(_ context.Context, p *probe, o *outcome) error {
	for _, r := range p.tables {
		var columns []string
		for _, c := range r.Columns {
			if c.Generated {
				columns = append(columns, c.Name)
			}
		}
		if len(columns) > 0 {
			o.fail(r.name(), "generated columns "+list(columns)+" are not in the events", "", "")
		}
	}
	o.ok("none")
	return nil
}
