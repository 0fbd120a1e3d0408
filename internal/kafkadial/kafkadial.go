// Package kafkadial turns the settings of config.Kafka into franz-go options, for every client of
// a process (producer, offsets store, preflight, topic reader), and franz-go's errors into coded
// faults. It holds no client and starts no goroutine.
package kafkadial

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"math/rand/v2"
	"net"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// Bounds of a client's patience. They are for requests that ask something (metadata, create,
// describe, list); producing retries on its own terms, see connector/deliver.
const (
	// A dial that takes longer than this meets a firewall that drops packets.
	dialTimeout = 10 * time.Second
	// How long one question is asked again: longer than the election of a leader takes, short
	// enough that a wrong address is reported while the operator still looks.
	retryTimeout = 20 * time.Second
	// The library's default is 250 ms to 5 s; a leader that moved is back within less.
	backoffMin = 50 * time.Millisecond
	backoffMax = 2 * time.Second
	// How soon metadata may be asked for again: the first record of each new topic waits for it,
	// and so does one whose leader moved. The library's default is seconds.
	metadataMinAge = 250 * time.Millisecond
)

// Options returns the options that every client of these brokers shares. It reads the CA file,
// which is read again at each dial, and does not dial. The error is a config_invalid fault.
func Options(k config.Kafka) ([]kgo.Opt, error) {
	if len(k.Bootstrap) == 0 {
		return nil, fault.New(fault.ConfigInvalid, "no Kafka broker is given").
			With("", "host:port", "set worker key bootstrap.servers")
	}
	opts := []kgo.Opt{
		kgo.SeedBrokers(k.Bootstrap...),
		kgo.DialTimeout(dialTimeout),
		kgo.RetryTimeout(retryTimeout),
		kgo.RetryBackoffFn(backoff),
		kgo.MetadataMinAge(metadataMinAge),
		// Client telemetry (KIP-714) would send the library's own metrics to the broker.
		kgo.DisableClientMetrics(),
	}
	if k.ClientID != "" {
		opts = append(opts, kgo.ClientID(k.ClientID))
	}
	security, err := securityOptions(k)
	if err != nil {
		return nil, err
	}
	return append(opts, security...), nil
}

func securityOptions(k config.Kafka) ([]kgo.Opt, error) {
	var encrypted, authenticated bool
	switch k.SecurityProtocol {
	case "", "PLAINTEXT":
	case "SSL":
		encrypted = true
	case "SASL_PLAINTEXT":
		authenticated = true
	case "SASL_SSL":
		encrypted, authenticated = true, true
	default:
		return nil, fault.New(fault.ConfigInvalid, "security.protocol is not known").
			With(k.SecurityProtocol, "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL", "")
	}
	var opts []kgo.Opt
	if encrypted {
		o, err := tlsDialer(k)
		if err != nil {
			return nil, err
		}
		opts = append(opts, o)
	}
	if authenticated {
		o, err := saslOption(k)
		if err != nil {
			return nil, err
		}
		opts = append(opts, o)
	}
	return opts, nil
}

// saslOption logs in with what the settings say at each login: a password that is in a file may
// change while the client runs.
func saslOption(k config.Kafka) (kgo.Opt, error) {
	login := func(context.Context) (scram.Auth, error) {
		user, password, err := k.Login()
		if err != nil {
			return scram.Auth{}, fault.Wrap(fault.AuthenticationFailed, "the brokers' login cannot be "+
				"read again", err)
		}
		return scram.Auth{User: user, Pass: password.Reveal()}, nil
	}
	switch k.SASLMechanism {
	case "PLAIN":
		return kgo.SASL(plain.Plain(func(ctx context.Context) (plain.Auth, error) {
			a, err := login(ctx)
			return plain.Auth{User: a.User, Pass: a.Pass}, err
		})), nil
	case "SCRAM-SHA-256":
		return kgo.SASL(scram.Sha256(login)), nil
	case "SCRAM-SHA-512":
		return kgo.SASL(scram.Sha512(login)), nil
	}
	return nil, fault.New(fault.ConfigInvalid, "sasl.mechanism is not supported").
		With(k.SASLMechanism, "PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512", "")
}

// tlsDialer reads the CA file at each dial: authorities change while the client runs.
func tlsDialer(k config.Kafka) (kgo.Opt, error) {
	if _, err := tlsConfig(k); err != nil {
		return nil, err
	}
	return kgo.Dialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := tlsConfig(k)
		if err != nil {
			return nil, err
		}
		d := tls.Dialer{NetDialer: &net.Dialer{Timeout: dialTimeout}, Config: c}
		return d.DialContext(ctx, network, addr)
	}), nil
}

func tlsConfig(k config.Kafka) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if k.TLSCAFile != "" {
		pem, err := os.ReadFile(k.TLSCAFile)
		if err != nil {
			return nil, fault.Wrap(fault.ConfigInvalid, "the brokers' CA file cannot be read", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fault.New(fault.ConfigInvalid, "the brokers' CA file holds no certificate").
				With(k.TLSCAFile, "a PEM file", "set ssl.truststore.type=PEM and convert the store")
		}
	}
	if !k.TLSEndpointCheck {
		c.InsecureSkipVerify = true // only the name is not looked at: verifyChain does the rest
		c.VerifyConnection = func(s tls.ConnectionState) error { return verifyChain(s, c.RootCAs) }
	}
	return c, nil
}

// verifyChain checks a server's certificate against the roots, and not its name: what
// ssl.endpoint.identification.algorithm= (empty) means in Kafka's own clients.
func verifyChain(s tls.ConnectionState, roots *x509.CertPool) error {
	o := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
	for _, cert := range s.PeerCertificates[1:] {
		o.Intermediates.AddCert(cert)
	}
	_, err := s.PeerCertificates[0].Verify(o)
	return err
}

// backoff doubles from backoffMin to backoffMax, less up to a quarter at random so that clients
// which lost the same broker do not come back in step.
func backoff(fails int) time.Duration {
	d := backoffMax
	if fails < 6 { // 50 ms * 2^6 is above the maximum
		d = min(backoffMin<<max(fails-1, 0), backoffMax)
	}
	return d - rand.N(d/4)
}
