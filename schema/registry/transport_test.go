package registry

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// Another host or port, or a downgrade of the scheme, gets the request but not the credentials.
func TestF41RedirectsCarryNoCredentials(t *testing.T) {
	var authorization, body atomic.Value
	other := server(t, func(w http.ResponseWriter, req *http.Request) {
		b, _ := io.ReadAll(req.Body)
		authorization.Store(req.Header.Get("Authorization"))
		body.Store(string(b))
		_, _ = io.WriteString(w, `{"id":5}`)
	})
	s := server(t, func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Authorization") == "" {
			t.Error("the first host gets no credentials")
		}
		http.Redirect(w, req, other.URL+req.URL.Path, http.StatusTemporaryRedirect)
	})
	for _, o := range []Options{{User: "joe", Password: password}, {Bearer: password}} {
		o.URLs = []string{s.URL}
		c := newClient(t, o)
		registered(t, c, "t-key", schemaV2)
		if got := authorization.Load(); got != "" {
			t.Errorf("another host got %q", got)
		}
		if got := body.Load().(string); !strings.Contains(got, "fields") {
			t.Errorf("the redirected request lost its body: %q", got)
		}
	}
}

// A 301 makes a GET without a body of a POST in net/http; that must not look like an answer.
func TestF41RedirectThatDropsTheBodyIsAnError(t *testing.T) {
	s := server(t, func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodGet {
			t.Error("a POST became a GET")
		}
		http.Redirect(w, req, "/elsewhere", http.StatusMovedPermanently)
	})
	c := newClient(t, Options{URLs: []string{s.URL}})
	_, err := c.Register(t.Context(), "t-key", schemaV1)
	wantCode(t, err, fault.ConfigInvalid)
}

func TestURLsAreTriedInTurn(t *testing.T) {
	var broken atomic.Int64
	down := server(t, func(w http.ResponseWriter, _ *http.Request) {
		broken.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	c := newClient(t, Options{URLs: []string{down.URL, fake(t).URL()}})
	registered(t, c, "t-key", schemaV1)
	registered(t, c, "t-key", schemaV2)
	if n := broken.Load(); n != 1 {
		t.Errorf("the broken address was asked %d times; the one that answered goes first", n)
	}
}

func TestPathUserInfoAndEscaping(t *testing.T) {
	var path, user, agent atomic.Value
	s := server(t, func(w http.ResponseWriter, req *http.Request) {
		u, p, _ := req.BasicAuth()
		path.Store(req.URL.EscapedPath())
		user.Store(u + ":" + p)
		agent.Store(req.UserAgent())
		_, _ = io.WriteString(w, `{"id":1}`)
	})
	withUser := strings.Replace(s.URL, "http://", "http://joe:"+password+"@", 1)
	c := newClient(t, Options{URLs: []string{withUser + "/api/v1/"}, UserAgent: "tidemark/1"})
	registered(t, c, "a/b c%-value", schemaV1)
	if got := path.Load(); got != "/api/v1/subjects/a%2Fb%20c%25-value/versions" {
		t.Errorf("path %s", got)
	}
	if got := user.Load(); got != "joe:"+password {
		t.Errorf("user %s", got)
	}
	if got := agent.Load(); got != "tidemark/1" {
		t.Errorf("user agent %s", got)
	}
	s.Close()
	_, err := c.Register(t.Context(), "t-key", schemaV1)
	wantCode(t, err, fault.RegistryUnreachable)
}

func TestCompatibility(t *testing.T) {
	r := fake(t, srfake.WithGlobalCompat(sr.CompatBackward))
	c := newClient(t, Options{URLs: []string{r.URL()}})
	if level, err := c.Compatibility(t.Context(), "t-value"); err != nil || level != "BACKWARD" {
		t.Errorf("without a level of its own: %q, %v", level, err)
	}
	registered(t, c, "t-value", schemaV1)
	if err := r.SetCompat("t-value", sr.CompatFullTransitive); err != nil {
		t.Fatal(err)
	}
	level, err := c.Compatibility(t.Context(), "t-value")
	if err != nil || level != "FULL_TRANSITIVE" {
		t.Errorf("with one: %q, %v", level, err)
	}
	if err := c.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestCancelledContextIsNotAFault(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := newClient(t, Options{URLs: []string{"http://127.0.0.1:1"}})
	if _, err := c.Register(ctx, "t-key", schemaV1); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []Options{
		{},
		{URLs: []string{"localhost:8081"}},
		{URLs: []string{"ftp://x"}},
		{URLs: []string{"http://joe:" + password + "@[bad"}},
		{URLs: []string{"http://x"}, CAFile: "testdata/none.pem"},
	} {
		_, err := New(o)
		wantCode(t, err, fault.ConfigInvalid)
	}
}

func TestRetryAfterHeader(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"":                              0,
		"7":                             7 * time.Second,
		"-1":                            0,
		"86400":                         maxRetryAfter,
		"Fri, 02 Jan 2026 03:04:35 GMT": 30 * time.Second,
		"Fri, 02 Jan 2026 03:00:00 GMT": 0,
		"soon":                          0,
	} {
		if got := retryAfter(header, now); got != want {
			t.Errorf("%q: %s, want %s", header, got, want)
		}
	}
}
