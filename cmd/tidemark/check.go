package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/connector/preflight"
)

func newCheckCmd() *cobra.Command {
	var file, name string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check -c FILE [CONNECTOR.json ...]",
		Short: "Check server, role, publication, tables, brokers and registry before a start",
		Long: "Check every requirement on server, role, publication, tables, replica identities, " +
			"slot,\nbrokers and registry. What is wrong is shown with what was found, what was " +
			"wanted, and\nthe SQL or command that mends it. Nothing is changed anywhere.\n\n" +
			"Exit status 3 when a check of severity error fails.",
		Example: "  tidemark check -c tidemark.yaml\n" +
			"  tidemark check -c tidemark.yaml --connector shop --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			log, err := newLogger(cmd)
			if err != nil {
				return err
			}
			settings, err := loadConfig(file, args, log)
			if err != nil {
				return err
			}
			connectors, err := pickConnectors(settings, name)
			if err != nil {
				return err
			}
			return runChecks(cmd, settings.Worker, connectors, asJSON)
		},
	}
	cmd.Flags().StringVarP(&file, "config", "c", "", "the YAML file (required)")
	cmd.Flags().StringVar(&name, "connector", "", "only the connector of this name")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the findings as JSON")
	return cmd
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

func runChecks(
	cmd *cobra.Command, worker config.Worker, connectors []*config.Connector, asJSON bool,
) error {
	status := 0
	reports := []*preflight.Report{}
	for i, c := range connectors {
		report, err := preflight.Run(cmd.Context(), preflight.Options{Connector: c, Worker: worker})
		if err != nil {
			return err
		}
		status = max(status, report.Exit())
		reports = append(reports, report)
		if asJSON {
			continue
		}
		if err := printReport(cmd.OutOrStdout(), report, i > 0); err != nil {
			return err
		}
	}
	if asJSON {
		if err := printJSON(cmd.OutOrStdout(), struct {
			Connectors []*preflight.Report `json:"connectors"`
		}{reports}); err != nil {
			return err
		}
	}
	if status != 0 {
		return silentError{status}
	}
	return nil
}

func printReport(w io.Writer, report *preflight.Report, further bool) error {
	if further {
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
	}
	return report.WriteText(w)
}
