package worker

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// Bounds of one request. Answers are small and made from memory: a client that needs longer is
// stuck or hostile.
const (
	readTimeout     = 10 * time.Second
	writeTimeout    = 30 * time.Second
	idleTimeout     = 2 * time.Minute
	maxHeaderBytes  = 16 << 10
	maxScrapes      = 4 // scrapes at one time; more get 503
	shutdownTimeout = 5 * time.Second
)

// Server answers /healthz, /readyz and /metrics. Run serves until its context ends.
type Server struct {
	listen   string
	status   func() []Status
	http     *http.Server
	listener net.Listener
}

// New makes a server for the address in http.listen. status is called by each /readyz request, from
// several goroutines at once; it must not block.
func New(listen string, reg prometheus.Gatherer, status func() []Status) *Server {
	s := &Server{listen: listen, status: status}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", s.healthz)
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{
		MaxRequestsInFlight: maxScrapes,
		EnableOpenMetrics:   true,
	}))
	s.http = &http.Server{
		Handler:           guardHost(mux),
		ReadTimeout:       readTimeout,
		ReadHeaderTimeout: readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
	}
	return s
}

// Handler returns what the server serves, for tests and for a caller with a listener of its own.
func (s *Server) Handler() http.Handler { return s.http.Handler }

// Listen opens the address, so that one that is taken is known before a connector starts. Run calls
// it when nobody has. Whoever calls Listen calls Run, which closes the listener.
func (s *Server) Listen(ctx context.Context) (net.Addr, error) {
	if s.listener != nil {
		return s.listener.Addr(), nil
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", s.listen)
	if err != nil {
		return nil, fault.Wrap(fault.ConfigInvalid, "http.listen cannot be opened", err).
			With(s.listen, "an address of this machine with a free port",
				"set worker.http.listen to another one, or to an empty string for no HTTP")
	}
	s.listener = l
	return l.Addr(), nil
}

// Run serves until ctx ends, then lets running requests end for at most 5 seconds. It returns nil
// after an ordered end.
func (s *Server) Run(ctx context.Context) error {
	if _, err := s.Listen(ctx); err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- s.http.Serve(s.listener) }()
	select {
	case err := <-served:
		return fault.Wrap(fault.Internal, "the HTTP server ended", err)
	case <-ctx.Done():
	}
	// The clean-up has its own deadline: ctx is over.
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if s.http.Shutdown(stop) != nil {
		_ = s.http.Close() // cuts what did not end in time; its error is the listener's, closed already
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return fault.Wrap(fault.Internal, "the HTTP server ended", err)
	}
	return nil
}

func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write([]byte("ok\n"))
}

// readiness is the body of /readyz.
type readiness struct {
	Ready      bool     `json:"ready"`
	Reasons    []string `json:"reasons"` // of the connectors that are not ready, each named
	Connectors []Status `json:"connectors"`
}

func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	answer := assess(s.status())
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if !answer.Ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	_ = e.Encode(answer)
}

func assess(statuses []Status) readiness {
	r := readiness{Ready: true, Reasons: []string{}, Connectors: []Status{}}
	if len(statuses) == 0 {
		r.Ready = false
		r.Reasons = append(r.Reasons, "no connector is running")
	}
	for _, s := range statuses {
		if s.Reasons == nil {
			s.Reasons = []string{}
		}
		r.Connectors = append(r.Connectors, s)
		if s.Ready {
			continue
		}
		r.Ready = false
		if len(s.Reasons) == 0 {
			r.Reasons = append(r.Reasons, s.Connector+": "+s.State)
		}
		for _, reason := range s.Reasons {
			r.Reasons = append(r.Reasons, s.Connector+": "+reason)
		}
	}
	return r
}

// guardHost refuses requests that came in over loopback but name a host that is not this machine: a
// web page whose name was rebound to 127.0.0.1 could otherwise read a listener that was meant for
// nobody but local users. An IP address is no name that could be rebound.
func guardHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		if isLoopback(local) && !isLocalName(r.Host) {
			http.Error(w, "this listener serves local host names only", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

func isLocalName(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "" || host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	return net.ParseIP(strings.Trim(host, "[]")) != nil
}
