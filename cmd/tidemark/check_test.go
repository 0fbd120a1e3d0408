package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/connector/preflight"
	"github.com/tidemark-cdc/tidemark/testenv"
)

func TestCheckExitsWith3AndReportsAllConnectors(t *testing.T) {
	file := commandConfig(t, &testenv.Postgres{Host: "127.0.0.1", Port: 1, User: "u"}, "")
	status, out, errs := command(t, "check", "-c", file)
	if status != 3 || !strings.Contains(out, "connector shop\n") ||
		!strings.Contains(out, "postgres_connection") || strings.Contains(errs, "tidemark:") {
		t.Errorf("exit %d\n%s\n%s", status, out, errs)
	}
	status, out, _ = command(t, "check", "-c", file, "--json")
	var answer struct {
		Connectors []preflight.Report `json:"connectors"`
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		t.Fatal(err)
	}
	if r := answer.Connectors[0]; status != 3 || r.Passed || r.Connector != "shop" || r.Errors != 3 {
		t.Errorf("exit %d, %+v", status, r)
	}
}

func TestCheckKnowsItsConnectors(t *testing.T) {
	file := commandConfig(t, &testenv.Postgres{Host: "127.0.0.1", Port: 1, User: "u"}, "")
	status, _, errs := command(t, "check", "-c", file, "--connector", "stock")
	if status != 2 || !strings.Contains(errs, `no connector "stock"`) ||
		!strings.Contains(errs, "shop") {
		t.Errorf("exit %d, %s", status, errs)
	}
	if status, _, errs = command(t, "check"); status != 2 || !strings.Contains(errs, "-c FILE") {
		t.Errorf("without a file: exit %d, %s", status, errs)
	}
}
