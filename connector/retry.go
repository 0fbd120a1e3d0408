package connector

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/internal/kafkadial"
)

// class says what the connector does with an error. Retries "here", of a single request, belong
// to the clients (franz-go's produce, the registry's call); what reaches the connector either
// begins the session again or waits for a person.
type class byte

const (
	restart class = iota // close everything, back off, evaluate the start-up matrix, go on
	stop                 // a person must act; retrying would be the same again
)

// classify is the one predicate of errors. A code that is not named here is a fault of ours or of
// a server's making that a person must see: stop.
func classify(err error) class {
	switch fault.CodeOf(err) {
	case fault.PostgresUnreachable, fault.BrokerUnreachable, fault.RegistryUnreachable:
		return restart
	case fault.SlotsExhausted: // connections run out and come back; a missing slot stops at creation
		return restart
	}
	return stop
}

// stopsFor reports whether the connector stops with err.
func stopsFor(err error) bool { return classify(err) == stop }

// reconsider takes a refusal for what it is. Brokers that end each connection at once want TLS or
// a login, as far as their client can know; but when they have taken this process's before, what
// stands before them (a load balancer, a proxy) has none to lead to just now.
func (c *Connector) reconsider(err error) error {
	if !c.welcome.Load() || fault.CodeOf(err) != fault.AuthenticationFailed ||
		!kafkadial.HungUp(err) {
		return err
	}
	return fault.Wrap(fault.BrokerUnreachable, "connections to the brokers, which went through "+
		"before, are ended at once", err).With("", "", "look whether the brokers run behind the "+
		"load balancer or proxy that bootstrap.servers and their advertised listeners lead to")
}

// backoff is a bounded exponential wait with full jitter in its upper half.
type backoff struct {
	next, max time.Duration
}

const firstBackoff = 500 * time.Millisecond

func newBackoff(maximum time.Duration) *backoff {
	return &backoff{next: firstBackoff, max: max(maximum, firstBackoff)}
}

func (b *backoff) reset() { b.next = firstBackoff }

// delay returns the next wait and doubles it, up to the bound.
func (b *backoff) delay() time.Duration {
	d := b.next
	b.next = min(2*b.next, b.max)
	return d/2 + rand.N(d/2)
}

// sleep waits, and returns false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
