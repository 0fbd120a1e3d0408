package main

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/connector/metrics"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/testenv"
)

var update = flag.Bool("update", false, "write the generated pages of docs")

const generated = "<!-- Generated: go test ./cmd/tidemark -run TestGenerated -update -->\n\n"

// TestGeneratedPages holds docs/codes.md and docs/metrics.md to the tables in the code.
func TestGeneratedPages(t *testing.T) {
	for name, want := range map[string]string{"codes.md": codesPage(), "metrics.md": metricsPage(t)} {
		file := filepath.Join(repository, "docs", name)
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, string(got)); d != "" {
			t.Errorf("%s is out of date (run with -update):\n%s", name, d)
		}
	}
}

func codesPage() string {
	var b strings.Builder
	b.WriteString("# Codes and exit statuses\n\n" + generated)
	b.WriteString(strings.TrimLeft(`
Every error that ends a connector has one of these codes: the same on standard error, in the log, in
`+"`/readyz` and in `tidemark_errors_total{code}`"+`. The code decides the exit status of the
process. With several connectors it is the highest of those that ended.

| exit | meaning |
|---|---|
| 0 | done, or stopped by SIGINT or SIGTERM |
| 1 | failed while running |
| 2 | wrong usage or configuration |
| 3 | something must be set up first; no data is in doubt |
| 4 | a person must decide: history may be missing, or is not ours |

| exit | code | meaning |
|---|---|---|
`, "\n"))
	for _, row := range fault.Table {
		fmt.Fprintf(&b, "| %d | `%s` | %s |\n", row.Exit, row.Code, row.Meaning)
	}
	return b.String()
}

// metricsPage lists every family, from a registry in which each has a series.
func metricsPage(t *testing.T) string {
	reg := prometheus.NewRegistry()
	set := metrics.New(reg)
	set.BuildInfo("1.0.0")
	c, one := set.Connector("shop"), int64(1)
	c.State("streaming")
	c.LSN(metrics.LSNServer, 1)
	c.Slot(metrics.SlotSample{
		LagBytes: &one, RetainedBytes: &one, SafeBytes: &one, CatalogXminAge: &one,
	})
	c.QueueLimit(1)
	c.Heartbeat(metrics.HeartbeatOK)
	c.HeartbeatEchoed(time.Now())
	c.Reconnect(metrics.TargetPostgres)
	c.PartitionChange()
	c.SchemaRegistration(metrics.RegistrationOK)
	c.Gap(fault.SlotMissing)
	c.Error(fault.Internal)
	c.UnmatchedRelation()
	c.Table("public.orders").Unread("row_gone", 1)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("# Metrics\n\n" + generated)
	b.WriteString(strings.TrimLeft(`
`+"`/metrics`"+` has these, and the Go and process collectors. What is not known has no series: a
slot that was lost has no lag, so watch `+"`tidemark_slot_info{wal_status=\"lost\"}`"+` too.

| name | type | labels | meaning |
|---|---|---|---|
`, "\n"))
	for _, f := range families {
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, "`"+l.GetName()+"`")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.GetName(),
			strings.ToLower(f.GetType().String()), strings.Join(labels, ", "), f.GetHelp())
	}
	return b.String()
}

// TestReadmeNamesWhatExists holds every command, flag, metric and file that the README names to
// what there is.
func TestReadmeNamesWhatExists(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(repository, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	readme := string(b)
	for _, line := range regexp.MustCompile("tidemark((?: --?[a-z-]+| [a-z]+)+)").
		FindAllStringSubmatch(readme, -1) {
		words := strings.Fields(line[1])
		cmd, _, err := newRootCmd().Find(words)
		if err != nil || cmd.Name() == "tidemark" {
			continue // prose: "tidemark is ..."
		}
		for _, w := range words {
			if strings.HasPrefix(w, "--") && !hasFlag(cmd, strings.TrimPrefix(w, "--")) {
				t.Errorf("%q: %s has no flag %s", line[0], cmd.Name(), w)
			}
		}
	}
	families := metricsPage(t)
	for _, name := range regexp.MustCompile(`tidemark_[a-z_]+[a-z]`).FindAllString(readme, -1) {
		if !strings.Contains(families, "`"+name+"`") {
			t.Errorf("there is no metric %s", name)
		}
	}
	for _, link := range regexp.MustCompile(`\]\(([a-zA-Z][^)#:]*)\)`).
		FindAllStringSubmatch(readme, -1) {
		if _, err := os.Stat(filepath.Join(repository, link[1])); err != nil {
			t.Errorf("the link %s leads nowhere: %v", link[1], err)
		}
	}
	for _, code := range regexp.MustCompile("`([a-z]+_[a-z_]+)`").FindAllStringSubmatch(readme, -1) {
		known := slices.ContainsFunc(fault.Table, func(r fault.Row) bool {
			return string(r.Code) == code[1]
		})
		if !known && !strings.HasPrefix(code[1], "tidemark_") && !slices.Contains(otherNames, code[1]) {
			t.Errorf("%s is neither a code nor a name that the README may use", code[1])
		}
	}
}

// A promise whose test was renamed or deleted is one that nobody holds any more.
func TestReadmeNamesTestsThatExist(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(repository, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string]bool{}
	declaration := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err = filepath.WalkDir(repository, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range declaration.FindAllSubmatch(source, -1) {
			declared[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile("`(Test\\w+)`").FindAllSubmatch(readme, -1)
	if len(names) < 30 {
		t.Errorf("the README names %d tests: the section Guarantees is gone", len(names))
	}
	for _, m := range names {
		if !declared[string(m[1])] {
			t.Errorf("there is no test %s", m[1])
		}
	}
}

// otherNames are the names with underscores in the README that are no codes.
var otherNames = []string{
	"before_image", "before_key", "column_states", "commit_lsn", "event_index", "lsn_commit",
	"max_slot_wal_keep_size", "idle_replication_slot_timeout", "publish_via_partition_root", "ts_ms",
	"pg_recvlogical",
}

// TestReadmeConfiguration loads the README's own configuration; its files are made up here.
func TestReadmeConfiguration(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(repository, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(b), "```yaml\n# tidemark.yaml\n")
	text, _, _ = strings.Cut(text, "```")
	dir := t.TempDir()
	certs, err := testenv.NewCertificates(dir)
	if err != nil {
		t.Fatal(err)
	}
	secrets := filepath.Join(dir, "secrets.properties")
	for name, content := range map[string]string{
		secrets: "kafka=k\nregistry=user:r\npostgres=p\n",
		filepath.Join(dir, "tidemark.yaml"): strings.NewReplacer(
			"/run/secrets/tidemark.properties", secrets, "/etc/ssl/kafka-ca.pem", certs.CAFile,
			"/etc/ssl/postgres-ca.pem", certs.CAFile).Replace(text),
	} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	settings, warnings, err := config.Load(filepath.Join(dir, "tidemark.yaml"), nil)
	if err != nil || len(warnings) > 0 {
		t.Fatalf("%v, warnings %v", err, warnings)
	}
	c := settings.Connectors[0]
	if c.Database.SSLMode != "verify-full" || c.Database.Password.Reveal() != "p" ||
		settings.Worker.Kafka.SASLPassword.Reveal() != "k" ||
		settings.Worker.Registry.Password.Reveal() != "r" {
		t.Errorf("sslmode %q, or a secret that did not arrive", c.Database.SSLMode)
	}
}

func hasFlag(cmd *cobra.Command, name string) bool {
	return name == "help" || cmd.Flags().Lookup(name) != nil ||
		cmd.InheritedFlags().Lookup(name) != nil
}
