package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs a server on a free port of loopback and returns its address; it is stopped and waited
// for at the end of the test.
func serve(t *testing.T, reg prometheus.Gatherer, status func() []Status) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := New("127.0.0.1:0", reg, status)
	addr, err := s.Listen(ctx)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return addr.String()
}

func get(t *testing.T, addr, path, host string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, "http://"+addr+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if host != "" {
		req.Host = host
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(body)
}

func none() []Status { return nil }

func TestHealthzAnswersWithoutAnyConnector(t *testing.T) {
	addr := serve(t, prometheus.NewRegistry(), none)
	code, _, body := get(t, addr, "/healthz", "")
	if code != 200 || body != "ok\n" {
		t.Errorf("got %d %q", code, body)
	}
}

func TestReadyzNamesWhatIsWrong(t *testing.T) {
	age, retained := 3.5, int64(16777216)
	lost := fault.Wrap(fault.SlotLost, "slot tidemark was invalidated",
		errors.New(`duplicate key (email)=(ann@example.org)`)).
		With("wal_status lost", "reserved", "raise max_slot_wal_keep_size")
	statuses := []Status{
		{
			Connector: "shop", State: "streaming", Ready: true,
			Slot: &Slot{
				Name: "tidemark", WALStatus: "reserved", Active: true,
				RetainedWALBytes: &retained,
			},
			Positions:           map[string]string{"stored": "0/16B3748"},
			HeartbeatAgeSeconds: &age,
		},
		{
			Connector: "stock", State: "stopped",
			Reasons: []string{"the slot was lost"}, Error: ErrorOf(lost),
		},
	}
	addr := serve(t, prometheus.NewRegistry(), func() []Status { return statuses })
	code, header, body := get(t, addr, "/readyz", "")
	if code != http.StatusServiceUnavailable {
		t.Errorf("status %d", code)
	}
	if ct := header.Get("Content-Type"); ct != "application/json" {
		t.Errorf("Content-Type %q", ct)
	}
	want := `{
  "ready": false,
  "reasons": [
    "stock: the slot was lost"
  ],
  "connectors": [
    {
      "connector": "shop",
      "state": "streaming",
      "ready": true,
      "reasons": [],
      "slot": {
        "name": "tidemark",
        "wal_status": "reserved",
        "active": true,
        "retained_wal_bytes": 16777216,
        "safe_wal_bytes": null,
        "lag_bytes": null,
        "catalog_xmin_age": null
      },
      "positions": {
        "stored": "0/16B3748"
      },
      "heartbeat_age_seconds": 3.5,
      "snapshot_tables_remaining": null,
      "last_error": null
    },
    {
      "connector": "stock",
      "state": "stopped",
      "ready": false,
      "reasons": [
        "the slot was lost"
      ],
      "slot": null,
      "positions": null,
      "heartbeat_age_seconds": null,
      "snapshot_tables_remaining": null,
      "last_error": {
        "code": "slot_lost",
        "text": "slot tidemark was invalidated",
        "found": "wal_status lost",
        "wanted": "reserved",
        "fix": "raise max_slot_wal_keep_size"
      }
    }
  ]
}
`
	if d := cmp.Diff(want, body); d != "" {
		t.Error(d)
	}
}

func TestReadyzIs200WhenAllAreReady(t *testing.T) {
	addr := serve(t, prometheus.NewRegistry(), func() []Status {
		return []Status{
			{Connector: "shop", State: "snapshot", Ready: true},
			{
				Connector: "stock", State: "streaming", Ready: true,
				Reasons: []string{"public.old.* matches no table"},
			},
		}
	})
	code, _, body := get(t, addr, "/readyz", "")
	if code != 200 || !strings.Contains(body, "matches no table") {
		t.Errorf("got %d %s", code, body)
	}
}

func TestReadyzIs503WithoutConnectors(t *testing.T) {
	addr := serve(t, prometheus.NewRegistry(), none)
	code, _, body := get(t, addr, "/readyz", "")
	if code != 503 || !strings.Contains(body, "no connector is running") {
		t.Errorf("got %d %s", code, body)
	}
}

func TestErrorOfNeverShowsAnotherErrorsText(t *testing.T) {
	plain := errors.New("value 'secret' is out of range")
	inner := fault.Wrap(fault.PrivilegeMissing, "SELECT was refused", plain).
		With("", "", "GRANT SELECT ON t TO r")
	outer := fault.Wrap(fault.Internal, "snapshot of public.t", fmt.Errorf("reading: %w", inner))
	for err, want := range map[error]*Error{
		plain: {Code: fault.Internal, Text: "an unexpected error; the log has it"},
		outer: {
			Code: fault.Internal, Text: "snapshot of public.t: SELECT was refused",
			Fix: "GRANT SELECT ON t TO r",
		},
	} {
		if d := cmp.Diff(want, ErrorOf(err)); d != "" {
			t.Error(d)
		}
	}
	if ErrorOf(nil) != nil {
		t.Error("ErrorOf(nil) is not nil")
	}
}

func TestMetricsServesTheRegistry(t *testing.T) {
	reg := prometheus.NewRegistry()
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: "tidemark_x_total", Help: "x"})
	reg.MustRegister(c)
	c.Inc()
	addr := serve(t, reg, none)
	code, _, body := get(t, addr, "/metrics", "")
	if code != 200 || !strings.Contains(body, "tidemark_x_total 1\n") {
		t.Errorf("got %d %s", code, body)
	}
}

func TestForeignHostNamesAreRefusedOnLoopback(t *testing.T) {
	addr := serve(t, prometheus.NewRegistry(), none)
	for host, want := range map[string]int{
		"":                   200,
		"localhost":          200,
		"LOCALHOST:8083":     200,
		"localhost.":         200,
		"tidemark.localhost": 200,
		"127.0.0.1:8083":     200,
		"[::1]:8083":         200,
		"[::1]":              200,
		"10.1.2.3:8083":      200,
		"evil.example":       403,
		"evil.example:8083":  403,
		"localhost.evil.com": 403,
		"127.0.0.1.evil.com": 403,
		"notlocalhost":       403,
	} {
		if code, _, _ := get(t, addr, "/healthz", host); code != want {
			t.Errorf("Host %q: status %d, want %d", host, code, want)
		}
	}
}

func TestOnlyGetAndHeadAreServed(t *testing.T) {
	addr := serve(t, prometheus.NewRegistry(), none)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Post("http://"+addr+"/readyz", "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST gives %d", res.StatusCode)
	}
}

func TestTakenAddressIsAFaultThatNamesTheKey(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	err = New(l.Addr().String(), prometheus.NewRegistry(), none).Run(context.Background())
	if !fault.Has(err, fault.ConfigInvalid) || !strings.Contains(err.Error(), "http.listen") {
		t.Errorf("got %v", err)
	}
}

func TestRunLetsARunningRequestEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	inside, release := make(chan struct{}), make(chan struct{})
	s := New("127.0.0.1:0", prometheus.NewRegistry(), func() []Status {
		close(inside)
		<-release
		return []Status{{Connector: "shop", State: "streaming", Ready: true}}
	})
	addr, err := s.Listen(ctx)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	code := make(chan int, 1)
	go func() {
		c, _, _ := get(t, addr.String(), "/readyz", "")
		code <- c
	}()
	<-inside
	cancel()
	waitRefused(t, addr.String())
	close(release)
	if got := <-code; got != 200 {
		t.Errorf("the running request got %d", got)
	}
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
}

// waitRefused waits until the address takes no connection any more: the shutdown has begun.
func waitRefused(t *testing.T, addr string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		c, err := net.DialTimeout("tcp", addr, time.Second)
		if err != nil {
			return
		}
		c.Close()
	}
	t.Fatal("the listener is still open")
}
