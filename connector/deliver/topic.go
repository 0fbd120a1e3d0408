package deliver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-cdc/tidemark/envelope"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/internal/kafkadial"
)

// topic is what is known of a topic that records go to. Everything but partitions is fixed when
// EnsureTopic has returned.
type topic struct {
	name       string
	hash       uint32 // of the name: RouteOne
	partitions atomic.Int32
	made       bool // by EnsureTopic
	compacted  bool // cleanup.policy contains compact: null keys are refused
	maxBytes   int  // a batch, before compression
	brokerMax  int  // the topic's max.message.bytes; 0: not known
}

func (t *topic) count() int { return int(t.partitions.Load()) }

// Bounds of waiting for brokers to know a topic that was just created.
const (
	createdWithin = 30 * time.Second
	createdPoll   = 100 * time.Millisecond
)

// EnsureTopic makes sure that a topic exists: it is created with topic.creation.default.* when it
// does not, and never altered. keyed says whether its records have keys: a topic that is compacted
// takes no record without one (topic_compacted_without_key). It must have returned nil for a topic
// before Send is given a record for it; again is cheap. A name that Kafka does not take is the
// caller's business.
func (p *Producer) EnsureTopic(ctx context.Context, name string, keyed bool) error {
	t := p.topic(name)
	if t == nil {
		n, err := p.partitionsOf(ctx, name)
		made := fault.Has(err, fault.TopicMissing)
		if made {
			n, err = p.create(ctx, name)
		}
		if err != nil {
			return err
		}
		if t, err = p.describe(ctx, name, n); err != nil {
			return err
		}
		t.made = made
		t = p.remember(t)
	}
	if t.compacted && !keyed {
		return t.compactedWithoutKey('r')
	}
	return nil
}

// Compacted reports whether a topic that EnsureTopic has prepared is compacted.
func (p *Producer) Compacted(name string) bool {
	t := p.topic(name)
	return t != nil && t.compacted
}

// Prepared reports whether EnsureTopic has found or made a topic already.
func (p *Producer) Prepared(name string) bool { return p.topic(name) != nil }

// Made reports whether EnsureTopic did not find a topic and made it.
func (p *Producer) Made(name string) bool {
	t := p.topic(name)
	return t != nil && t.made
}

// MaxBytes returns the most that a record of a topic that EnsureTopic has prepared may have, as
// envelope.Record.EncodedSize counts; else 0.
func (p *Producer) MaxBytes(name string) int {
	if t := p.topic(name); t != nil {
		return t.maxBytes
	}
	return 0
}

// Partitions returns the number of partitions of a topic that EnsureTopic has prepared, else 0.
func (p *Producer) Partitions(name string) int {
	if t := p.topic(name); t != nil {
		return t.count()
	}
	return 0
}

func (p *Producer) topic(name string) *topic { return (*p.topics.Load())[name] }

// remember adds a topic, and returns the one that was added first: readers take no lock.
func (p *Producer) remember(t *topic) *topic {
	p.topicsMu.Lock()
	defer p.topicsMu.Unlock()
	if first := p.topic(t.name); first != nil {
		return first
	}
	next := maps.Clone(*p.topics.Load())
	next[t.name] = t
	p.topics.Store(&next)
	return t
}

// partitionsOf asks how many partitions a topic has; the fault is topic_missing for none.
func (p *Producer) partitionsOf(ctx context.Context, name string) (int, error) {
	// Without this the client answers from what it asked up to five seconds ago, which for a topic
	// that was made since is "unknown".
	details, err := p.admin.ListTopics(kadm.WithAuthorizedOps(ctx), name)
	if err == nil {
		err = details[name].Err
	}
	if err == nil && len(details[name].Partitions) == 0 {
		err = kerr.UnknownTopicOrPartition
	}
	return len(details[name].Partitions), kafkadial.Wrap("Describe", "topic "+name, err)
}

func (p *Producer) create(ctx context.Context, name string) (int, error) {
	c := p.o.Creation
	partitions, replication := int32(c.Partitions), int16(c.Replication)
	if partitions <= 0 {
		partitions = -1 // the broker's num.partitions
	}
	if replication <= 0 {
		replication = -1 // the broker's default.replication.factor
	}
	configs := make(map[string]*string, len(c.Configs))
	for k, v := range c.Configs {
		configs[k] = &v
	}
	made, err := p.admin.CreateTopic(ctx, partitions, replication, configs, name)
	if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		if made.ErrMessage != "" {
			err = fmt.Errorf("%w (%s)", err, made.ErrMessage)
		}
		return 0, kafkadial.Wrap("Create", "topic "+name, err)
	}
	var n int
	err = awaitTopic(ctx, func() (err error) { n, err = p.partitionsOf(ctx, name); return err })
	return n, err
}

// awaitTopic asks until the broker that answers knows a topic which another one knows: after a topic
// was made, each hears of it at a time of its own.
func awaitTopic(ctx context.Context, ask func() error) error {
	ctx, cancel := context.WithTimeout(ctx, createdWithin)
	defer cancel()
	tick := time.NewTicker(createdPoll)
	defer tick.Stop()
	for {
		err := ask()
		if !fault.Has(err, fault.TopicMissing) {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

// describe reads what decides how records must be. A principal that may not DescribeConfigs is no
// reason to stop: the broker then refuses by itself what we would have refused earlier.
func (p *Producer) describe(ctx context.Context, name string, n int) (*topic, error) {
	t := &topic{name: name, hash: murmur2([]byte(name)), maxBytes: p.requestBytes()}
	t.partitions.Store(int32(n))
	var described kadm.ResourceConfig
	err := awaitTopic(ctx, func() error {
		all, err := p.admin.DescribeTopicConfigs(ctx, name)
		if err == nil {
			described, err = all.On(name, nil)
		}
		if err == nil {
			err = described.Err
		}
		return kafkadial.Wrap("DescribeConfigs", "topic "+name, err)
	})
	if fault.Has(err, fault.BrokerForbids) {
		p.log.Warn("the topic's settings cannot be read", "topic", name, "err", err)
		return t, nil
	}
	if err != nil {
		return nil, err
	}
	for _, c := range described.Configs {
		switch c.Key {
		case "cleanup.policy":
			t.compacted = strings.Contains(c.MaybeValue(), "compact")
		case "max.message.bytes":
			if v, err := strconv.Atoi(c.MaybeValue()); err == nil && v > 0 {
				t.brokerMax, t.maxBytes = v, min(t.maxBytes, v)
			}
		}
	}
	return t, nil
}

// requestBytes is max.request.size within what the client takes for a batch.
func (p *Producer) requestBytes() int {
	if p.o.Producer.MaxRequestBytes <= 0 {
		return defaultRequestBytes
	}
	return min(max(p.o.Producer.MaxRequestBytes, 512), 1<<30)
}

// batchMaxBytes is asked by the client once for each partition, and at the start for no topic.
func (p *Producer) batchMaxBytes(name string) int32 {
	if t := p.topic(name); t != nil {
		return int32(max(t.maxBytes, 512))
	}
	return int32(p.requestBytes())
}

// partitioner is asked by the client once for each topic, the function it returns for each
// record, with the number of partitions that the client knows at that moment.
func (p *Producer) partitioner(name string) func(*kgo.Record, int) int {
	if t := p.o.Transactions; t != nil && t.Offsets == name {
		return placed
	}
	return func(rec *kgo.Record, n int) int {
		d := rec.Context.(*pending)
		if before := int(d.topic.partitions.Swap(int32(n))); before != n {
			p.log.Warn("the topic's number of partitions changed: keys go to other partitions",
				"topic", d.topic.name, "before", before, "now", n)
			if p.o.Metrics.Partitions != nil {
				p.o.Metrics.Partitions(d.topic.name, before, n)
			}
		}
		if d.every >= 0 {
			return int(d.every) % n
		}
		return toPartition(d.hash, n)
	}
}

// compactedWithoutKey is the fault for a record without a key on a compacted topic.
func (t *topic) compactedWithoutKey(op byte) error {
	if op == 't' {
		return fault.New(fault.TruncateOnCompact,
			"a TRUNCATE has no key, and topic "+t.name+" is compacted").
			With("cleanup.policy=compact", "delete", "set skipped.operations to t, or change the "+
				"topic's cleanup.policy, or delete the topic and take a new snapshot")
	}
	return fault.New(fault.TopicCompactedNoKey,
		"records without a key go to topic "+t.name+", which is compacted").
		With("cleanup.policy=compact", "delete", "give the table a primary key or "+
			"message.key.columns, or change the topic's cleanup.policy to delete")
}

func (t *topic) tooLarge(r *envelope.Record, size int) error {
	return fault.New(fault.RecordTooLarge, fmt.Sprintf(
		"an event (op %c, key hash %08x, pair %d, %s, %d) for topic %s is too large",
		r.Op, murmur2(r.HashKey), r.Pos.History, r.Pos.CommitLSN, r.Pos.Index, t.name)).
		With(fmt.Sprintf("%d bytes", size), fmt.Sprintf("at most %d", t.maxBytes), t.raise())
}

// raise says which of the two limits stops a record that is too large.
func (t *topic) raise() string {
	if t.brokerMax > 0 && t.maxBytes == t.brokerMax {
		return "raise max.message.bytes of topic " + t.name + " (kafka-configs --alter), and " +
			"producer.override.max.request.size with it; restart the connector; or set " +
			"record.too.large: truncate, which leaves values out and says so"
	}
	return "raise producer.override.max.request.size; restart the connector; or set " +
		"record.too.large: truncate, which leaves values out and says so"
}
