package main

import (
	"context"
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/connector"
	"github.com/tidemark-cdc/tidemark/connector/metrics"
	"github.com/tidemark-cdc/tidemark/connector/worker"
	"github.com/tidemark-cdc/tidemark/internal/fault"
)

func newRunCmd() *cobra.Command {
	var file string
	var failFast bool
	cmd := &cobra.Command{
		Use:   "run -c FILE [CONNECTOR.json ...]",
		Short: "Run the connectors of a file, and of Kafka Connect-style JSON files",
		Example: "  tidemark run -c tidemark.yaml\n" +
			"  tidemark run -c worker.yaml orders.json customers.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			log, err := newLogger(cmd)
			if err != nil {
				return err
			}
			settings, err := loadConfig(file, args, log)
			if err != nil {
				return err
			}
			return runConnectors(cmd.Context(), settings, log, failFast)
		},
	}
	cmd.Flags().StringVarP(&file, "config", "c", "", "the YAML file (required)")
	cmd.Flags().BoolVar(&failFast, "fail-fast", false, "end with the first connector that stops")
	return cmd
}

// loadConfig reads the file and logs its warnings. Every command that takes -c goes through it.
func loadConfig(file string, jsonFiles []string, log *slog.Logger) (*config.File, error) {
	if file == "" {
		return nil, usageError("-c FILE is missing")
	}
	settings, warnings, err := config.Load(file, jsonFiles)
	for _, w := range warnings {
		log.Warn(w.String())
	}
	return settings, err
}

// runConnectors runs every connector until ctx ends or none is left. One that stops does not end
// the others, unless failFast; the error returned is the one with the highest exit status.
func runConnectors(
	ctx context.Context, settings *config.File, log *slog.Logger, failFast bool,
) error {
	if len(settings.Connectors) == 0 {
		return usageError("the configuration names no connector")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	limitMemory(ctx, settings.Connectors)
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	set := metrics.New(reg)
	set.BuildInfo(version)

	var all []*connector.Connector
	for _, c := range settings.Connectors {
		all = append(all, connector.New(c, settings.Worker, connector.Deps{
			Log: log.With("connector", c.Name), Metrics: set.Connector(c.Name), Version: version,
		}))
	}
	httpDone := make(chan error, 1)
	go func() { httpDone <- serveHTTP(ctx, settings.Worker.HTTPListen, reg, all, cancel) }()

	var group sync.WaitGroup
	var mu sync.Mutex
	var worst error
	keep := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil && (worst == nil || exitStatus(err) > exitStatus(worst)) {
			worst = err
		}
	}
	for _, c := range all {
		group.Go(func() {
			err := c.Run(ctx)
			keep(err)
			if err != nil && failFast {
				cancel()
			}
		})
	}
	group.Wait()
	cancel()
	keep(<-httpDone)
	return worst
}

// serveHTTP serves health and metrics until ctx ends. A port that cannot be had ends the process:
// a connector whose health nobody can read is not to be trusted.
func serveHTTP(
	ctx context.Context, listen string, reg *prometheus.Registry, all []*connector.Connector,
	cancel context.CancelFunc,
) error {
	if listen == "" {
		return nil
	}
	server := worker.New(listen, reg, func() []worker.Status {
		out := make([]worker.Status, len(all))
		for i, c := range all {
			out[i] = c.Status()
		}
		return out
	})
	err := server.Run(ctx)
	if err == nil || ctx.Err() != nil {
		return nil
	}
	cancel()
	return fault.Wrap(fault.ConfigInvalid, "http.listen cannot be served", err).
		With("", "a free address", "change http.listen, or leave it empty for no HTTP")
}
