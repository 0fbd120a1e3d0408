package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// Bounds of one question: a health check that hangs is no answer.
const (
	healthTimeout = 4 * time.Second
	healthBytes   = 1 << 20
)

func newHealthCmd() *cobra.Command {
	var url string
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Ask a running process whether its connectors are ready (for health checks)",
		Long: "Ask a running process whether every connector is in its snapshot or streaming, with\n" +
			"nothing wrong. No output and exit status 0 when so; else the reasons and 1. For images\n" +
			"without a shell, where a health check can run nothing but this binary.",
		Example: "  tidemark health\n" +
			"  tidemark health --url http://127.0.0.1:8083/healthz",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return askHealth(cmd.Context(), url)
		},
	}
	cmd.Flags().StringVar(&url, "url", "http://127.0.0.1:8083/readyz",
		"/readyz or /healthz of the process's http.listen")
	return cmd
}

// askHealth returns nil when the answer's status is 200, and otherwise an error with the reasons.
func askHealth(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return usageError("--url is not an address")
	}
	// Proxies of the environment are for other hosts than the one that is asked about itself.
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	answer, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("no answer: %w; is http.listen set, and the process running?", err)
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	if answer.StatusCode == http.StatusOK {
		return nil
	}
	var body struct {
		Reasons []string `json:"reasons"`
	}
	err = json.NewDecoder(io.LimitReader(answer.Body, healthBytes)).Decode(&body)
	if err != nil || len(body.Reasons) == 0 {
		return fmt.Errorf("not ready: %s answers %s", url, answer.Status)
	}
	return errors.New("not ready: " + strings.Join(body.Reasons, "; "))
}
