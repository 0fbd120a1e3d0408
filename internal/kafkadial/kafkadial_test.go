package kafkadial

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/internal/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestErrorsGetTheCodeThatSaysWhatToDo(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	for _, c := range []struct {
		err       error
		code      fault.Code
		temporary bool
	}{
		{kerr.TopicAuthorizationFailed, fault.BrokerForbids, false},
		{kerr.ClusterAuthorizationFailed, fault.BrokerForbids, false},
		{kerr.TransactionalIDAuthorizationFailed, fault.BrokerForbids, false},
		{kerr.SaslAuthenticationFailed, fault.AuthenticationFailed, false},
		{kerr.UnsupportedSaslMechanism, fault.AuthenticationFailed, false},
		{x509.UnknownAuthorityError{}, fault.AuthenticationFailed, false},
		{kerr.ProducerFenced, fault.Fenced, false},
		{kerr.InvalidProducerEpoch, fault.Fenced, false},
		{kerr.MessageTooLarge, fault.RecordTooLarge, false},
		{kerr.UnknownTopicOrPartition, fault.TopicMissing, false},
		{kerr.UnknownTopicID, fault.TopicMissing, false},
		{kerr.InvalidReplicationFactor, fault.ConfigInvalid, false},
		{kerr.InvalidTopicException, fault.TopicsCollide, false},
		{refused, fault.BrokerUnreachable, true},
		{io.EOF, fault.BrokerUnreachable, true},
		{context.DeadlineExceeded, fault.BrokerUnreachable, true},
		{kerr.NotEnoughReplicas, fault.BrokerUnreachable, true},
		{kerr.NotLeaderForPartition, fault.BrokerUnreachable, true},
		{kgo.ErrRecordTimeout, fault.BrokerUnreachable, true},
		{errors.New("something else"), fault.Internal, false},
		{kerr.OutOfOrderSequenceNumber, fault.BrokerDataLost, false},
		{kerr.UnknownProducerID, fault.BrokerUnreachable, false},
	} {
		wrapped := fmt.Errorf("around it: %w", c.err)
		got := Wrap("Write", "topic t", wrapped)
		if fault.CodeOf(got) != c.code || !errors.Is(got, c.err) {
			t.Errorf("%v: got %v, want code %s", c.err, got, c.code)
		}
		if Temporary(wrapped) != c.temporary {
			t.Errorf("%v: temporary is %v", c.err, !c.temporary)
		}
		if !strings.Contains(got.Error(), "Write on topic t") {
			t.Errorf("%q does not say what was tried on what", got)
		}
	}
}

func TestWrapLeavesFaultsAndCancellationAlone(t *testing.T) {
	t.Parallel()
	if Wrap("Write", "topic t", nil) != nil || Temporary(nil) {
		t.Error("nil is no error")
	}
	f := fault.New(fault.Fenced, "already said")
	if got := Wrap("Write", "topic t", f); !errors.Is(got, f) || got.Error() != f.Error() {
		t.Errorf("got %v", got)
	}
	got := Wrap("Write", "topic t", context.Canceled)
	var coded *fault.Error
	if !errors.Is(got, context.Canceled) || errors.As(got, &coded) {
		t.Errorf("got %v, want the cancellation and no code", got)
	}
}

func TestUnknownSettingsAreRefused(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]config.Kafka{
		"no broker": {},
		"protocol":  {Bootstrap: []string{"x:1"}, SecurityProtocol: "PLAIN"},
		"mechanism": {
			Bootstrap: []string{"x:1"}, SecurityProtocol: "SASL_SSL", SASLMechanism: "GSSAPI",
		},
		"no CA file": {
			Bootstrap: []string{"x:1"}, SecurityProtocol: "SSL", TLSCAFile: "/does/not/exist",
		},
	} {
		if _, err := Options(k); fault.CodeOf(err) != fault.ConfigInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCredentialsAreProven(t *testing.T) {
	t.Parallel()
	c, err := kfake.NewCluster(
		kfake.NumBrokers(1), kfake.EnableSASL(),
		kfake.Superuser("PLAIN", "p", "one"), kfake.Superuser("SCRAM-SHA-256", "s", "two"),
		kfake.Superuser("SCRAM-SHA-512", "s", "three"),
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for _, test := range []struct {
		mechanism, user, password string
		code                      fault.Code
	}{
		{"PLAIN", "p", "one", ""},
		{"SCRAM-SHA-256", "s", "two", ""},
		{"SCRAM-SHA-512", "s", "three", ""},
		{"", "", "", fault.AuthenticationFailed}, // the broker hangs up on who says nothing
		// From here on it refuses.
		{"SCRAM-SHA-512", "s", "two", fault.AuthenticationFailed},
		{"PLAIN", "p", "wrong", fault.AuthenticationFailed},
	} {
		k := config.Kafka{
			Bootstrap: c.ListenAddrs(), SecurityProtocol: "SASL_PLAINTEXT",
			SASLMechanism: test.mechanism, SASLUser: test.user,
			SASLPassword: config.NewSecret(test.password),
		}
		if test.mechanism == "" {
			k.SecurityProtocol = "PLAINTEXT"
		}
		refuse := test.mechanism != "" && test.code != ""
		if refuse { // the embedded broker hangs up where Kafka answers
			c.ControlKey(int16(kmsg.SASLAuthenticate), func(r kmsg.Request) (
				kmsg.Response, error, bool,
			) {
				c.KeepControl()
				resp := r.ResponseKind().(*kmsg.SASLAuthenticateResponse)
				resp.ErrorCode = kerr.SaslAuthenticationFailed.Code
				return resp, nil, true
			})
		}
		check(t, test.mechanism+" "+test.password, k, test.code)
	}
}

func TestCertificatesAreChecked(t *testing.T) {
	t.Parallel()
	served, ca := certificate(t, "broker.example")
	other := filepath.Join(t.TempDir(), "other.pem")
	_, otherPEM := certificate(t, "broker.example")
	write(t, other, otherPEM)
	trusted := filepath.Join(t.TempDir(), "ca.pem")
	write(t, trusted, ca)
	c, err := kfake.NewCluster(
		kfake.NumBrokers(1), kfake.TLS(&tls.Config{Certificates: []tls.Certificate{served}}),
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	k := config.Kafka{Bootstrap: c.ListenAddrs(), SecurityProtocol: "SSL", TLSCAFile: trusted}
	check(t, "trusted, name not looked at", k, "")
	k.TLSEndpointCheck = true // the brokers are at 127.0.0.1, the certificate is broker.example's
	check(t, "trusted, another name", k, fault.AuthenticationFailed)
	k.TLSEndpointCheck, k.TLSCAFile = false, other
	check(t, "another CA", k, fault.AuthenticationFailed)
}

// With a wrong clock here or there a certificate is of another time: the error says so.
func TestF17ACertificateOfAnotherTime(t *testing.T) {
	t.Parallel()
	for _, far := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		served, ca := certificateAt(t, "broker.example", time.Now().Add(far))
		trusted := filepath.Join(t.TempDir(), "ca.pem")
		write(t, trusted, ca)
		c, err := kfake.NewCluster(
			kfake.NumBrokers(1), kfake.TLS(&tls.Config{Certificates: []tls.Certificate{served}}),
		)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		err = check(t, far.String(), config.Kafka{
			Bootstrap: c.ListenAddrs(), SecurityProtocol: "SSL", TLSCAFile: trusted,
		}, fault.AuthenticationFailed)
		if err == nil || !strings.Contains(err.Error(), "expired or is not yet valid") {
			t.Errorf("%s: %v", far, err)
		}
	}
}

func TestAnAddressWhereNobodyListensIsUnreachable(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	check(t, "closed port", config.Kafka{Bootstrap: []string{addr}}, fault.BrokerUnreachable)
}

// check asks the brokers something and compares the code of what came of it.
func check(t *testing.T, what string, k config.Kafka, code fault.Code) error {
	t.Helper()
	opts, err := Options(k)
	if err != nil {
		t.Fatal(err)
	}
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err = Wrap("Describe", "cluster", cl.Ping(ctx))
	switch {
	case code == "" && err != nil:
		t.Errorf("%s: %v", what, err)
	case code != "" && (err == nil || fault.CodeOf(err) != code):
		t.Errorf("%s: got %v, want %s", what, err, code)
	case err != nil && k.SASLPassword.Reveal() != "" &&
		strings.Contains(err.Error(), k.SASLPassword.Reveal()):
		t.Errorf("%s: %q says the password", what, err)
	}
	return err
}

func certificate(t *testing.T, name string) (tls.Certificate, []byte) {
	t.Helper()
	return certificateAt(t, name, time.Now())
}

// certificateAt is one that is valid for an hour before and behind a time.
func certificateAt(t *testing.T, name string, at time.Time) (tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, IsCA: true,
		NotBefore: at.Add(-time.Hour), NotAfter: at.Add(time.Hour),
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, &x509.Certificate{SerialNumber: big.NewInt(1)}, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, block
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
