package cases_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hamba/avro/v2"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/testenv"
	"github.com/tidemark-cdc/tidemark/testenv/avrocompat"
)

var update = flag.Bool("update", false, "write docs/ddl.md anew")

const ddlPage = "../../docs/ddl.md"

// levels are all that a registry has, NONE last.
var levels = []sr.CompatibilityLevel{
	sr.CompatBackward, sr.CompatBackwardTransitive, sr.CompatForward, sr.CompatForwardTransitive,
	sr.CompatFull, sr.CompatFullTransitive, sr.CompatNone,
}

// ddlSeen is what came of a statement in topics and registry under level NONE.
type ddlSeen struct {
	topics    []string
	events    map[string][]string // by topic, without the snapshot's
	versions  map[string][]string // by subject
	announced bool
}

// The page is what this test sees, so that it cannot be wrong: one connector streams while each
// statement is run; the versions of the schemas are then registered under each level.
func TestDDLPage(t *testing.T) {
	t.Parallel()
	r := newRig(t, testenv.SharedPostgres(t, "18"))
	seen := r.runDDL()
	registry, err := testenv.StartFakeRegistry(testenv.FakeRegistryOptions{Compatible: avrocompat.Check})
	if err != nil {
		t.Fatal(err)
	}
	defer registry.Close()
	var page strings.Builder
	page.WriteString(ddlIntro)
	for i, d := range ddls {
		fmt.Fprintf(&page, "| %s | %s |", d.title, announcement(&seen[i]))
		for _, cell := range refusals(t, registry.URL, i, &seen[i]) {
			fmt.Fprintf(&page, " %s |", cell)
		}
		page.WriteString("\n")
	}
	page.WriteString(ddlStops)
	for _, code := range r.runStops() {
		page.WriteString(code)
	}
	page.WriteString("\n## What is in topic and registry\n" + ddlLegend)
	for i := range ddls {
		page.WriteString(section(t, &ddls[i], &seen[i]))
	}
	file := filepath.FromSlash(ddlPage)
	if *update {
		if err := os.WriteFile(file, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "line of docs/ddl.md (-update writes it anew)", strings.Split(page.String(), "\n"),
		strings.Split(string(have), "\n")...)
}

// runDDL runs each of ddls under one connector and returns what came of them.
func (r *rig) runDDL() []ddlSeen {
	r.t.Helper()
	r.level(sr.CompatNone)
	r.exec("CREATE SCHEMA other", "CREATE PUBLICATION p FOR ALL TABLES WITH (publish_via_partition_root)")
	r.keys["table.include.list"] = `public\..*,other\..*`
	r.keys["publication.name"], r.keys["publication.autocreate.mode"] = "p", "disabled"
	name := func(i int) string { return fmt.Sprintf("d%02d", i) }
	for i, d := range ddls {
		r.exec(strings.ReplaceAll(d.before, "{t}", name(i)))
	}
	run := r.streaming()
	for i, d := range ddls {
		for _, sql := range []string{d.change, d.after} {
			for _, one := range strings.Split(strings.ReplaceAll(sql, "{t}", name(i)), ";") {
				if strings.HasPrefix(d.change, "BEGIN") && sql == d.change {
					one = strings.ReplaceAll(sql, "{t}", name(i)) // one transaction
				}
				if strings.TrimSpace(one) != "" {
					r.exec(one)
				}
				if strings.HasPrefix(one, "BEGIN") {
					break
				}
			}
		}
	}
	r.caughtUp(run)
	r.clean(run)
	seen := make([]ddlSeen, len(ddls))
	topics := r.topics()
	announcements := r.read("shop.tidemark-events")
	for i := range ddls {
		s := &seen[i]
		s.events, s.versions = map[string][]string{}, map[string][]string{}
		for _, topic := range topics {
			if !strings.HasPrefix(topic, "shop.public."+name(i)) &&
				!strings.HasPrefix(topic, "shop.other."+name(i)) {
				continue
			}
			s.topics = append(s.topics, topic)
			for _, e := range r.read(topic) {
				if e.value == nil || e.value["op"] != "r" {
					s.events[topic] = append(s.events[topic], e.String())
				}
			}
			for _, subject := range []string{topic + "-key", topic + "-value"} {
				s.versions[subject] = r.schemasOrNone(subject)
			}
		}
		for _, e := range announcements {
			tables, _ := e.value["tables"].([]any)
			s.announced = s.announced || strings.HasSuffix(fmt.Sprint(tables...), "."+name(i))
		}
	}
	return seen
}

// topics are the names of all topics, in order.
func (r *rig) topics() []string {
	r.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(r.broker.Addrs()...))
	if err != nil {
		r.t.Fatal(err)
	}
	defer client.Close()
	all, err := kadm.NewClient(client).ListTopics(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return all.Names()
}

// schemasOrNone is schemas, without a failure where there is no such subject.
func (r *rig) schemasOrNone(subject string) []string {
	r.t.Helper()
	if _, ok := r.registry.Registry().GetSchema(subject, 1); !ok {
		return nil
	}
	return r.schemas(subject)
}

// runStops runs each of stops under a connector of its own and returns the rows of the table.
func (r *rig) runStops() []string {
	r.t.Helper()
	rows := make([]string, len(stops))
	for i, d := range stops {
		own := newRig(r.t, r.pg)
		own.keys["catalog.check.interval.ms"] = "100"
		own.keys["publication.name"], own.keys["publication.autocreate.mode"] = "p", "disabled"
		own.exec(d.before)
		run := own.streaming()
		own.exec(strings.Split(d.change, "; ")...)
		select {
		case <-run.done:
		case <-time.After(60 * time.Second):
			r.t.Fatalf("%s: the connector goes on\nlog:\n%s", d.title, own.log.String())
		}
		rows[i] = fmt.Sprintf("| %s | `%s` | stops with `%s` |\n",
			d.title, inLine(d.change), fault.CodeOf(run.err))
	}
	return rows
}

func announcement(s *ddlSeen) string {
	if s.announced {
		return "yes"
	}
	return ""
}

// refusals registers the versions of a statement's subjects under each level, and says for each
// what the registry refuses; "" where there is nothing new to register.
func refusals(t *testing.T, url string, number int, s *ddlSeen) (cells []string) {
	t.Helper()
	client, err := sr.NewClient(sr.URLs(url))
	if err != nil {
		t.Fatal(err)
	}
	for _, level := range levels {
		var refused []string
		cell := ""
		for _, topic := range s.topics {
			for _, half := range []string{"key", "value"} {
				versions := s.versions[topic+"-"+half]
				if len(versions) < 2 {
					continue
				}
				cell = "accepted"
				subject := fmt.Sprintf("n%d-%v-%s-%s", number, level, topic, half)
				if !accepts(t, client, level, subject, versions) {
					refused = append(refused, half)
				}
			}
		}
		if refused != nil {
			cell = "**refused** (" + strings.Join(refused, ", ") + ")"
		}
		cells = append(cells, cell)
	}
	return cells
}

// accepts registers versions of a subject under a level.
func accepts(
	t *testing.T, client *sr.Client, level sr.CompatibilityLevel, subject string, versions []string,
) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for i, text := range versions {
		_, err := client.RegisterSchema(ctx, subject, sr.Schema{Schema: text}, -1, -1)
		var answer *sr.ResponseError
		if errors.As(err, &answer) && answer.StatusCode == http.StatusConflict {
			return false
		}
		if err != nil {
			t.Fatalf("%s, version %d: %v", subject, i+1, err)
		}
		if i > 0 {
			continue
		}
		for _, res := range client.SetCompatibility(ctx, sr.SetCompatibility{Level: level}, subject) {
			if res.Err != nil {
				t.Fatal(res.Err)
			}
		}
	}
	return true
}

// section is what the page says of one statement.
func section(t *testing.T, d *ddl, s *ddlSeen) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n### %s\n\n```sql\n", d.title)
	for _, sql := range []string{d.change, d.after} {
		if sql != "" {
			fmt.Fprintf(&b, "%s;\n", strings.ReplaceAll(inLines(sql), "{t}", "t"))
		}
	}
	b.WriteString("```\n\n```text\n")
	for _, topic := range s.topics {
		short := strings.TrimPrefix(topic, "shop.")
		for _, half := range []string{"key", "value"} {
			versions := s.versions[topic+"-"+half]
			for i, text := range versions {
				if len(versions) > 1 || half == "value" && len(s.topics) > 1 {
					fmt.Fprintf(&b, "%s-%s, version %d: %s\n", asT(short), half, i+1, fieldsOf(t, text))
				}
			}
		}
		for _, line := range s.events[topic] {
			fmt.Fprintf(&b, "%s: %s\n", asT(short), asT(line))
		}
	}
	b.WriteString("```\n")
	return b.String()
}

// asT takes the number of a statement's table out of a name.
func asT(text string) string {
	for i := range ddls {
		text = strings.ReplaceAll(text, fmt.Sprintf("d%02d", i), "t")
	}
	return text
}

// fieldsOf are the columns of a version, and their Avro types.
func fieldsOf(t *testing.T, text string) string {
	t.Helper()
	parsed, err := avro.ParseWithCache(text, "", &avro.SchemaCache{})
	if err != nil {
		t.Fatal(err)
	}
	record := parsed.(*avro.RecordSchema)
	if record.Name() == "Envelope" {
		before := record.Fields()[0].Type().(*avro.UnionSchema).Types()[1]
		record = before.(*avro.RecordSchema)
	}
	var out []string
	for _, f := range record.Fields() {
		of := f.Type()
		if union, ok := of.(*avro.UnionSchema); ok {
			of = union.Types()[1]
		}
		out = append(out, f.Name()+" "+typeOf(of))
	}
	return strings.Join(out, ", ")
}

func typeOf(s avro.Schema) string {
	if p, ok := s.(*avro.PrimitiveSchema); ok {
		switch l := p.Logical().(type) {
		case nil:
		case *avro.DecimalLogicalSchema:
			return fmt.Sprintf("decimal(%d,%d)", l.Precision(), l.Scale())
		default:
			return string(l.Type())
		}
	}
	return string(s.Type())
}

// inLine and inLines are SQL without the indentation of this file.
func inLine(sql string) string { return strings.Join(strings.Fields(sql), " ") }

func inLines(sql string) string {
	return strings.ReplaceAll(inLine(sql), "; ", ";\n")
}

const ddlIntro = `# DDL while the connector runs

Generated by ` + "`TestDDLPage`" + ` (testenv/cases) from what a connector, PostgreSQL 18 and a registry did; do
not edit.

The schema of an event is that of the Relation message in front of it in the stream, never that of
the catalog at the moment. A new version of a table's schema is registered before the first row with
it. Where the subject's level refuses it, the connector stops before that row with
` + "`schema_rejected`" + `, and nothing is lost: the slot keeps the WAL until the level is changed or the
topic's prefix is another (` + "`TestRealRegistryDDLPage`" + ` finds the same table on Apicurio's
registry, but that NONE of a subject means the global level there: set that). *Told* is a change that readers with an older schema may not notice: a warning, a metric
and an event on ` + "`<topic.prefix>.tidemark-events`" + `, or a stop with ` + "`schema.logical.change: fail`" + `.
Levels that the table does not show a word for have nothing new to look at.

| statement | told | BACKWARD | BACKWARD_TRANSITIVE | FORWARD | FORWARD_TRANSITIVE | FULL | FULL_TRANSITIVE | NONE |
|---|---|---|---|---|---|---|---|---|
`

const ddlStops = `
## Changes of the publication

Between them and the position rows may be missing, and nothing in the stream says so. With
` + "`on.slot.gap: resnapshot`" + ` the tables concerned are read again instead.

| change | statement | the connector |
|---|---|---|
`

const ddlLegend = `
The columns of each version with their Avro types, and the events that follow the initial snapshot,
each in one line: op, before_image, key, {after}, before{...}, old{before_key}; x is a tombstone, - is
null, ? is a column that is flagged UNAVAILABLE. Versions are shown where there is more than one, or
more than one topic.
`
