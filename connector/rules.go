package connector

import (
	"regexp"
	"slices"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/envelope"
	"github.com/tidemark-cdc/tidemark/schema"
)

// EncoderOptions turns a connector's settings into the encoder's. `tidemark explain` shows what
// the connector does because both ask here.
func EncoderOptions(
	cfg *config.Connector, database, version string, history int64, types schema.Options,
) envelope.Options {
	return envelope.Options{
		Prefix: cfg.TopicPrefix, Database: database, Version: version, History: history,
		Headers: cfg.HeadersEnable, Tombstones: cfg.TombstonesOnDelete,
		Skipped: cfg.SkippedOperations, HashWholeKey: cfg.PartitionBy == "serialized_key",
		Transactions:        cfg.TransactionMetadata,
		FailUnrepresentable: cfg.ValueUnrepresentable == "fail", Types: types,
		KeyText: func(schema, table, column string) bool {
			return matches(cfg.KeyTextColumns, schema+"."+table+"."+column)
		},
		KeyColumns: func(schema, table string) []string {
			for _, k := range cfg.MessageKeyColumns {
				if k.Table.MatchString(schema + "." + table) {
					return k.Columns
				}
			}
			return nil
		},
		Columns: func(schema, table, column string) envelope.ColumnRule {
			return columnRule(&cfg.Columns, schema, table, column)
		},
		BeforeRequired: func(schema, table string) bool {
			return matches(cfg.BeforeImageRequired, schema+"."+table)
		},
	}
}

// columnRule turns what the configuration says of a column into the encoder's terms.
func columnRule(c *config.Columns, namespace, table, column string) envelope.ColumnRule {
	sent, m, key := c.Rule(namespace, table, column)
	rule := envelope.ColumnRule{Out: !sent, Key: key}
	if m == nil {
		return rule
	}
	rule.Mask = &schema.Mask{
		Kind: schema.MaskTruncate, Length: m.Length, New: m.Hash, Salt: []byte(m.Salt.Reveal()),
		Java: m.Java,
	}
	switch {
	case m.Stars:
		rule.Mask.Kind = schema.MaskStars
	case m.Hash != nil:
		rule.Mask.Kind = schema.MaskHash
	}
	return rule
}

func matches(list []*regexp.Regexp, name string) bool {
	return slices.ContainsFunc(list, func(re *regexp.Regexp) bool { return re.MatchString(name) })
}
