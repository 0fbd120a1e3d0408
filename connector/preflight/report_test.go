package preflight

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestJSON holds the field names: programs read them.
func TestJSON(t *testing.T) {
	r := Report{Connector: "shop", Passed: true, Findings: []Finding{}}
	r.add(Finding{
		Check: "wal_level", Area: "server", Severity: Error, Status: Failed, Code: "wal_level",
		Object: "o", Found: "replica", Wanted: "logical", Fix: "ALTER SYSTEM ...",
	})
	r.add(Finding{Check: "toast", Area: "tables", Severity: Info, Status: Failed, Found: "f"})
	r.add(Finding{Check: "slot_bound", Area: "slot", Severity: Warning, Status: Unknown})
	r.add(Finding{Check: "slot", Area: "slot", Severity: Error, Status: NotChecked})
	r.add(Finding{Check: "encoding", Area: "server", Severity: Warning, Status: OK})
	got, err := json.MarshalIndent(&r, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
 "connector": "shop",
 "passed": false,
 "errors": 1,
 "warnings": 1,
 "not_checked": 1,
 "findings": [
  {
   "check": "wal_level",
   "area": "server",
   "severity": "error",
   "status": "failed",
   "code": "wal_level",
   "object": "o",
   "found": "replica",
   "wanted": "logical",
   "fix": "ALTER SYSTEM ..."
  },
  {
   "check": "toast",
   "area": "tables",
   "severity": "info",
   "status": "failed",
   "found": "f"
  },
  {
   "check": "slot_bound",
   "area": "slot",
   "severity": "warning",
   "status": "unknown"
  },
  {
   "check": "slot",
   "area": "slot",
   "severity": "error",
   "status": "not_checked"
  },
  {
   "check": "encoding",
   "area": "server",
   "severity": "warning",
   "status": "ok"
  }
 ]
}`
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Error(d)
	}
	if r.Exit() != 3 {
		t.Errorf("exit %d", r.Exit())
	}
}

// TestOnlyErrorsDecideTheExit: warnings and what was not checked do not.
func TestOnlyErrorsDecideTheExit(t *testing.T) {
	r := Report{Passed: true}
	r.add(Finding{Severity: Warning, Status: Failed})
	r.add(Finding{Severity: Error, Status: NotChecked})
	if r.Exit() != 0 {
		t.Errorf("exit %d without an error", r.Exit())
	}
	r.add(Finding{Severity: Error, Status: Unknown})
	if r.Exit() != 3 {
		t.Errorf("a check of severity error that could not be made: exit %d", r.Exit())
	}
}

// TestTheTableOfChecks: every row is complete, and no name is there twice.
func TestTheTableOfChecks(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range checks {
		if c.id == "" || c.area == "" || c.what == "" || c.run == nil || seen[c.id] {
			t.Errorf("row %q is incomplete or there twice", c.id)
		}
		seen[c.id] = true
		if (c.severity == Error) != (c.code != noCode) {
			t.Errorf("%s: severity %s with code %q", c.id, c.severity, c.code)
		}
	}
}
