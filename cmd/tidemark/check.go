package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/connector"
	"github.com/tidemark-cdc/tidemark/connector/preflight"
)

func newCheckCmd() *cobra.Command {
	var chosen selection
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
			worker, connectors, err := chosen.load(cmd, args)
			if err != nil {
				return err
			}
			return runChecks(cmd, worker, connectors, asJSON)
		},
	}
	chosen.flags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the findings as JSON")
	return cmd
}

func runChecks(
	cmd *cobra.Command, worker config.Worker, connectors []*config.Connector, asJSON bool,
) error {
	status := 0
	reports := []*preflight.Report{}
	for i, c := range connectors {
		report, err := preflight.Run(cmd.Context(), preflight.Options{
			Connector: c, Worker: worker, Columns: connector.CheckColumns,
		})
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
