package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

var (
	errNoID     = errors.New("the answer has no schema id")
	errNoSchema = errors.New("the answer has no schema")
)

// delayed carries the time that a registry asked for in Retry-After.
type delayed struct {
	error
	after time.Duration
}

func (d delayed) Unwrap() error { return d.error }

// RetryAfter returns how long the registry asked to be left alone in the answer that made err; 0
// when it did not. The Client itself waits for that before its next request.
func RetryAfter(err error) time.Duration {
	var d delayed
	if errors.As(err, &d) {
		return d.after
	}
	return 0
}

// answered reports whether err is an answer of the registry with this HTTP status.
func answered(err error, status int) bool {
	var r *sr.ResponseError
	return errors.As(err, &r) && r.StatusCode == status
}

// readOnly reports whether a registry takes no new schemas just now. Confluent's own gives the id of
// one that it has in that mode too; others refuse that as well, and have to be asked for it.
func readOnly(err error) bool {
	var r *sr.ResponseError
	return errors.As(err, &r) && r.ErrorCode == sr.ErrOperationNotPermitted.Code
}

// classify gives an error its code. TLS that is not agreed wants a person. Another error without an
// answer (refused, reset, timed out, not JSON), 408, 429 and 5xx may pass by themselves; a 409, 413
// or 422 stays an sr.ResponseError in a schema_rejected, which rejected completes.
func classify(err error, where string, seen observed) error {
	if err == nil {
		return nil
	}
	var r *sr.ResponseError
	if !errors.As(err, &r) {
		if fault.RefusedTLS(err) {
			return fault.Wrap(fault.AuthenticationFailed, "TLS with the schema registry at "+where+
				" cannot be agreed", plain(err)).With("", "",
				"check schema.registry.url and schema.registry.ssl.truststore.location")
		}
		return unreachable(where, plain(err), 0)
	}
	found := fmt.Sprintf("HTTP %d", r.StatusCode)
	switch s := r.StatusCode; {
	case s == http.StatusUnauthorized || s == http.StatusForbidden:
		// Without the answer's text: a registry may repeat what it was sent.
		return fault.New(fault.AuthenticationFailed, "the schema registry at "+where+
			" refuses the credentials").With(found, "", "check basic.auth.user.info or the token, "+
			"and the user's rights on the subjects")
	case s == http.StatusConflict || s == http.StatusUnprocessableEntity ||
		s == http.StatusRequestEntityTooLarge:
		return fault.Wrap(fault.SchemaRejected, "the schema registry refuses", r)
	case s == http.StatusRequestTimeout || s == http.StatusTooManyRequests || s >= 500:
		return unreachable(where, fmt.Errorf("%s, error code %d: %w", found, r.ErrorCode, r),
			seen.retryAfter)
	case s == http.StatusNotFound && r.ErrorCode >= 40400:
		return fault.Wrap(fault.Internal, "the schema registry at "+where, r)
	}
	return fault.Wrap(fault.ConfigInvalid, "what answers at "+where+
		" does not speak the schema registry's API", r).With(found, "a Confluent-compatible registry",
		"correct schema.registry.url; the path belongs to it")
}

func unreachable(where string, err error, after time.Duration) error {
	return fault.Wrap(fault.RegistryUnreachable, "the schema registry at "+where,
		delayed{err, after})
}

// plain takes the method and URL off a net/http error: both are in the fault's sentence.
func plain(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// rejected completes a schema_rejected with subject, level and what can be done.
func (c *Client) rejected(ctx context.Context, subject, schema string, err error) error {
	var r *sr.ResponseError
	if !fault.Has(err, fault.SchemaRejected) || !errors.As(err, &r) {
		return err
	}
	if r.StatusCode == http.StatusRequestEntityTooLarge {
		// Without the answer's text: it may be a proxy's page.
		return fault.New(fault.SchemaRejected, "the schema registry takes no schema as large as that of "+
			"subject "+subject).With(fmt.Sprintf("%d bytes, HTTP 413", len(schema)), "",
			"raise the limit of a request's size of the registry or the proxy in front of it, or leave "+
				"columns out with column.exclude.list")
	}
	if r.StatusCode == http.StatusUnprocessableEntity && r.ErrorCode != 42201 {
		return fault.Wrap(fault.SchemaRejected, "the schema registry does not take a schema for "+
			"subject "+subject, r).With(fmt.Sprintf("error code %d", r.ErrorCode), "",
			"see the registry's mode and rules for this subject")
	}
	level, levelErr := c.Compatibility(ctx, subject)
	if levelErr != nil || level == "" {
		level = "unknown"
	}
	path := "/config/" + url.PathEscape(subject)
	return fault.Wrap(fault.SchemaRejected, "the schema registry refuses the new schema of subject "+
		subject, r).With("compatibility level "+level, "a level that allows this change",
		`PUT {"compatibility": "NONE"} to `+path+" until it is registered, or delete the subject's old "+
			"versions if nobody needs their events any more, or change topic.prefix; then start again")
}
