package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/internal/fault"
)

func newConfigCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check a configuration, list every key, print a JSON Schema",
		Example: "  tidemark config validate -c tidemark.yaml\n" +
			"  tidemark config keys heartbeat",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newConfigValidateCmd(), newConfigKeysCmd(), newConfigSchemaCmd())
	return cmd
}

func newConfigValidateCmd() *cobra.Command {
	var file string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "validate -c FILE [CONNECTOR.json ...]",
		Short: "Report everything that is wrong with a configuration",
		Long: "Report everything that is wrong with a configuration, and keys that are without " +
			"effect.\nReferences are resolved, so it is run where the connectors will run. " +
			"Nothing is\nconnected to; `tidemark check` does that.",
		Example: "  tidemark config validate -c tidemark.yaml\n" +
			"  tidemark config validate -c worker.yaml orders.json --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if file == "" {
				return usageError("-c FILE is missing")
			}
			_, warnings, err := config.Load(file, args)
			if asJSON {
				return printValidation(cmd.OutOrStdout(), warnings, err)
			}
			for _, w := range warnings {
				fmt.Fprintln(cmd.OutOrStdout(), "warning: "+w.String())
			}
			return err
		},
	}
	cmd.Flags().StringVarP(&file, "config", "c", "", "the YAML file (required)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print violations and warnings as JSON")
	return cmd
}

// printValidation prints violations and warnings as one JSON document, which says all that err
// does.
func printValidation(w io.Writer, warnings []config.Warning, err error) error {
	out := struct {
		Valid      bool              `json:"valid"`
		Violations config.Violations `json:"violations"`
		Warnings   []config.Warning  `json:"warnings"`
	}{Valid: err == nil, Violations: config.Violations{}, Warnings: warnings}
	if warnings == nil {
		out.Warnings = []config.Warning{}
	}
	if err != nil && !errors.As(err, &out.Violations) {
		return err
	}
	if encodeErr := printJSON(w, out); encodeErr != nil {
		return encodeErr
	}
	if err != nil {
		return silentError{fault.Exit(fault.ConfigInvalid)}
	}
	return nil
}

// printJSON prints a value for people and programs alike: indented, without HTML's escapes.
func printJSON(w io.Writer, value any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(value)
}

func newConfigKeysCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "keys [TEXT]",
		Short: "List every key, or those whose name holds TEXT",
		Example: "  tidemark config keys\n" +
			"  tidemark config keys snapshot --json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError("more than one TEXT")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			keys := []config.Key{}
			for _, k := range config.Keys() {
				if len(args) == 0 || strings.Contains(k.Name, args[0]) {
					keys = append(keys, k)
				}
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), keys)
			}
			return printKeys(cmd.OutOrStdout(), keys)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the rows as JSON")
	return cmd
}

// printKeys prints a line a key, by area.
func printKeys(out io.Writer, keys []config.Key) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	area := ""
	for _, k := range keys {
		if k.Area != area {
			if area != "" {
				fmt.Fprintln(w)
			}
			area = k.Area
			fmt.Fprintf(w, "# %s\n", area)
		}
		text := k.Meaning
		if k.Class != config.Supported {
			text += " " + k.Class.String() + ": " + k.Why
		}
		value := k.Default
		if k.Required {
			value = "required"
		}
		if value == "" {
			value = "-"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", k.Name, k.Class, k.Type, value, text)
	}
	return w.Flush()
}

func newConfigSchemaCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print a JSON Schema of the YAML file, for editors",
		Example: "  tidemark config schema > tidemark.schema.json",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			schema, err := config.Schema()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), string(schema))
			return err
		},
	}
}
