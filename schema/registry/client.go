// Package registry registers and fetches Avro schemas at a Confluent-compatible schema registry.
//
// Every call is one bounded attempt at each of the registry's addresses; whoever calls decides
// whether to try again, by the fault's code: registry_unreachable may pass by itself, the others
// do not. Registering is idempotent, so a repeat after a lost answer gives the same id. Only ids
// that the registry gave are remembered, never a failure.
package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// Options say where the registry is and how to speak to it.
type Options struct {
	URLs           []string // tried in turn; each may have a path
	User, Password string   // basic authentication; user info in a URL counts for that URL
	Bearer         string   // token; not together with User
	CAFile         string   // PEM; empty: the system's roots
	Timeout        time.Duration
	UserAgent      string
	Normalize      bool // have schemas compared and stored in their normal form
}

// defaultTimeout bounds a request when Options.Timeout is 0: a registry answers within
// milliseconds, one that writes its own Kafka topic within a few seconds.
const defaultTimeout = 10 * time.Second

// Client speaks to a registry. It may be used by several goroutines.
type Client struct {
	nodes     []*node
	transport *http.Transport
	normalize bool

	mu        sync.Mutex
	first     int // the node that answered last
	notBefore time.Time
	ids       map[subjectSchema]int
	schemas   map[int]string
}

// node is one address of the registry.
type node struct {
	url    string // without user info
	client *sr.Client
}

type subjectSchema struct{ subject, schema string }

// New returns a Client; nothing is sent yet. Wrong options are config_invalid.
func New(o Options) (*Client, error) {
	if len(o.URLs) == 0 {
		return nil, fault.New(fault.ConfigInvalid, "no schema registry").With(
			"", "an http or https URL", "set schema.registry.url")
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	transport, err := newTransport(o)
	if err != nil {
		return nil, err
	}
	c := &Client{
		transport: transport, normalize: o.Normalize, ids: map[subjectSchema]int{}, schemas: map[int]string{},
	}
	for _, raw := range o.URLs {
		n, err := newNode(raw, o, transport)
		if err != nil {
			return nil, err
		}
		c.nodes = append(c.nodes, n)
	}
	return c, nil
}

func newNode(raw string, o Options, transport http.RoundTripper) (*node, error) {
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		// The URL itself is left out: it may hold a password.
		return nil, fault.New(fault.ConfigInvalid, "schema.registry.url is not a URL").With(
			"", "http://host:port or https://host:port, with a path where there is one",
			"correct schema.registry.url")
	}
	user, password := o.User, o.Password
	if u.User != nil {
		user = u.User.Username()
		password, _ = u.User.Password()
		u.User = nil
	}
	u.RawQuery, u.Fragment = "", ""
	opts := []sr.ClientOpt{
		sr.URLs(u.String()),
		sr.HTTPClient(&http.Client{
			Transport: observer{transport}, Timeout: o.Timeout, CheckRedirect: checkRedirect,
		}),
	}
	if o.UserAgent != "" {
		opts = append(opts, sr.UserAgent(o.UserAgent))
	}
	switch {
	case user != "":
		opts = append(opts, sr.BasicAuth(user, password))
	case o.Bearer != "":
		opts = append(opts, sr.BearerToken(o.Bearer))
	}
	client, err := sr.NewClient(opts...)
	if err != nil {
		return nil, fault.Wrap(fault.ConfigInvalid, "the schema registry's client", err)
	}
	return &node{url: u.String(), client: client}, nil
}

// Close closes connections that are kept open.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Register stores an Avro schema under a subject and returns its id, which is greater than 0. A
// schema that the subject has already keeps its id and makes no version. Faults: schema_rejected,
// authentication_failed, registry_unreachable (try again; RetryAfter says when), config_invalid.
func (c *Client) Register(ctx context.Context, subject, schema string) (int, error) {
	return c.remembered(subject, schema, func() (id int, err error) {
		err = c.try(ctx, func(ctx context.Context, client *sr.Client) error {
			var err error
			id, err = client.RegisterSchema(c.params(ctx), subject, sr.Schema{Schema: schema}, -1, -1)
			if readOnly(err) {
				has, lookup := client.LookupSchema(c.params(ctx), subject, sr.Schema{Schema: schema})
				if lookup == nil {
					id, err = has.ID, nil
				}
			}
			if err == nil && id <= 0 {
				return errNoID
			}
			return err
		})
		if err != nil {
			return 0, c.rejected(ctx, subject, schema, err)
		}
		return id, nil
	})
}

// ErrNotFound is in the chain of SchemaByID's error when the registry has no such id.
var ErrNotFound = errors.New("the schema registry has no schema with this id")

// SchemaByID returns a schema's text.
func (c *Client) SchemaByID(ctx context.Context, id int) (string, error) {
	c.mu.Lock()
	text, ok := c.schemas[id]
	c.mu.Unlock()
	if ok {
		return text, nil
	}
	err := c.try(ctx, func(ctx context.Context, client *sr.Client) error {
		s, err := client.SchemaByID(ctx, id)
		if err == nil && s.Schema == "" {
			return errNoSchema
		}
		text = s.Schema
		return err
	})
	if fault.Has(err, fault.Internal) && answered(err, http.StatusNotFound) {
		return "", fault.Wrap(fault.Internal, fmt.Sprintf("schema %d", id), ErrNotFound)
	}
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	c.schemas[id] = text
	c.mu.Unlock()
	return text, nil
}

// Compatibility returns the level that holds for a subject: its own, else the registry's.
func (c *Client) Compatibility(ctx context.Context, subject string) (string, error) {
	var level string
	err := c.try(ctx, func(ctx context.Context, client *sr.Client) error {
		for _, s := range []string{subject, sr.GlobalSubject} {
			r := client.Compatibility(sr.WithParams(ctx, sr.DefaultToGlobal), s)[0]
			if answered(r.Err, http.StatusNotFound) && s != sr.GlobalSubject {
				continue
			}
			level = r.Level.String()
			return r.Err
		}
		return nil
	})
	return level, err
}

// Ping asks the registry for its level: that it answers, and that it takes the credentials.
func (c *Client) Ping(ctx context.Context) error {
	return c.try(ctx, func(ctx context.Context, client *sr.Client) error {
		return client.Compatibility(ctx, sr.GlobalSubject)[0].Err
	})
}

// try calls do with each node in turn, the one that answered last first, until one gives an answer
// that another could not give better. It waits before it if a registry asked for that.
func (c *Client) try(ctx context.Context, do func(context.Context, *sr.Client) error) error {
	if err := c.wait(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	first := c.first
	c.mu.Unlock()
	var last error
	for i := range c.nodes {
		at := (first + i) % len(c.nodes)
		n := c.nodes[at]
		var seen observed
		err := do(context.WithValue(ctx, observedKey{}, &seen), n.client)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if last = classify(err, n.url, seen); !fault.Has(last, fault.RegistryUnreachable) {
			c.mu.Lock()
			c.first = at
			c.mu.Unlock()
			return last
		}
	}
	c.postpone(RetryAfter(last))
	return last
}

// postpone makes the next call wait, as the registry asked.
func (c *Client) postpone(d time.Duration) {
	if d <= 0 {
		return
	}
	c.mu.Lock()
	c.notBefore = time.Now().Add(d)
	c.mu.Unlock()
}

func (c *Client) wait(ctx context.Context) error {
	c.mu.Lock()
	d := time.Until(c.notBefore)
	c.mu.Unlock()
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
