package preflight

import (
	"context"
	"slices"

	"github.com/tidemark-cdc/tidemark/schema"
)

// generatedProblem says of a table with REPLICA IDENTITY FULL whether a generated column of it is not
// published: from 18 on the server refuses UPDATE and DELETE then (42P10).
func generatedProblem(r *relation, f *publicationFacts) (found, fix string) {
	if r.Identity != schema.IdentityFull {
		return "", ""
	}
	var published []string
	if f != nil {
		published = f.Tables[[2]string{r.Schema, r.Name}].Columns
	}
	for _, c := range r.Columns {
		if c.Generated && !slices.Contains(published, c.Name) {
			return "REPLICA IDENTITY FULL with a generated column that is not published",
				"ALTER TABLE " + r.Quoted + " REPLICA IDENTITY DEFAULT; -- or a publication WITH " +
					"(publish_generated_columns = stored), for STORED columns"
		}
	}
	return "", ""
}

// identityProblem says why the server would refuse UPDATE and DELETE on the published table; ""
// when it would not. fix is the statement that mends it.
func identityProblem(r *relation) (found, fix string) {
	pk := r.primaryKey()
	switch {
	case r.Identity == schema.IdentityFull, r.identityIndex() != nil:
		return "", ""
	case r.Identity == schema.IdentityNothing:
		found = "REPLICA IDENTITY NOTHING"
	case r.Identity == schema.IdentityIndex:
		found = "the index of its REPLICA IDENTITY is gone or cannot serve"
	case pk == nil:
		found = "REPLICA IDENTITY DEFAULT without a primary key"
	case !pk.Immediate:
		found = "REPLICA IDENTITY DEFAULT with a deferrable primary key"
	default:
		found = "REPLICA IDENTITY DEFAULT with a primary key that is not valid"
	}
	alter := "ALTER TABLE " + r.Quoted + " REPLICA IDENTITY "
	if pk != nil && pk.usable() {
		return found, alter + "DEFAULT;"
	}
	for i := range r.Indexes {
		if r.Indexes[i].usable() {
			return found, alter + "USING INDEX " + r.Indexes[i].Quoted + ";"
		}
	}
	return found, alter + "FULL; -- or give it a primary key"
}

// rowHolders returns the relations whose rows come under the table's name: itself, or its leaves.
func rowHolders(r *relation) []*relation {
	if r.Kind == 'p' {
		return r.leaves
	}
	return []*relation{r}
}

func checkIdentity(_ context.Context, p *probe, o *outcome) error {
	f := p.publication
	if f != nil && !f.Update && !f.Delete {
		o.ok("the publication sends neither UPDATE nor DELETE")
		return nil
	}
	count := map[schema.Identity]int{}
	for _, r := range p.tables {
		count[r.Identity]++
		for _, holder := range rowHolders(r) {
			found, fix := identityProblem(holder)
			if found == "" && p.server.major() >= 18 {
				found, fix = generatedProblem(holder, f)
			}
			if found != "" {
				o.fail(holder.name(), found+": once it is published, the server refuses UPDATE and "+
					"DELETE on it", "an identity by which an old row can be told", fix)
			}
		}
	}
	o.ok("%d FULL, %d DEFAULT, %d USING INDEX", count[schema.IdentityFull],
		count[schema.IdentityDefault], count[schema.IdentityIndex])
	return nil
}

// keyColumns returns the columns of the table's Kafka key, none when it has no key: those of
// message.key.columns, else the identity's, else under FULL the primary key's.
func (p *probe) keyColumns(r *relation) []string {
	for _, k := range p.cfg.MessageKeyColumns {
		if k.Table.MatchString(r.name()) {
			return k.Columns
		}
	}
	if x := r.identityIndex(); x != nil {
		return x.Columns
	}
	if x := r.primaryKey(); x != nil && x.usable() && r.Identity == schema.IdentityFull {
		return x.Columns
	}
	return nil
}

func checkKeys(_ context.Context, p *probe, o *outcome) error {
	for _, r := range p.tables {
		if _, refused := identityProblem(r); len(p.keyColumns(r)) > 0 || refused != "" {
			continue // the latter is replica_identity's finding
		}
		o.fail(r.name(), "no key: its events have a null key and go to one partition",
			"a primary key, so that the table's events can be spread and its topic compacted",
			"ALTER TABLE "+r.Quoted+" ADD PRIMARY KEY (...); or set message.key.columns")
	}
	o.ok("every captured table has a key")
	return nil
}

func checkKeyOverrides(_ context.Context, p *probe, o *outcome) error {
	for _, k := range p.cfg.MessageKeyColumns {
		matched := false
		for _, r := range p.tables {
			if !k.Table.MatchString(r.name()) {
				continue
			}
			matched = true
			for _, name := range k.Columns {
				p.checkKeyColumn(o, r, name)
			}
		}
		if !matched {
			o.failAs(Warning, "message.key.columns",
				"the entry for columns "+list(k.Columns)+" matches no captured table", "", "")
		}
	}
	if len(p.cfg.MessageKeyColumns) == 0 {
		o.ok("message.key.columns is not set")
		return nil
	}
	o.ok("its columns are NOT NULL and in every identity")
	return nil
}

// checkKeyColumn holds a column of message.key.columns against the rule: a delete must have it.
func (p *probe) checkKeyColumn(o *outcome, r *relation, name string) {
	object := r.name() + "." + name
	for _, holder := range append([]*relation{r}, r.leaves...) {
		c := holder.column(name)
		switch {
		case c == nil:
			o.fail(object, "no such column in "+holder.name(), "a column", "correct message.key.columns")
			return
		case !c.NotNull:
			o.fail(object, "may be null", "NOT NULL, as a part of the key", "ALTER TABLE "+
				holder.Quoted+" ALTER COLUMN "+c.Quoted+" SET NOT NULL;")
			return
		case !inIdentity(holder, name):
			o.fail(object, "not in the replica identity of "+holder.name()+
				": its deletes would have no key", "in the identity, or identity FULL",
				"ALTER TABLE "+holder.Quoted+" REPLICA IDENTITY FULL;")
			return
		}
	}
}

// inIdentity reports whether the old row of a delete has the column.
func inIdentity(r *relation, column string) bool {
	if r.Identity == schema.IdentityFull {
		return true
	}
	x := r.identityIndex()
	return x != nil && slices.Contains(x.Columns, column)
}

// full reports whether every old row that comes under the relation's name is complete.
func full(r *relation) bool {
	for _, h := range append([]*relation{r}, r.leaves...) {
		if h.Identity != schema.IdentityFull {
			return false
		}
	}
	return true
}

func checkBeforeImage(_ context.Context, p *probe, o *outcome) error {
	required := 0
	for _, r := range p.tables {
		for _, re := range p.cfg.BeforeImageRequired {
			if !re.MatchString(r.name()) {
				continue
			}
			required++
			for _, h := range append([]*relation{r}, r.leaves...) {
				if h.Identity != schema.IdentityFull {
					o.fail(h.name(), "REPLICA IDENTITY "+identityName(h), "FULL, since "+
						"before.image.required names "+r.name(),
						"ALTER TABLE "+h.Quoted+" REPLICA IDENTITY FULL;")
				}
			}
			break
		}
	}
	o.ok("before.image.required names %s", plural(required, "captured table"))
	return nil
}

func identityName(r *relation) string {
	switch r.Identity {
	case schema.IdentityNothing:
		return "NOTHING"
	case schema.IdentityFull:
		return "FULL"
	case schema.IdentityIndex:
		if x := r.identityIndex(); x != nil {
			return "USING INDEX " + x.Name
		}
		return "USING INDEX"
	}
	return "DEFAULT"
}

// checkToast names the columns whose value an UPDATE may leave out.
func checkToast(_ context.Context, p *probe, o *outcome) error {
	for _, r := range p.tables {
		if _, refused := identityProblem(r); full(r) || refused != "" {
			continue
		}
		var columns []string
		for _, c := range r.Columns {
			if c.Toastable && !c.Generated && !slices.Contains(p.keyColumns(r), c.Name) {
				columns = append(columns, c.Name)
			}
		}
		if len(columns) > 0 {
			become, fix := p.unchangedToast(r)
			o.fail(r.name(), "REPLICA IDENTITY "+identityName(r)+": an UPDATE that leaves a large "+
				"value of "+list(columns)+" alone does not carry it; "+become, "",
				fix+"for exact rows: ALTER TABLE "+r.Quoted+" REPLICA IDENTITY FULL;")
		}
	}
	o.ok("none")
	return nil
}

// unchangedToast says what becomes of a value that the log does not carry.
func (p *probe) unchangedToast(r *relation) (become, fix string) {
	switch {
	case !p.cfg.ReselectUnavailable:
		return "it is null and flagged (UNAVAILABLE)", ""
	case !r.Usage || !r.Select:
		return "it cannot be read again without USAGE and SELECT, so it is null and flagged " +
				"(UNAVAILABLE)", "GRANT USAGE ON SCHEMA " + r.QuotedIn + " TO " + p.server.Role +
				"; GRANT SELECT ON " + r.Quoted + " TO " + p.server.Role + "; "
	case r.RLS:
		return "row security keeps it from being read again, so it is null and flagged (UNAVAILABLE)",
			"ALTER ROLE " + p.server.Role + " BYPASSRLS; "
	}
	return "it is read again, and may be newer than its change (RESELECTED)", ""
}

// checkLeafIdentity names the leaves that keep a root from a full before-image.
func checkLeafIdentity(_ context.Context, p *probe, o *outcome) error {
	for _, r := range p.tables {
		if r.Kind != 'p' || r.Identity != schema.IdentityFull {
			continue
		}
		for _, leaf := range r.leaves {
			if leaf.Identity != schema.IdentityFull {
				o.fail(leaf.name(), "REPLICA IDENTITY "+identityName(leaf)+": it keeps the events of "+
					"its root "+r.name()+" from a full before-image", "FULL, as its root",
					"ALTER TABLE "+leaf.Quoted+" REPLICA IDENTITY FULL;")
			}
		}
	}
	o.ok("no partition keeps its root from what the root's identity promises")
	return nil
}

// checkLeafKey refuses partitions whose deletes would lack a part of the root's key.
func checkLeafKey(_ context.Context, p *probe, o *outcome) error {
	for _, r := range p.tables {
		if r.Kind != 'p' {
			continue
		}
		for _, leaf := range r.leaves {
			for _, column := range p.keyColumns(r) {
				if !inIdentity(leaf, column) {
					o.fail(leaf.name(), "its replica identity lacks "+column+", a part of the key of "+
						r.name()+": its deletes would have no key", "every column of the key",
						"ALTER TABLE "+leaf.Quoted+" REPLICA IDENTITY FULL;")
					break
				}
			}
		}
	}
	o.ok("every partition's identity has its root's key")
	return nil
}
