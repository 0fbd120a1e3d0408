package registry

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// observer is a transport that notes what pkg/sr does not hand on, and bounds an answer's size.
type observer struct{ next http.RoundTripper }

type observedKey struct{}

// observed is what observer notes of a call's last answer.
type observed struct{ retryAfter time.Duration }

// maxAnswerBytes is far above any schema (PostgreSQL has at most 1600 columns a table).
const maxAnswerBytes = 32 << 20

func (o observer) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := o.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if seen, ok := req.Context().Value(observedKey{}).(*observed); ok {
		seen.retryAfter = retryAfter(resp.Header.Get("Retry-After"), time.Now())
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, maxAnswerBytes), resp.Body}
	return resp, nil
}

// maxRetryAfter bounds what a registry may ask for: a clock that is wrong there must not stop us
// for days.
const maxRetryAfter = 5 * time.Minute

// retryAfter reads the header of RFC 9110 section 10.2.3: seconds, or a date.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		return min(time.Duration(seconds)*time.Second, maxRetryAfter)
	}
	if at, err := http.ParseTime(header); err == nil {
		return min(max(at.Sub(now), 0), maxRetryAfter)
	}
	return 0
}

var errTooManyRedirects = errors.New("stopped after 5 redirects")

// checkRedirect keeps credentials at the host, port and scheme that they were given for (net/http
// looks at the host's name alone), and a POST from becoming a GET without a body: that answer is
// then the last one, and an error.
func checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) >= 5 {
		return errTooManyRedirects
	}
	if req.Method != via[0].Method {
		return http.ErrUseLastResponse
	}
	first := via[0].URL
	if req.URL.Host != first.Host || req.URL.Scheme != first.Scheme {
		req.Header.Del("Authorization")
		req.Header.Del("Cookie")
	}
	return nil
}

func newTransport(o Options) (*http.Transport, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ResponseHeaderTimeout = o.Timeout
	if o.CAFile == "" {
		return t, nil
	}
	pem, err := os.ReadFile(o.CAFile)
	if err != nil {
		return nil, fault.Wrap(fault.ConfigInvalid, "the schema registry's CA file", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fault.New(fault.ConfigInvalid, "the schema registry's CA file has no certificate").
			With(o.CAFile, "certificates in PEM", "")
	}
	t.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	return t, nil
}
