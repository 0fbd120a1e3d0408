package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"
	"go.uber.org/goleak"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	schemaV1 = `{"type":"record","name":"Key","namespace":"shop.public.t","fields":[]}`
	schemaV2 = `{"type":"record","name":"Key","namespace":"shop.public.t",` +
		`"fields":[{"name":"id","type":"int"}]}`
	password = "hunter2"
)

func newClient(t *testing.T, o Options) *Client {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Second
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func fake(t *testing.T, opts ...srfake.Option) *srfake.Registry {
	t.Helper()
	r := srfake.New(opts...)
	t.Cleanup(r.Close)
	return r
}

func server(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func wantCode(t *testing.T, err error, code fault.Code) {
	t.Helper()
	if !fault.Has(err, code) {
		t.Fatalf("want %s, got %v", code, err)
	}
	if strings.Contains(err.Error(), password) {
		t.Fatalf("the error shows the password: %v", err)
	}
}

// registered asks for an id and fails the test without one.
func registered(t *testing.T, c *Client, subject, schema string) int {
	t.Helper()
	id, err := c.Register(t.Context(), subject, schema)
	if err != nil || id <= 0 {
		t.Fatalf("register: id %d, %v", id, err)
	}
	return id
}

func TestRegisterIsIdempotentAndCached(t *testing.T) {
	r := fake(t)
	var requests atomic.Int64
	r.Intercept(func(http.ResponseWriter, *http.Request) bool { requests.Add(1); return false })
	c := newClient(t, Options{URLs: []string{r.URL()}})
	id := registered(t, c, "t-key", schemaV1)
	if again := registered(t, c, "t-key", schemaV1); again != id {
		t.Errorf("second time id %d, first %d", again, id)
	}
	if n := requests.Load(); n != 1 {
		t.Errorf("%d requests for one schema", n)
	}
	other := newClient(t, Options{URLs: []string{r.URL()}})
	if again := registered(t, other, "t-key", schemaV1); again != id {
		t.Errorf("another client gets id %d, first %d", again, id)
	}
	if text, err := c.SchemaByID(t.Context(), id); err != nil || text != schemaV1 {
		t.Errorf("schema by id: %q, %v", text, err)
	}
	before := requests.Load()
	if _, err := c.SchemaByID(t.Context(), id); err != nil || requests.Load() != before {
		t.Errorf("schema by id is not cached: %v", err)
	}
}

// K17 (a): the registry stores the schema and answers 500; the repeat has its body and gives the
// same id, and there is one version.
func TestF41StoredThoughAnswered500(t *testing.T) {
	r := fake(t)
	var failed atomic.Bool
	r.Intercept(func(w http.ResponseWriter, req *http.Request) bool {
		if req.Method != http.MethodPost || failed.Swap(true) {
			return false
		}
		var body sr.Schema
		if err := json.NewDecoder(req.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		if _, _, err := r.RegisterSchema("t-key", body); err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, `{"error_code":50002,"message":"Operation timed out"}`)
		return true
	})
	c := newClient(t, Options{URLs: []string{r.URL()}})
	_, err := c.Register(t.Context(), "t-key", schemaV2)
	wantCode(t, err, fault.RegistryUnreachable)
	if !strings.Contains(err.Error(), "50002") || !strings.Contains(err.Error(), "timed out") {
		t.Errorf("the registry's own words are missing: %v", err)
	}
	id := registered(t, c, "t-key", schemaV2)
	first, ok := r.GetSchema("t-key", 1)
	if !ok || first.ID != id {
		t.Errorf("version 1 is %+v, the id %d", first, id)
	}
	if _, ok := r.GetSchema("t-key", 2); ok {
		t.Error("there is a second version")
	}
}

// K17 (b): nothing listens, then something does: no restart is needed.
func TestF40RefusedThenBack(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	c := newClient(t, Options{URLs: []string{"http://" + address}})
	_, err = c.Register(t.Context(), "t-key", schemaV1)
	wantCode(t, err, fault.RegistryUnreachable)

	if listener, err = net.Listen("tcp", address); err != nil {
		t.Skip("the port was taken in the meantime")
	}
	s := httptest.NewUnstartedServer(srfake.NewRegistry().Handler())
	_ = s.Listener.Close()
	s.Listener = listener
	s.Start()
	t.Cleanup(s.Close)
	registered(t, c, "t-key", schemaV1)
}

// K17 (c): a registry that never answers holds a call for the timeout, not longer.
func TestF41HangIsBounded(t *testing.T) {
	release := make(chan struct{})
	s := server(t, func(_ http.ResponseWriter, req *http.Request) {
		select {
		case <-release:
		case <-req.Context().Done():
		}
	})
	defer close(release)
	c := newClient(t, Options{URLs: []string{s.URL}, Timeout: 50 * time.Millisecond})
	begun := time.Now()
	_, err := c.Register(t.Context(), "t-key", schemaV1)
	wantCode(t, err, fault.RegistryUnreachable)
	if d := time.Since(begun); d > 3*time.Second {
		t.Errorf("the call took %s", d)
	}
}

// K17 (d): 429 with Retry-After: the error says how long, and the next call waits.
func TestF41RetryAfterIsHonoured(t *testing.T) {
	r := fake(t)
	var refused atomic.Bool
	r.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
		if refused.Swap(true) {
			return false
		}
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	})
	c := newClient(t, Options{URLs: []string{r.URL()}})
	begun := time.Now()
	_, err := c.Register(t.Context(), "t-key", schemaV1)
	wantCode(t, err, fault.RegistryUnreachable)
	if d := RetryAfter(err); d != time.Second {
		t.Errorf("RetryAfter is %s", d)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := c.Register(ctx, "t-key", schemaV1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the wait does not end with its context: %v", err)
	}
	registered(t, c, "t-key", schemaV1)
	if d := time.Since(begun); d < 900*time.Millisecond {
		t.Errorf("the next request came after %s", d)
	}
}

// K17 (e): 401 and 403 are for a person to mend, and no credential is shown.
func TestCredentialsRefused(t *testing.T) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		s := server(t, func(w http.ResponseWriter, req *http.Request) {
			user, pass, _ := req.BasicAuth()
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"error_code":40101,"message":"`+user+":"+pass+`"}`)
		})
		c := newClient(t, Options{URLs: []string{s.URL}, User: "joe", Password: password})
		_, err := c.Register(t.Context(), "t-key", schemaV1)
		wantCode(t, err, fault.AuthenticationFailed)
		wantCode(t, c.Ping(t.Context()), fault.AuthenticationFailed)
	}
}

func TestF42IncompatibleSchemaNamesSubjectLevelAndWaysOut(t *testing.T) {
	r := fake(t, srfake.WithGlobalCompat(sr.CompatFull))
	r.Intercept(func(w http.ResponseWriter, req *http.Request) bool {
		if req.Method != http.MethodPost {
			return false
		}
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, `{"error_code":409,"message":"reader field 'id' has no default"}`)
		return true
	})
	c := newClient(t, Options{URLs: []string{r.URL()}})
	_, err := c.Register(t.Context(), "shop.public.t-value", schemaV2)
	wantCode(t, err, fault.SchemaRejected)
	for _, part := range []string{
		"shop.public.t-value", "FULL", "reader field 'id' has no default",
		"/config/shop.public.t-value", "NONE",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is missing in %v", part, err)
		}
	}
}

func TestF43InvalidSchemaIsRejected(t *testing.T) {
	s := server(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = io.WriteString(w, `{"error_code":42205,"message":"Subject is in READONLY mode"}`)
	})
	c := newClient(t, Options{URLs: []string{s.URL}})
	_, err := c.Register(t.Context(), "t-key", schemaV1)
	wantCode(t, err, fault.SchemaRejected)
	if !strings.Contains(err.Error(), "READONLY") {
		t.Error(err)
	}
}

// What answers 413, the registry or a proxy with a page of its own, is a registry all the same.
func TestSchemaThatIsTooLargeIsRejected(t *testing.T) {
	s := server(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		_, _ = io.WriteString(w, "<html>413 Request Entity Too Large</html>")
	})
	c := newClient(t, Options{URLs: []string{s.URL}})
	_, err := c.Register(t.Context(), "t-value", schemaV2)
	wantCode(t, err, fault.SchemaRejected)
	for _, part := range []string{"subject t-value", fmt.Sprint(len(schemaV2)) + " bytes, HTTP 413", "column.exclude.list"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is missing in %v", part, err)
		}
	}
}

// A 200 without an id must not become id 0 in every record.
func TestF41AnswerWithoutIDIsNotCached(t *testing.T) {
	var answers atomic.Int64
	s := server(t, func(w http.ResponseWriter, _ *http.Request) {
		if answers.Add(1) == 1 {
			_, _ = io.WriteString(w, `{}`)
			return
		}
		_, _ = io.WriteString(w, `{"id":12}`)
	})
	c := newClient(t, Options{URLs: []string{s.URL}})
	id, err := c.Register(t.Context(), "t-key", schemaV1)
	wantCode(t, err, fault.RegistryUnreachable)
	if id != 0 {
		t.Errorf("id %d with an error", id)
	}
	if id := registered(t, c, "t-key", schemaV1); id != 12 {
		t.Errorf("id %d", id)
	}
}

func TestF41NotARegistry(t *testing.T) {
	s := server(t, http.NotFound)
	c := newClient(t, Options{URLs: []string{s.URL}})
	_, err := c.Register(t.Context(), "t-key", schemaV1)
	wantCode(t, err, fault.ConfigInvalid)
	_, err = c.SchemaByID(t.Context(), 1)
	wantCode(t, err, fault.ConfigInvalid)
}

func TestF44UnknownIDIsErrNotFound(t *testing.T) {
	c := newClient(t, Options{URLs: []string{fake(t).URL()}})
	if _, err := c.SchemaByID(t.Context(), 99); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
}
