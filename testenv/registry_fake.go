package testenv

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"
)

// FakeRegistryOptions say how a registry in the process differs from the usual one. The zero value
// takes every schema, and asks for neither a password nor TLS.
type FakeRegistryOptions struct {
	// Compatible is asked, as avrocompat.Check answers, before a schema is stored; nil takes all.
	Compatible func(level sr.CompatibilityLevel, next, last string) (reason, err error)

	User, Password string // basic authentication, where User is set
	TLS            bool   // https, with a certificate of CAFile's authority
	Path           string // what stands before the API's paths, as "/apis/ccompat/v7"
}

// A FakeRegistry is a schema registry with Confluent's API in this process. The store is srfake's; what
// that lacks is added here: compatibility can be checked (its own check answers yes always), a wrong
// password gets 401, and faults can be injected. Its methods may be called from several goroutines.
type FakeRegistry struct {
	URL    string
	CAFile string // the authority of its certificate; "" without TLS

	registry *srfake.Registry
	options  FakeRegistryOptions
	server   *httptest.Server
	dir      string
	closing  chan struct{} // ends the requests that hang
	once     sync.Once

	mu       sync.Mutex
	faults   []*RegistryFault
	requests []string
}

// A RegistryFault is what a registry does in place of answering. Method and Path select requests,
// Path by a part of it; empty means any.
type RegistryFault struct {
	Method, Path string
	Count        int // how many requests it meets; 0 is one, below 0 all

	Status       int    // the answer's status, with ErrorCode and Message in its body
	ErrorCode    int    // 0 is Status
	Message      string // "" is "injected"
	RetryAfter   string // header of the answer, where set
	AfterStoring bool   // the request is carried out first, and its answer lost
	Hang         bool   // no answer at all until the client gives up or Close
}

// StartFakeRegistry starts a registry on a free port of loopback. The caller closes it.
func StartFakeRegistry(o FakeRegistryOptions) (*FakeRegistry, error) {
	r := &FakeRegistry{
		registry: srfake.NewRegistry(), options: o, closing: make(chan struct{}),
	}
	r.server = httptest.NewUnstartedServer(http.HandlerFunc(r.serve))
	// The server's own complaints, of clients that distrust its certificate, are no news to a test.
	r.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	if !o.TLS {
		r.server.Start()
		r.URL = r.server.URL + o.Path
		return r, nil
	}
	dir, err := newRunDir("fakeregistry")
	if err != nil {
		return nil, err
	}
	r.dir = dir
	certs, err := NewCertificates(dir)
	if err != nil {
		return nil, errors.Join(err, removeRunDir(dir))
	}
	if r.server.TLS, err = certs.ServerConfig(); err != nil {
		return nil, errors.Join(err, removeRunDir(dir))
	}
	r.CAFile = certs.CAFile
	r.server.StartTLS()
	r.URL = r.server.URL + o.Path
	return r, nil
}

// Registry returns the store, to seed and read schemas without a request.
func (r *FakeRegistry) Registry() *srfake.Registry { return r.registry }

// Inject adds a fault. The first one that selects a request and is not used up answers it.
func (r *FakeRegistry) Inject(f RegistryFault) {
	if f.Count == 0 {
		f.Count = 1
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = append(r.faults, &f)
}

// ClearFaults ends all faults but for requests that hang already.
func (r *FakeRegistry) ClearFaults() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = nil
}

// Requests returns "METHOD path" of each request so far, refused ones too.
func (r *FakeRegistry) Requests() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.requests...)
}

// Close ends the registry and every request in it. It may be called again.
func (r *FakeRegistry) Close() error {
	r.once.Do(func() {
		close(r.closing)
		r.server.CloseClientConnections()
		r.server.Close()
	})
	if r.dir == "" {
		return nil
	}
	return removeRunDir(r.dir)
}

func (r *FakeRegistry) serve(w http.ResponseWriter, req *http.Request) {
	path := strings.TrimPrefix(req.URL.Path, r.options.Path)
	fault := r.note(req.Method, path)
	if user, password, _ := req.BasicAuth(); r.options.User != "" &&
		(user != r.options.User || password != r.options.Password) {
		w.Header().Set("WWW-Authenticate", `Basic realm="testenv"`)
		answerError(w, http.StatusUnauthorized, http.StatusUnauthorized, "Unauthorized")
		return
	}
	if !strings.HasPrefix(req.URL.Path, r.options.Path) {
		answerError(w, http.StatusNotFound, http.StatusNotFound, "HTTP 404 Not Found")
		return
	}
	inner := req.Clone(req.Context())
	inner.URL.Path, inner.URL.RawPath = path, ""
	if fault == nil {
		r.handle(w, inner)
		return
	}
	if fault.AfterStoring {
		r.handle(httptest.NewRecorder(), inner)
	}
	if fault.Hang {
		select {
		case <-req.Context().Done():
		case <-r.closing:
		}
		return
	}
	if fault.RetryAfter != "" {
		w.Header().Set("Retry-After", fault.RetryAfter)
	}
	code, message := fault.ErrorCode, fault.Message
	if code == 0 {
		code = fault.Status
	}
	if message == "" {
		message = "injected"
	}
	answerError(w, fault.Status, code, message)
}

// note records a request and returns the fault that answers it, or nil.
func (r *FakeRegistry) note(method, path string) *RegistryFault {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, method+" "+path)
	for _, f := range r.faults {
		if f.Count == 0 || (f.Method != "" && f.Method != method) || !strings.Contains(path, f.Path) {
			continue
		}
		if f.Count > 0 {
			f.Count--
		}
		return f
	}
	return nil
}

func answerError(w http.ResponseWriter, status, code int, message string) {
	answerJSON(w, status, map[string]any{"error_code": code, "message": message})
}

func answerJSON(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		status, text = http.StatusInternalServerError, fmt.Appendf(nil, "%q", err.Error())
	}
	w.Header().Set("Content-Type", "application/vnd.schemaregistry.v1+json")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}
