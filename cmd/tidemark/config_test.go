package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// runConfig runs `tidemark config ARGS`.
func runConfig(args ...string) (stdout string, err error) {
	var out bytes.Buffer
	cmd := newConfigCmd()
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	err = cmd.Execute()
	return out.String(), err
}

const goodConfig = `worker:
  bootstrap.servers: localhost:9092
  schema.registry.url: http://localhost:8081
connectors:
  shop:
    topic.prefix: shop
    database.hostname: localhost
    database.user: u
    database.dbname: shop
`

func TestConfigValidate(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "t.yaml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(goodConfig)
	if out, err := runConfig("validate", "-c", file); err != nil || out != "" {
		t.Errorf("a good file: %q, %v", out, err)
	}
	write(goodConfig + "    max.batch.size: 1\n")
	want := "warning: " + file + ":10: connectors.shop: max.batch.size: without effect: " +
		"max.queue.bytes bounds everything that is read and not confirmed\n"
	if out, err := runConfig("validate", "-c", file); err != nil || out != want {
		t.Errorf("a warning: %q, %v", out, err)
	}
	write(goodConfig + "    slot.nam: x\n    database.port: 0\n")
	_, err := runConfig("validate", "-c", file)
	if exitStatus(err) != 2 || !strings.Contains(err.Error(), "2 violations") {
		t.Errorf("a bad file: %v", err)
	}
	out, err := runConfig("validate", "-c", file, "--json")
	var document struct {
		Valid      bool
		Violations []struct {
			File, Where, Key, Found, Wanted, Fix string
			Line                                 int
		}
		Warnings []struct{}
	}
	if jsonErr := json.Unmarshal([]byte(out), &document); jsonErr != nil {
		t.Fatalf("%v: %s", jsonErr, out)
	}
	if exitStatus(err) != 2 || document.Valid || len(document.Violations) != 2 ||
		document.Violations[0].Key != "slot.nam" || document.Violations[0].Line != 10 ||
		document.Warnings == nil {
		t.Errorf("as JSON: %s, %v", out, err)
	}
	if _, err = runConfig("validate"); fault.CodeOf(err) != fault.ConfigInvalid {
		t.Errorf("without -c: %v", err)
	}
}

func TestConfigKeysAndSchema(t *testing.T) {
	out, err := runConfig("keys", "heartbeat.interval")
	if err != nil || !strings.Contains(out, "# Connector: position and heartbeat\n"+
		"heartbeat.interval.ms") || !strings.Contains(out, "10000") {
		t.Errorf("keys: %q, %v", out, err)
	}
	out, err = runConfig("keys", "plugin.name", "--json")
	if err != nil || !strings.Contains(out, `"class": "refused"`) || !json.Valid([]byte(out)) {
		t.Errorf("keys --json: %q, %v", out, err)
	}
	out, err = runConfig("schema")
	if err != nil || !json.Valid([]byte(out)) {
		t.Errorf("schema: %.80q, %v", out, err)
	}
	if _, err = runConfig("keys", "a", "b"); exitStatus(err) != 2 {
		t.Errorf("two texts: %v", err)
	}
}
