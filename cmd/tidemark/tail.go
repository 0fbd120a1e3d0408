package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/connector/consume"
	"github.com/tidemark-cdc/tidemark/schema"
	"github.com/tidemark-cdc/tidemark/schema/registry"
)

// tailOptions are the flags of tail.
type tailOptions struct {
	file, connector       string
	json, beginning, exit bool
	readCommitted         bool
	count                 int
	topics                []string
	log                   *slog.Logger
}

func newTailCmd() *cobra.Command {
	var o tailOptions
	cmd := &cobra.Command{
		Use:   "tail -c FILE [TOPIC ...]",
		Short: "Print the events of topics, decoded with the registry's schemas",
		Long: "Tail reads topics and prints each event, for a person or as a line of JSON. Without\n" +
			"TOPIC it reads all topics of the file's connectors, also those that appear meanwhile.\n" +
			"What is known of the old row stands on each event. The difference between the old and\n" +
			"the new row is drawn only when the old row is known completely (before_image FULL).\n" +
			"Ctrl-C ends it.",
		Example: "  tidemark tail -c tidemark.yaml\n" +
			"  tidemark tail -c tidemark.yaml --from-beginning -n 20 shop.public.orders\n" +
			"  tidemark tail -c tidemark.yaml --exit-at-end --json | jq .value.after",
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.log, err = newLogger(cmd); err != nil {
				return err
			}
			o.topics = args
			return tail(cmd.Context(), cmd.OutOrStdout(), &o)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.file, "config", "c", "", "the YAML file (required)")
	f.StringVar(&o.connector, "connector", "", "only the topics of this connector of the file")
	f.BoolVar(&o.json, "json", false, "one line of JSON an event")
	f.BoolVar(&o.beginning, "from-beginning", false, "begin with the oldest event, not with the next")
	f.BoolVar(&o.exit, "exit-at-end", false,
		"end where the topics end now; begins with the oldest event")
	f.IntVarP(&o.count, "number", "n", 0, "end after so many events; 0: do not")
	f.BoolVar(&o.readCommitted, "read-committed", false,
		"leave out events of transactions that are open or were aborted")
	return cmd
}

func tail(ctx context.Context, out io.Writer, o *tailOptions) error {
	if o.count < 0 {
		return usageError("-n is 0 or more")
	}
	settings, err := loadConfig(o.file, nil, o.log)
	if err != nil {
		return err
	}
	prefixes, err := tailPrefixes(settings, o)
	if err != nil {
		return err
	}
	w := settings.Worker
	schemas, err := registry.New(registry.Options{
		URLs: w.Registry.URLs, User: w.Registry.User, Password: w.Registry.Password.Reveal(),
		Bearer: w.Registry.Bearer.Reveal(), CAFile: w.Registry.TLSCAFile,
		Timeout: w.Registry.Timeout, UserAgent: "tidemark/" + version,
	})
	if err != nil {
		return err
	}
	defer schemas.Close()
	r, err := consume.New(ctx, consume.Options{
		Kafka: w.Kafka, Schemas: schemas, Topics: o.topics, Prefixes: prefixes,
		FromBeginning: o.beginning || o.exit, ExitAtEnd: o.exit,
		ReadCommitted: o.readCommitted, Logger: o.log,
	})
	if err != nil {
		return endOfTail(ctx, err)
	}
	defer r.Close()
	if len(r.Topics()) == 0 && !o.exit {
		o.log.Info("no topic yet, waiting for one", "prefixes", prefixes)
	}
	return endOfTail(ctx, printEvents(ctx, out, r, o))
}

// tailPrefixes returns the topic prefixes of the connectors that were asked for; none when topics
// were named.
func tailPrefixes(settings *config.File, o *tailOptions) ([]string, error) {
	if len(o.topics) > 0 && o.connector != "" {
		return nil, usageError("--connector goes without TOPIC")
	}
	if len(o.topics) > 0 {
		return nil, nil
	}
	var prefixes, names []string
	for _, c := range settings.Connectors {
		names = append(names, c.Name)
		if o.connector == "" || o.connector == c.Name {
			topic := schema.TopicName(c.TopicPrefix, "s", "t")
			prefixes = append(prefixes, strings.TrimSuffix(topic, ".s.t"))
		}
	}
	switch {
	case len(prefixes) > 0:
		return prefixes, nil
	case o.connector != "":
		return nil, usageError(fmt.Sprintf("the file has no connector %s; it has: %s",
			o.connector, strings.Join(names, ", ")))
	}
	return nil, usageError("the file has no connector: name the topics")
}

// printEvents prints until the end, the count or an error. What is printed goes out whenever there
// is nothing to read at once.
func printEvents(ctx context.Context, out io.Writer, r *consume.Reader, o *tailOptions) error {
	buffered := bufio.NewWriter(out)
	print := consume.NewPrinter(buffered, consume.UseColor(out)).Print
	if o.json {
		print = func(m *consume.Message) error { return consume.WriteJSON(buffered, m) }
	}
	for n := 0; o.count == 0 || n < o.count; n++ {
		m, err := r.Next(ctx)
		if err != nil {
			if flushErr := buffered.Flush(); flushErr != nil {
				return flushErr
			}
			return err
		}
		if err := print(m); err != nil {
			return err
		}
		if r.Buffered() == 0 {
			if err := buffered.Flush(); err != nil {
				return err
			}
		}
	}
	return buffered.Flush()
}

// endOfTail makes the end of the topics and Ctrl-C what they are: no errors.
func endOfTail(ctx context.Context, err error) error {
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		return nil
	}
	return err
}
