package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/connector/worker"
	"github.com/tidemark-cdc/tidemark/testenv"
	"github.com/tidemark-cdc/tidemark/testenv/avrocompat"
)

// site is a database, a broker and a registry, and a configuration file for them.
type site struct {
	t      *testing.T
	pg     *testenv.Postgres
	broker *testenv.FakeBroker
	file   string
	listen string
	db     string
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, pg: testenv.SharedPostgres(t, "18")}
	s.db = testenv.NewDatabase(t, s.pg)
	var err error
	if s.broker, err = testenv.StartFakeBroker(testenv.FakeBrokerOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.broker.Close() })
	reg, err := testenv.StartFakeRegistry(testenv.FakeRegistryOptions{Compatible: avrocompat.Check})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reg.Close() })
	s.exec("CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, 'one')")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.listen = l.Addr().String()
	_ = l.Close() // only its number is wanted
	dir := t.TempDir()
	secret := "pg=" + s.pg.Password + "\n"
	if err := os.WriteFile(filepath.Join(dir, "secrets"), []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	s.file = filepath.Join(dir, "tidemark.yaml")
	text := fmt.Sprintf(`worker:
  bootstrap.servers: %s
  schema.registry.url: %s
  http.listen: %s
connectors:
  shop:
    topic.prefix: shop
    database.hostname: %s
    database.port: %d
    database.user: %s
    database.password: ${file:%s/secrets:pg}
    database.dbname: %s
    slot.name: s_%[8]s
    slot.takeover.timeout.ms: 2000
    table.include.list: public.t
    catalog.check.interval.ms: 200
`, strings.Join(s.broker.Addrs(), ","), reg.URL, s.listen, s.pg.Host, s.pg.Port, s.pg.User, dir, s.db)
	if err := os.WriteFile(s.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *site) exec(sql ...string) {
	s.t.Helper()
	for _, q := range sql {
		if err := s.pg.Exec(context.Background(), s.db, q); err != nil {
			s.t.Fatalf("%s: %v", q, err)
		}
	}
}

// get returns status and body of a path of http.listen; 0 while nobody listens.
func (s *site) get(path string) (int, string) {
	s.t.Helper()
	client := http.Client{
		Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true},
	}
	answer, err := client.Get("http://" + s.listen + path)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

// until waits for a condition, as long as the process runs.
func (p *process) until(what string, ok func() bool) {
	p.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !ok() {
		select {
		case <-p.done:
			p.t.Fatalf("%s: the process ended with %d\n%s", what, p.end(), p.stderr.String())
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			_ = p.cmd.Process.Kill() // it may have ended
			<-p.done
			p.t.Fatalf("%s: not within a minute\n%s", what, p.stderr.String())
		}
	}
}

func (s *site) start() *process {
	s.t.Helper()
	p := startProcess(s.t, "run", "-c", s.file)
	s.streams(p)
	return p
}

// streams waits until a process streams.
func (s *site) streams(p *process) {
	s.t.Helper()
	p.until("/readyz", func() bool { status, _ := s.get("/readyz"); return status == http.StatusOK })
	p.until("the stream", func() bool { return strings.Contains(s.ready().State, "streaming") })
}

func (s *site) ready() worker.Status {
	_, body := s.get("/readyz")
	var answer struct{ Connectors []worker.Status }
	if err := json.Unmarshal([]byte(body), &answer); err != nil || len(answer.Connectors) != 1 {
		s.t.Fatalf("/readyz: %v: %s", err, body)
	}
	return answer.Connectors[0]
}

// events returns what `tail --json` prints, as op, before-image and history of each event.
func (s *site) events() (out []string) {
	s.t.Helper()
	status, text, errs := command(s.t, "tail", "-c", s.file, "--exit-at-end", "--json")
	if status != 0 {
		s.t.Fatalf("tail: exit %d, %s", status, errs)
	}
	for line := range strings.Lines(text) {
		var e struct {
			Value *struct {
				Op          string
				BeforeImage string `json:"before_image"`
				Source      struct{ History int }
			}
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			s.t.Fatalf("%v: %s", err, line)
		}
		if v := e.Value; v != nil {
			out = append(out, fmt.Sprintf("%s %s %d", v.Op, v.BeforeImage, v.Source.History))
		}
	}
	return out
}

func TestRunShowsItsHealthAndStopsInOrder(t *testing.T) {
	s := newSite(t)
	health := "http://" + s.listen + "/readyz"
	if status, _, errs := command(t, "health", "--url", health); status != 1 ||
		!strings.Contains(errs, "no answer") {
		t.Errorf("health before the start: exit %d, %s", status, errs)
	}
	p := s.start()
	s.exec("INSERT INTO t VALUES (2, 'two')", "DELETE FROM t WHERE id = 1")
	p.until("both changes", func() bool { return len(s.events()) == 3 })
	want := "r NOT_APPLICABLE 0, c NOT_APPLICABLE 0, d KEY 0"
	if got := strings.Join(s.events(), ", "); got != want {
		t.Errorf("events: %s", got)
	}
	if status, body := s.get("/healthz"); status != http.StatusOK || body != "ok\n" {
		t.Errorf("/healthz: %d %q", status, body)
	}
	if status, out, errs := command(t, "health", "--url", health); status != 0 || out+errs != "" {
		t.Errorf("health: exit %d, %s%s", status, out, errs)
	}
	p.until("the slot in /readyz", func() bool { return s.ready().Slot != nil })
	if r := s.ready(); r.Slot.Name != "s_"+s.db || r.Positions["stored"] == "" || r.Error != nil {
		t.Errorf("/readyz: %+v", r)
	}
	_, metrics := s.get("/metrics")
	for _, line := range []string{
		`tidemark_connector_state{connector="shop",state="streaming"} 1`,
		`tidemark_events_total{connector="shop",op="d",table="public.t"} 1`,
		`tidemark_snapshot_rows_total{connector="shop",table="public.t"} 1`,
		`tidemark_lsn{connector="shop",kind="stored"} `, "tidemark_build_info{", "go_goroutines ",
		`tidemark_slot_info{active="true",connector="shop"`,
	} {
		if !strings.Contains(metrics, line) {
			t.Errorf("/metrics has no %s", line)
		}
	}
	if status := p.stop(); status != 0 {
		t.Errorf("SIGTERM: exit %d\n%s", status, p.stderr.String())
	}
	for line := range strings.Lines(p.stderr.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("the log of a process without a terminal is not JSON: %s", line)
		}
	}
}

func TestF11ASecondProcessWaitsForTheSlotAndIsRefused(t *testing.T) {
	s := newSite(t)
	first := s.start()
	second := startProcess(t, "run", "-c", withoutHTTP(t, s.file))
	if status := second.end(); status != 3 ||
		!strings.Contains(second.stderr.String(), "slot_in_use") {
		t.Errorf("exit %d\n%s", status, second.stderr.String())
	}
	status, _, errs := command(t, "offsets", "reset", "-c", s.file, "--connector", "shop")
	if status != 3 || !strings.Contains(errs, "slot_in_use") {
		t.Errorf("a reset while it runs: exit %d, %s", status, errs)
	}
	if status := first.stop(); status != 0 {
		t.Errorf("the first: exit %d\n%s", status, first.stderr.String())
	}
}

// withoutHTTP copies a configuration without its listener, whose port is taken.
func withoutHTTP(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, "http.listen") {
			line = "  http.listen: \"\"\n"
		}
		text.WriteString(line)
	}
	out := filepath.Join(t.TempDir(), "tidemark.yaml")
	if err := os.WriteFile(out, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestTheWaysOutThatARefusalNames follows the error of a lost slot to where it leads.
func TestTheWaysOutThatARefusalNames(t *testing.T) {
	s := newSite(t)
	if status := s.start().stop(); status != 0 {
		t.Fatalf("exit %d", status)
	}
	s.exec(testenv.DropSlot("s_"+s.db), "INSERT INTO t VALUES (2, 'two')")
	refused := startProcess(t, "run", "-c", s.file)
	status := refused.end()
	says := refused.stderr.String()
	if status != 4 || !strings.Contains(says, "tidemark: slot_missing") ||
		!strings.Contains(says, "tidemark offsets reset") {
		t.Fatalf("exit %d\n%s", status, says)
	}
	status, out, _ := command(t, "offsets", "show", "-c", s.file)
	if status != 0 || !strings.Contains(out, "does not exist") {
		t.Errorf("offsets show: exit %d\n%s", status, out)
	}
	status, out, errs := command(t, "offsets", "reset", "-c", s.file, "--connector", "shop",
		"--new-history")
	if status != 0 || out+errs != "" {
		t.Fatalf("offsets reset: exit %d, %s%s", status, out, errs)
	}
	p := s.start()
	want := "r NOT_APPLICABLE 0, r NOT_APPLICABLE 1, r NOT_APPLICABLE 1"
	if got := strings.Join(s.events(), ", "); got != want {
		t.Errorf("events %s, want %s", got, want)
	}
	p.stop()

	// A publication that was made anew: accepted by a person's word.
	s.exec("DROP PUBLICATION tidemark", "CREATE PUBLICATION tidemark FOR TABLE t")
	refused = startProcess(t, "run", "-c", s.file)
	if status := refused.end(); status != 4 ||
		!strings.Contains(refused.stderr.String(), "tidemark offsets set --accept-publication") {
		t.Fatalf("exit %d\n%s", status, refused.stderr.String())
	}
	status, out, errs = command(t, "offsets", "set", "-c", s.file, "--connector", "shop",
		"--accept-publication")
	if status != 0 {
		t.Fatalf("offsets set: exit %d, %s%s", status, out, errs)
	}
	if status := s.start().stop(); status != 0 {
		t.Errorf("after accepting: exit %d", status)
	}
}
