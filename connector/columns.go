package connector

import (
	"context"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/envelope"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/internal/pgdial"
	"github.com/tidemark-cdc/tidemark/schema"
	"github.com/tidemark-cdc/tidemark/schema/catalog"
)

// CheckColumns holds the keys that leave columns out and mask them against the captured tables as
// the database has them now. faults are those that the connector would stop with at such a table's
// first row; unmatched are the expressions that match no column, each with its key. publication is
// empty when it does not exist. Nothing is asked of the database when there are no such keys.
func CheckColumns(
	ctx context.Context, cat *catalog.Catalog, cfg *config.Connector, publication string,
	viaRoot bool,
) (faults []error, unmatched [][2]string, err error) {
	if cfg.Columns.IsZero() {
		return nil, nil, nil
	}
	rows, err := cat.Candidates(ctx)
	if err != nil {
		return nil, nil, pgdial.Wrap(err)
	}
	// What a money column becomes does not matter here.
	enc := envelope.New(EncoderOptions(cfg, cfg.Database.Name, "", 0,
		schema.Options{DecimalMode: cfg.DecimalMode}))
	defer enc.Close()
	published, err := cat.Published(ctx, publication)
	if err != nil {
		return nil, nil, pgdial.Wrap(err)
	}
	known := make(map[uint32]*schema.Relation, len(published))
	for _, p := range published {
		known[p.Relation.OID] = p.Relation
	}
	var names []string
	for _, row := range announced(cfg, rows, viaRoot) {
		rel := known[row.OID]
		if rel == nil {
			found, err := cat.RelationOf(ctx, row.OID, "")
			if err != nil {
				return nil, nil, pgdial.Wrap(err)
			}
			rel = found.Relation
		}
		for _, c := range rel.Columns {
			names = append(names, tableName(rel)+"."+c.Name)
		}
		info, err := cat.Table(ctx, rel)
		if err != nil {
			return nil, nil, pgdial.Wrap(err)
		}
		if _, err := enc.Compile(rel, info); fault.Has(err, fault.ConfigInvalid) {
			faults = append(faults, err)
		}
	}
	return faults, cfg.Columns.Unmatched(names), nil
}

// checkColumns stops a connector that would come to a column it must not send, or must not send as
// it is, only later. An expression that matches nothing is a finding: whoever misspelt it believes
// that a column is hidden.
func (s *session) checkColumns(ctx context.Context) error {
	if s.cfg.Columns.IsZero() {
		return nil
	}
	present, err := s.src.Publication(ctx, s.cfg.Publication)
	if err != nil {
		return err
	}
	publication, viaRoot := "", s.cfg.PublishViaRoot
	if present != nil {
		publication, viaRoot = s.cfg.Publication, present.Root
	}
	faults, unmatched, err := CheckColumns(ctx, s.catalog, s.cfg, publication, viaRoot)
	if err != nil {
		return err
	}
	if len(faults) > 0 {
		return faults[0]
	}
	for _, entry := range unmatched {
		s.finding("columns/"+entry[0]+"/"+entry[1],
			entry[0]+": "+entry[1]+" matches no column of a captured table")
	}
	return nil
}
