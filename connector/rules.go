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
		BeforeRequired: func(schema, table string) bool {
			return matches(cfg.BeforeImageRequired, schema+"."+table)
		},
	}
}

func matches(list []*regexp.Regexp, name string) bool {
	return slices.ContainsFunc(list, func(re *regexp.Regexp) bool { return re.MatchString(name) })
}
