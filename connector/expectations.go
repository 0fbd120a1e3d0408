package connector

import (
	"context"
	"fmt"
	"strings"

	"github.com/tidemark-cdc/tidemark/connector/source"
	"github.com/tidemark-cdc/tidemark/internal/pgdial"
	"github.com/tidemark-cdc/tidemark/offsets"
	"github.com/tidemark-cdc/tidemark/schema/catalog"
)

// checkExpectations compares what the rules capture with what the publication announces, and turns
// what will not arrive into findings: entries that match nothing, tables that are not published,
// roots whose rows come under the names of their leaves, identities that make statements fail.
func (s *session) checkExpectations(ctx context.Context, present *offsets.Fingerprint) error {
	if present == nil {
		return nil
	}
	rows, err := s.watchCatalog.Candidates(ctx)
	if err != nil {
		return pgdial.Wrap(err)
	}
	published, err := s.watchCatalog.Published(ctx, present.Name)
	if err != nil {
		return pgdial.Wrap(err)
	}
	announced := make(map[uint32]bool, len(published))
	for _, p := range published {
		announced[p.Relation.OID] = true
	}
	s.findUnmatched(rows)
	if present.Root {
		s.findMoved(rows)
	}
	var missing []source.Table
	var unusable, leafNamed []string
	for _, r := range rows {
		if !s.cfg.Tables.Captured(r.Schema, r.Name) {
			continue
		}
		switch {
		case r.Partitioned && !present.Root:
			leafNamed = append(leafNamed, r.Schema+"."+r.Name)
		case r.Partition && present.Root, r.Unlogged:
		case !announced[r.OID]:
			missing = append(missing, source.Table{Schema: r.Schema, Name: r.Name})
		case !r.Partitioned && !r.UsableIdentity():
			unusable = append(unusable, r.Schema+"."+r.Name)
		}
	}
	s.finding("unpublished", textFor(len(missing) > 0, "tables that a rule captures are not in the "+
		"publication, their changes do not come: "+source.AddTablesSQL(present.Name, missing)))
	s.finding("identity", textFor(len(unusable) > 0, "UPDATE and DELETE fail on published tables "+
		"without a replica identity: "+strings.Join(unusable, ", ")))
	s.finding("leaves", textFor(len(leafNamed) > 0, "the publication announces partitions under their "+
		"own names, which table.include.list must match: "+strings.Join(leafNamed, ", ")+
		"; or ALTER PUBLICATION "+source.QuoteIdent(present.Name)+
		" SET (publish_via_partition_root = true) before the first start"))
	return nil
}

// findMoved names partitions that came to a captured root with rows in them, or left it: the stream
// says nothing of either, and the root's topic is not its table any more. One that was made, filled
// and attached between two looks goes unseen.
func (s *session) findMoved(rows []catalog.TableRow) {
	before := s.roots
	s.roots = make(map[uint32]uint32, len(rows))
	names := make(map[uint32]string, len(rows))
	captured := make(map[uint32]bool, len(rows))
	for _, r := range rows {
		s.roots[r.OID] = r.RootOID
		names[r.OID] = r.Schema + "." + r.Name
		captured[r.OID] = s.cfg.Tables.Captured(r.Schema, r.Name)
	}
	for oid, root := range s.roots {
		old, known := before[oid]
		if !known || old == root {
			continue
		}
		if captured[root] && root != oid {
			text := "table " + names[oid] + " was attached to " + names[root] +
				": rows that it had are not in the topic, unless they are updated"
			if s.src.Version() < 150000 {
				text += "; a server before 15 does not send its changes either until the connector " +
					"is started again with a position behind the ATTACH"
			}
			s.finding("moved/"+names[oid], text)
		}
		if captured[old] && old != oid {
			s.finding("moved/"+names[oid], "table "+names[oid]+" was detached from "+names[old]+
				": its rows are still in the topic")
		}
	}
}

// findUnmatched names the entries of include lists that match no table.
func (s *session) findUnmatched(rows []catalog.TableRow) {
	names := make([][2]string, len(rows))
	for i, r := range rows {
		names[i] = [2]string{r.Schema, r.Name}
	}
	unmatched := s.cfg.Tables.Unmatched(names)
	s.finding("unmatched", textFor(len(unmatched) > 0, fmt.Sprintf(
		"entries of the include lists match no table: %s", strings.Join(unmatched, ", "))))
}

// textFor returns text when there is something to find, else the empty string, which takes an
// earlier finding back.
func textFor(found bool, text string) string {
	if found {
		return text
	}
	return ""
}
