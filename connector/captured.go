package connector

import (
	"context"
	"fmt"
	"strings"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/connector/source"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/internal/pgdial"
	"github.com/tidemark-cdc/tidemark/offsets"
	"github.com/tidemark-cdc/tidemark/schema"
	"github.com/tidemark-cdc/tidemark/schema/catalog"
)

// candidates reads every table of the database.
func (s *session) candidates(ctx context.Context) ([]catalog.TableRow, error) {
	rows, err := s.catalog.Candidates(ctx)
	return rows, pgdial.Wrap(err)
}

// capturedRule says which rows of the publication concern us: the tables that a rule captures, and
// every partitioned table, whose leaves may be captured under their own names.
func (s *session) capturedRule(
	ctx context.Context, cat *catalog.Catalog,
) (func(uint32, string) bool, error) {
	rows, err := cat.Candidates(ctx)
	if err != nil {
		return nil, pgdial.Wrap(err)
	}
	known := make(map[uint32]bool, len(rows))
	for _, r := range rows {
		known[r.OID] = r.Partitioned || s.cfg.Tables.Captured(r.Schema, r.Name)
	}
	return func(relid uint32, _ string) bool {
		captured, ok := known[relid]
		return captured || !ok
	}, nil
}

// announced picks the tables that the rules capture and a publication would announce under their
// own names: roots where it publishes by root, leaves where it does not.
func announced(
	cfg *config.Connector, rows []catalog.TableRow, viaRoot bool,
) (out []catalog.TableRow) {
	for _, r := range rows {
		own := !r.Partition
		if !viaRoot {
			own = !r.Partitioned
		}
		if own && cfg.Tables.Captured(r.Schema, r.Name) {
			out = append(out, r)
		}
	}
	return out
}

// captured leaves out of those what a publication does not take.
func (s *session) captured(rows []catalog.TableRow, viaRoot bool) []catalog.TableRow {
	var out []catalog.TableRow
	for _, r := range announced(s.cfg, rows, viaRoot) {
		if r.Unlogged { // a publication takes none: their changes are not in the log
			s.finding("unlogged/"+r.Schema+"."+r.Name,
				"table "+r.Schema+"."+r.Name+" is UNLOGGED: its changes cannot be captured")
			continue
		}
		out = append(out, r)
	}
	return out
}

// checkTables refuses, before anything is made on the server, what could not work: no tables,
// tables whose UPDATE and DELETE the server would reject once they are published, topics that
// Kafka cannot tell apart.
func (s *session) checkTables(ctx context.Context, present *offsets.Fingerprint) error {
	rows, err := s.candidates(ctx)
	if err != nil {
		return err
	}
	tables := s.captured(rows, s.cfg.PublishViaRoot)
	if len(tables) == 0 && !s.cfg.Tables.CouldMatchLater() {
		return fault.New(fault.NoTables, "no table of the database matches the configuration").
			With("", "at least one", "correct table.include.list, or create the tables first")
	}
	if err := checkIdentities(rows, tables); err != nil {
		return err
	}
	if s.src.Version() >= 180000 {
		if err := checkGenerated(rows, tables, present); err != nil {
			return err
		}
	}
	return checkTopics(s.cfg, tables)
}

// checkIdentities names the tables without a usable replica identity: publishing one makes every
// UPDATE and DELETE on it fail, in the application. A root is judged by its leaves.
func checkIdentities(all, tables []catalog.TableRow) error {
	bad, first := holders(all, tables, func(t catalog.TableRow) bool { return !t.UsableIdentity() })
	if bad == "" {
		return nil
	}
	return fault.New(fault.ReplicaIdentityUnusable,
		"once published, UPDATE and DELETE would fail on tables without a replica identity").
		With(bad, "a primary key, a unique index as identity, or FULL", "ALTER TABLE "+first+
			" REPLICA IDENTITY FULL, or add a primary key, or exclude the table")
}

// checkGenerated names the tables whose identity is FULL and has generated columns in it that the
// publication does not send: from 18 on the server refuses UPDATE and DELETE on them (42P10). No
// publication sends virtual ones.
func checkGenerated(all, tables []catalog.TableRow, present *offsets.Fingerprint) error {
	sent := ""
	if present != nil && present.Generated == "s" {
		sent = "s"
	}
	bad, first := holders(all, tables, func(t catalog.TableRow) bool {
		return t.Identity == schema.IdentityFull && t.Generated != "" && t.Generated != sent
	})
	if bad == "" {
		return nil
	}
	return fault.New(fault.ReplicaIdentityUnusable, "once published, UPDATE and DELETE would fail on "+
		"tables with REPLICA IDENTITY FULL and a generated column that is not published").
		With(bad, "another identity, or generated columns that are published", "ALTER TABLE "+first+
			" REPLICA IDENTITY DEFAULT, or, where all of them are STORED, make the publication WITH "+
			"(publish_generated_columns = stored), or exclude the table")
}

// holders lists the tables that a condition is true of, a root's leaves in the root's place, and
// the first one quoted.
func holders(
	all, tables []catalog.TableRow, condition func(catalog.TableRow) bool,
) (list, first string) {
	var names []string
	judge := func(t catalog.TableRow) {
		if !condition(t) {
			return
		}
		if first == "" {
			first = source.QuoteTable(t.Schema, t.Name)
		}
		names = append(names, t.Schema+"."+t.Name)
	}
	for _, t := range tables {
		if !t.Partitioned {
			judge(t)
			continue
		}
		for _, leaf := range all {
			if leaf.RootOID == t.OID && !leaf.Partitioned {
				judge(leaf)
			}
		}
	}
	return strings.Join(names, ", "), first
}

// checkTopics refuses tables that would share a topic: Kafka takes no two topics that differ only
// in "." and "_", because its metrics cannot tell them apart.
func checkTopics(cfg *config.Connector, tables []catalog.TableRow) error {
	prefix := cfg.TopicPrefix
	seen := make(map[string]string, len(tables))
	if name := cfg.TransactionTopicName(); name != "" {
		seen[strings.ReplaceAll(name, ".", "_")] = "topic.transaction"
	}
	for _, t := range tables {
		name := t.Schema + "." + t.Name
		topic := schema.TopicName(prefix, t.Schema, t.Name)
		if len(topic) > 249 {
			return fault.New(fault.TopicsCollide, "the topic's name of table "+name+" is too long").
				With(fmt.Sprintf("%d characters", len(topic)), "at most 249",
					"choose a shorter topic.prefix or exclude the table")
		}
		folded := strings.ReplaceAll(topic, ".", "_")
		if other, taken := seen[folded]; taken {
			return fault.New(fault.TopicsCollide, "two tables would share a topic for Kafka").
				With(other+" and "+name, "topics that differ in more than . and _",
					"exclude one of the tables, or capture it with another connector and topic.prefix")
		}
		seen[folded] = name
	}
	return nil
}

// ensurePublication makes the publication as publication.autocreate.mode says, or adds the tables
// that it lacks at a fresh start, when it has no history with us yet.
func (s *session) ensurePublication(ctx context.Context) error {
	present, err := s.src.Publication(ctx, s.cfg.Publication)
	if err != nil {
		return err
	}
	rows, err := s.candidates(ctx)
	if err != nil {
		return err
	}
	mode := s.cfg.PublicationAutocreate
	switch {
	case present == nil && mode == "disabled":
		return fault.New(fault.PublicationMissing, "publication "+s.cfg.Publication+" does not exist").
			With("publication.autocreate.mode: disabled", "the publication", "CREATE PUBLICATION "+
				source.QuoteIdent(s.cfg.Publication)+" FOR TABLE ...")
	case present == nil:
		tables := names(s.captured(rows, s.cfg.PublishViaRoot))
		if mode == "no_tables" {
			tables = nil
		}
		return s.src.CreatePublication(ctx, s.cfg.Publication, tables,
			mode == "all_tables", s.cfg.PublishViaRoot)
	case mode != "filtered" || present.AllTables:
		return nil
	}
	missing, err := s.unpublished(ctx, present, rows)
	if err != nil || len(missing) == 0 {
		return err
	}
	return s.src.AddTables(ctx, s.cfg.Publication, missing)
}

// unpublished lists captured tables that the publication does not announce.
func (s *session) unpublished(
	ctx context.Context, present *offsets.Fingerprint, rows []catalog.TableRow,
) ([]source.Table, error) {
	published, err := s.catalog.Published(ctx, s.cfg.Publication)
	if err != nil {
		return nil, pgdial.Wrap(err)
	}
	in := make(map[uint32]bool, len(published))
	for _, p := range published {
		in[p.Relation.OID] = true
	}
	var missing []source.Table
	for _, t := range s.captured(rows, present.Root) {
		if !in[t.OID] {
			missing = append(missing, source.Table{Schema: t.Schema, Name: t.Name})
		}
	}
	return missing, nil
}

func names(rows []catalog.TableRow) []source.Table {
	out := make([]source.Table, len(rows))
	for i, r := range rows {
		out[i] = source.Table{Schema: r.Schema, Name: r.Name}
	}
	return out
}
