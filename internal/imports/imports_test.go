// Package imports holds the rules of the tree: which package may import which, and who may speak
// to PostgreSQL and to Kafka. They are tested here rather than remembered.
package imports

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/tidemark-cdc/tidemark/"

// allowed lists, for each package of ours, the packages of ours that it may import. Whatever is
// not listed may import nothing of ours; `cmd/...` and testenv may import anything.
var allowed = map[string][]string{
	"internal/fault":     {},
	"schema":             {"internal/fault"},
	"schema/catalog":     {"internal/fault", "schema"},
	"schema/registry":    {"internal/fault"},
	"offsets":            {"internal/fault"},
	"config":             {"internal/fault"},
	"internal/pgdial":    {"internal/fault", "config", "schema"},
	"internal/kafkadial": {"internal/fault", "config"},
	"connector/decode":   {"internal/fault", "schema", "offsets"},
	"connector/capture":  {"internal/fault", "internal/pgdial", "config", "offsets"},
	"envelope":           {"internal/fault", "connector/decode", "schema", "offsets"},
	"connector/snapshot": {"internal/fault", "internal/pgdial", "schema", "offsets", "config"},
	"connector/reselect": {
		"internal/fault", "internal/pgdial", "config", "schema", "connector/decode",
		"connector/snapshot",
	},
	"connector/deliver":  {"internal/fault", "internal/kafkadial", "envelope", "offsets", "config"},
	"connector/source":   {"internal/fault", "internal/pgdial", "offsets", "config"},
	"connector/consume":  {"internal/fault", "internal/kafkadial", "config", "offsets"},
	"connector/converge": {"internal/fault", "internal/kafkadial", "config", "envelope"},
	"connector/metrics":  {"internal/fault"},
	"connector/worker":   {"internal/fault"},
	"connector/preflight": {
		"internal/fault", "internal/pgdial", "internal/kafkadial", "config", "offsets",
		"schema", "schema/catalog", "schema/registry", "connector/capture", "connector/source",
	},
	"connector": {
		"internal/fault", "internal/pgdial", "internal/kafkadial", "config", "offsets", "envelope",
		"schema", "schema/catalog", "schema/registry", "connector/capture", "connector/decode",
		"connector/snapshot", "connector/source", "connector/deliver", "connector/metrics",
		"connector/worker", "connector/converge", "connector/reselect",
	},
}

// peers lists who may speak to a server, by the module of the client.
var peers = map[string][]string{
	"github.com/jackc/pgx/v5": {
		"connector/capture", "connector/snapshot", "connector/source", "connector/preflight",
		"connector/reselect", "schema/catalog", "internal/pgdial",
	},
	"github.com/twmb/franz-go/pkg/kgo": {
		"connector/deliver", "connector/consume", "connector/converge", "connector/preflight",
		"offsets", "internal/kafkadial",
	},
}

func TestImportDirections(t *testing.T) {
	out, err := exec.Command("go", "list", "-f",
		`{{.ImportPath}}|{{join .Imports " "}}`, module+"...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		name, list, _ := strings.Cut(strings.TrimSpace(line), "|")
		name = strings.TrimPrefix(name, module)
		if strings.HasPrefix(name, "cmd/") || strings.HasPrefix(name, "testenv") ||
			name == "internal/imports" {
			continue
		}
		may, known := allowed[name]
		if !known {
			t.Errorf("package %s has no row in the table of imports", name)
		}
		for _, imp := range strings.Fields(list) {
			if own, ok := strings.CutPrefix(imp, module); ok && !slices.Contains(may, own) {
				t.Errorf("%s may not import %s", name, own)
			}
			for client, who := range peers {
				if (imp == client || strings.HasPrefix(imp, client+"/")) && !slices.Contains(who, name) {
					t.Errorf("%s may not speak through %s", name, imp)
				}
			}
		}
	}
}
