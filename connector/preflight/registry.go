package preflight

import (
	"context"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/schema"
	"github.com/tidemark-cdc/tidemark/schema/registry"
)

func checkRegistry(ctx context.Context, p *probe, o *outcome) error {
	r := p.worker.Registry
	where := strings.Join(p.registryNames(), ", ")
	client, err := registry.New(registry.Options{
		URLs: r.URLs, User: r.User, Password: r.Password.Reveal(), Bearer: r.Bearer.Reveal(),
		CAFile: r.TLSCAFile, Timeout: min(r.Timeout, p.timeout),
	})
	if err == nil {
		p.registry = client
		err = client.Ping(ctx)
	}
	if err != nil {
		p.away[needRegistry] = "no schema registry can be asked"
		o.failWith(where, err)
		return nil
	}
	o.ok("%s", where)
	return nil
}

// registryNames returns the registry's addresses without user and password.
func (p *probe) registryNames() []string {
	names := make([]string, len(p.worker.Registry.URLs))
	for i, raw := range p.worker.Registry.URLs {
		scheme, rest, _ := strings.Cut(raw, "://")
		if at := strings.LastIndex(rest, "@"); at >= 0 {
			rest = rest[at+1:]
		}
		names[i] = scheme + "://" + rest
	}
	return names
}

// parallelQuestions bounds how many subjects are asked for at a time.
const parallelQuestions = 4

// checkCompatibility looks at the level of each captured table's value subject: its own, or the
// registry's.
func checkCompatibility(ctx context.Context, p *probe, o *outcome) error {
	tables := p.tables
	levels := make([]string, len(tables))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelQuestions)
	for i, r := range tables {
		group.Go(func() (err error) {
			levels[i], err = p.registry.Compatibility(ctx, p.subjectOf(r))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		if fault.CodeOf(err) == fault.Internal {
			return fault.Wrap(fault.RegistryUnreachable, "a subject's level could not be read", err)
		}
		return err
	}
	count := map[string]int{}
	var none []string
	for i, level := range levels {
		count[level]++
		if level == "NONE" {
			none = append(none, p.subjectOf(tables[i]))
		}
	}
	if len(none) > 0 {
		o.fail("", "compatibility NONE for "+list(none)+
			": the registry takes every schema, also one that consumers cannot read",
			"BACKWARD or stricter", `PUT {"compatibility": "BACKWARD"} to /config/<subject>`)
		return nil
	}
	o.ok("%s", levelsText(count))
	return nil
}

// subjectOf is the subject of a table's value schema.
func (p *probe) subjectOf(r *relation) string {
	topic := p.topicOf(r)
	return p.worker.Registry.Subject(topic, schema.AvroNamespace(topic)+".Envelope", false)
}

func levelsText(count map[string]int) string {
	var parts []string
	for _, level := range []string{
		"BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE",
	} {
		if count[level] > 0 {
			parts = append(parts, level+" for "+plural(count[level], "subject"))
		}
	}
	if len(parts) == 0 {
		return "no subject yet"
	}
	return strings.Join(parts, ", ")
}
