// Command tidemark runs PostgreSQL to Kafka connectors. One file a command; this one holds the
// root, the log and the exit status.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// version is set by the linker.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal ends the process at once
	status := execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// execute runs one command line and returns the exit status.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRootCmd()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	var silent silentError
	if !errors.As(err, &silent) {
		fmt.Fprintln(stderr, "tidemark: "+strings.TrimSuffix(err.Error(), "\n"))
	}
	return exitStatus(err)
}

// silentError ends a command whose output has already said what is wrong.
type silentError struct{ status int }

func (e silentError) Error() string { return fmt.Sprintf("exit status %d", e.status) }

func exitStatus(err error) int {
	var silent silentError
	if errors.As(err, &silent) {
		return silent.status
	}
	var f *fault.Error
	if errors.As(err, &f) {
		return fault.Exit(f.Code)
	}
	return 1
}

// usageError marks a wrong command line.
func usageError(text string) error { return fault.New(fault.ConfigInvalid, text) }

func newRootCmd() *cobra.Command {
	root := &cobra.Command{
		Use:           "tidemark",
		Short:         "PostgreSQL change data capture to Kafka, with explicit before-images",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return usageError(err.Error())
	})
	flags := root.PersistentFlags()
	flags.String("log-level", "info", "debug, info, warn or error")
	flags.String("log-format", "auto", "text, json, or auto: text on a terminal, json otherwise")
	root.AddCommand(
		newDemoCmd(), newRunCmd(), newCheckCmd(), newTailCmd(), newExplainCmd(),
		newOffsetsCmd(), newConfigCmd(), newHealthCmd(), newVersionCmd(),
	)
	return root
}

func newVersionCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print version, commit and Go version",
		Example: "  tidemark version",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			commit := "unknown"
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						commit = s.Value
					}
				}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "tidemark %s (commit %s, %s)\n",
				version, commit, runtime.Version())
			return nil
		},
	}
}

func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError(fmt.Sprintf("%d arguments that the command does not take", len(args)))
	}
	return nil
}

// newLogger builds the logger that the persistent flags ask for, on standard error.
func newLogger(cmd *cobra.Command) (*slog.Logger, error) {
	levelText, _ := cmd.Flags().GetString("log-level")
	format, _ := cmd.Flags().GetString("log-format")
	var level slog.Level
	if err := level.UnmarshalText([]byte(levelText)); err != nil {
		return nil, usageError("--log-level is debug, info, warn or error")
	}
	opts := &slog.HandlerOptions{Level: level}
	w := cmd.ErrOrStderr()
	switch {
	case format == "json", format == "auto" && !isTerminal(w):
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	case format == "text", format == "auto":
		return slog.New(slog.NewTextHandler(w, opts)), nil
	}
	return nil, usageError("--log-format is text, json or auto")
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
