package proof_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/testenv"
	"github.com/tidemark-cdc/tidemark/testenv/proof"
	"github.com/tidemark-cdc/tidemark/testenv/workload"
)

// leaping is what a wall clock does that leaps, over that of the Go version that builds: from the
// eighth second of a process on it is a day behind for four seconds, then a day ahead for four.
const (
	steadyClock  = "\tsec, nsec, mono := runtimeNow()\n"
	leapingClock = steadyClock + `	if since := mono - startNano; mono != 0 {
		switch {
		case since > 8e9 && since < 12e9:
			sec -= 86400
		case since >= 12e9 && since < 16e9:
			sec += 86400
		}
	}
`
)

// leapingCommand builds the command with that clock.
func leapingCommand(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(strings.TrimSpace(string(out)), "src", "time", "time.go")
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	now, rest, ok := strings.Cut(string(text), "func Now() Time {\n")
	if !ok || !strings.HasPrefix(rest, steadyClock) {
		t.Fatalf("time.Now of %s is not the one that this test knows", source)
	}
	dir := t.TempDir()
	changed, overlay := filepath.Join(dir, "time.go"), filepath.Join(dir, "overlay.json")
	text = []byte(now + "func Now() Time {\n" + strings.Replace(rest, steadyClock, leapingClock, 1))
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{source: changed}})
	if err == nil {
		err = os.WriteFile(changed, text, 0o600)
	}
	if err == nil {
		err = os.WriteFile(overlay, replace, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "tidemark")
	if out, err := exec.Command("go", "build", "-overlay", overlay, "-o", binary,
		"github.com/tidemark-cdc/tidemark/cmd/tidemark").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// The wall clock leaps back by a day, ahead by two and back again while rows flow: all promises
// hold, and no session ends of it.
func TestF17TheWallClockLeaps(t *testing.T) {
	if os.Getenv("TIDEMARK_TEST_ALL") == "" {
		t.Skip("TIDEMARK_TEST_ALL is not set: it compiles everything with another clock")
	}
	binary := leapingCommand(t)
	for mode, support := range map[string]string{
		"at_least_once": "disabled", "exactly_once": "required",
	} {
		t.Run(mode, func(t *testing.T) {
			r, broker := newRigAndBroker(t, workload.Options{Seed: 4, Keys: 200},
				map[string]string{"exactly.once.support": support})
			r.Binary = binary
			overLeaps(t, r, broker)
		})
	}
}

func overLeaps(t *testing.T, r *proof.Rig, broker *testenv.FakeBroker) {
	t.Helper()
	sampler := r.Sampler()
	began := time.Now()
	start(t, r)
	for time.Since(began) < 18*time.Second {
		if err := r.Workload.Run(t.Context(), 200); err != nil {
			t.Fatal(err)
		}
	}
	judge(t, r, sampler, 30*time.Second)
	log, err := os.ReadFile(r.Log())
	if err != nil {
		t.Fatal(err)
	}
	if text := string(log); strings.Contains(text, "another one begins") {
		t.Errorf("a session ended:\n%s", r.LogTail())
	}
	var latest int64 // of the positions' records, by the connector's clock
	for p := range int32(64) {
		if info := broker.Cluster().PartitionInfo("tidemark-offsets", p); info != nil {
			latest = max(latest, info.MaxTimestamp)
		}
	}
	if ahead := time.Until(time.UnixMilli(latest)); ahead < 12*time.Hour {
		t.Errorf("the connector's clock was never more than %s ahead", ahead)
	}
}
