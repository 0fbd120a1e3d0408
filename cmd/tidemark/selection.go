package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemark-cdc/tidemark/config"
)

// selection is what -c and --connector say: a configuration, and which of its connectors.
type selection struct{ file, name string }

func (s *selection) flags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&s.file, "config", "c", "", "the YAML file (required)")
	cmd.Flags().StringVar(&s.name, "connector", "", "only the connector of this name")
}

// load reads the file and Kafka Connect-style JSON files, and picks the connectors.
func (s *selection) load(
	cmd *cobra.Command, jsonFiles []string,
) (config.Worker, []*config.Connector, error) {
	log, err := newLogger(cmd)
	if err != nil {
		return config.Worker{}, nil, err
	}
	settings, err := loadConfig(s.file, jsonFiles, log)
	if err != nil {
		return config.Worker{}, nil, err
	}
	connectors, err := pickConnectors(settings, s.name)
	return settings.Worker, connectors, err
}

// pickConnectors returns the connectors of a configuration, or the one that is named.
func pickConnectors(settings *config.File, name string) ([]*config.Connector, error) {
	if len(settings.Connectors) == 0 {
		return nil, usageError("the configuration names no connector")
	}
	if name == "" {
		return settings.Connectors, nil
	}
	var known []string
	for _, c := range settings.Connectors {
		if c.Name == name {
			return []*config.Connector{c}, nil
		}
		known = append(known, c.Name)
	}
	return nil, usageError(fmt.Sprintf("there is no connector %q; the configuration has %s",
		name, strings.Join(known, ", ")))
}
