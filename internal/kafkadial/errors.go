package kafkadial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// Wrap turns an error of a Kafka client into a fault. op is what was tried, in the words of an
// ACL ("Write", "Create", "Describe"), resource what it was tried on, kind first ("topic
// shop.public.orders", "transactional id tidemark-offsets-shop", "cluster"). A fault, nil and a
// cancelled context come back as they are (the last with op and resource in front).
func Wrap(op, resource string, err error) error {
	var f *fault.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &f):
		return err
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s on %s: %w", op, resource, err)
	}
	doing := op + " on " + resource
	for _, c := range classes {
		if c.matches(err) {
			return fault.Wrap(c.code, doing+": "+c.text, err).With("", "", c.fix(op, resource))
		}
	}
	return fault.Wrap(fault.Internal, doing+" failed", err)
}

// HungUp reports whether brokers close each connection at once: their answer to a client that
// leaves TLS or the login out, and that of a load balancer without a broker.
func HungUp(err error) bool {
	var first *kgo.ErrFirstReadEOF
	return errors.As(err, &first)
}

// Temporary reports whether the same request may succeed later without anybody doing anything:
// the broker is away, moves a leader, or says so itself. It is false for nil.
func Temporary(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	for _, c := range classes {
		if c.matches(err) {
			return c.temporary
		}
	}
	return kerr.IsRetriable(err)
}

// class is one line of the table that decides a broker error's code. The first line that matches
// wins: an authorization error may come wrapped in a connection's.
type class struct {
	code      fault.Code
	text      string
	temporary bool
	errs      []error
	also      func(error) bool
	fix       func(op, resource string) string
}

func (c *class) matches(err error) bool {
	for _, e := range c.errs {
		if errors.Is(err, e) {
			return true
		}
	}
	return c.also != nil && c.also(err)
}

var classes = []class{
	{
		code: fault.BrokerForbids, text: "the broker's ACLs forbid it",
		errs: []error{
			kerr.TopicAuthorizationFailed, kerr.GroupAuthorizationFailed,
			kerr.ClusterAuthorizationFailed, kerr.TransactionalIDAuthorizationFailed,
			kerr.DelegationTokenAuthorizationFailed, kerr.PolicyViolation,
		},
		fix: func(op, resource string) string {
			return "allow the connector's principal " + op + " on " + resource
		},
	},
	{
		code: fault.AuthenticationFailed, text: "the broker refuses the credentials",
		errs: []error{
			kerr.SaslAuthenticationFailed, kerr.UnsupportedSaslMechanism, kerr.IllegalSaslState,
		},
		also: refusedHandshake,
		fix: constant("check security.protocol, sasl.mechanism, sasl.jaas.config and the " +
			"ssl.truststore keys"),
	},
	{
		code: fault.Fenced, text: "another process took the transactional id over",
		errs: []error{
			kerr.ProducerFenced, kerr.InvalidProducerEpoch, kerr.InvalidProducerIDMapping,
			kerr.FencedInstanceID,
		},
		fix: constant("stop one of the two processes that run this connector"),
	},
	{
		code: fault.RecordTooLarge, text: "the broker refuses a batch for its size",
		errs: []error{kerr.MessageTooLarge, kerr.RecordListTooLarge},
		fix: constant("raise the topic's max.message.bytes (kafka-configs --alter) and " +
			"producer.override.max.request.size"),
	},
	{
		code: fault.TopicMissing, text: "the topic does not exist, or was deleted and made again",
		errs: []error{
			kerr.UnknownTopicOrPartition, kerr.UnknownTopicID, kerr.InconsistentTopicID,
		},
		fix: constant("create the topic, or let topic.creation.default.* create it at the next start"),
	},
	{
		code: fault.TopicsCollide, text: "the broker refuses the topic's name",
		errs: []error{kerr.InvalidTopicException},
		fix:  constant("choose another topic.prefix"),
	},
	{
		code: fault.ConfigInvalid, text: "the broker refuses a setting of the topic",
		errs: []error{
			kerr.InvalidReplicationFactor, kerr.InvalidPartitions, kerr.InvalidConfig,
		},
		fix: constant("correct topic.creation.default.*"),
	},
	{
		// Not the expiry of an idle producer, whose next sequence a broker takes as it comes.
		code: fault.BrokerDataLost,
		text: "the broker has lost records that it had confirmed (a sequence is missing)",
		errs: []error{kerr.OutOfOrderSequenceNumber},
		fix: constant("see the brokers' logs for an unclean leader election or a lost disk; the next " +
			"start sends everything after the stored position again; if older records of the topic " +
			"are gone as well, only a new snapshot brings them back (tidemark offsets reset)"),
	},
	{
		code: fault.BrokerUnreachable, text: "the broker has forgotten the producer",
		errs: []error{kerr.UnknownProducerID},
		fix:  constant("nothing, unless it comes again: a new producer repeats what was not confirmed"),
	},
	{
		code: fault.BrokerUnreachable, text: "no broker answers", temporary: true,
		errs: []error{
			context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed,
			kgo.ErrRecordTimeout, kgo.ErrRecordRetries, kerr.NetworkException,
			kerr.RequestTimedOut, kerr.NotEnoughReplicas, kerr.NotEnoughReplicasAfterAppend,
			kerr.CoordinatorNotAvailable, kerr.CoordinatorLoadInProgress, kerr.NotCoordinator,
			kerr.LeaderNotAvailable, kerr.NotLeaderForPartition, kerr.BrokerNotAvailable,
			kerr.NotController, kerr.KafkaStorageError,
		},
		also: connectionLost,
		fix:  constant("check bootstrap.servers, the listeners the brokers advertise, and the network"),
	},
}

func constant(s string) func(string, string) string {
	return func(string, string) string { return s }
}

// refusedHandshake reports what is wrong with identities before SASL says a word: a certificate
// that is not trusted, TLS spoken to a plain listener, SASL left out (the broker hangs up).
func refusedHandshake(err error) bool {
	var firstRead *kgo.ErrFirstReadEOF
	// A broker that goes down also hangs up; the library knows the two apart by whether an
	// earlier connection went through.
	if errors.As(err, &firstRead) && !kgo.IsRetryableBrokerErr(err) {
		return true
	}
	return fault.RefusedTLS(err)
}

// Refused reports whether brokers said no to who we are, or we to who they are: a client that
// produces asks again without end, and nobody would hear of it. It is false for a connection that
// only ended.
func Refused(err error) bool {
	return errors.Is(err, kerr.SaslAuthenticationFailed) || fault.RefusedTLS(err) ||
		fault.Has(err, fault.AuthenticationFailed)
}

func connectionLost(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &op) || errors.As(err, &dns) || kgo.IsRetryableBrokerErr(err)
}
