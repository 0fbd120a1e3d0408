package preflight

import (
	"context"
	"fmt"
)

func checkOffsetsTopic(_ context.Context, p *probe, o *outcome) error {
	name := p.worker.OffsetTopic
	f := p.topics[name]
	switch {
	case f == nil || f.err != nil:
		o.ok("%s cannot be described", name)
	case !f.exists:
		o.ok("%s does not exist; the first start makes it compacted", name)
	case f.policy == "":
		o.ok("%s; its settings may not be read", name)
	case f.policy != "compact":
		p.away[needOffsets] = "the offsets topic is not compacted only"
		o.fail("topic "+name, "cleanup.policy="+f.policy+": the broker would delete positions",
			"compact", fmt.Sprintf("kafka-configs --alter --entity-type topics --entity-name '%s' "+
				"--add-config cleanup.policy=compact", name))
	default:
		o.ok("%s is compacted", name)
	}
	return nil
}

// checkCompactedWithoutKey refuses tables without a key on compacted topics: the broker does.
func checkCompactedWithoutKey(_ context.Context, p *probe, o *outcome) error {
	for _, r := range p.tables {
		name := p.topicOf(r)
		policy, compacted := p.policyOf(name)
		if compacted && len(p.keyColumns(r)) == 0 {
			o.fail("topic "+name, "cleanup.policy="+policy+", and "+r.name()+" has no key",
				"delete, or a table with a key", deletePolicy(name)+
					"; or ALTER TABLE "+r.Quoted+" ADD PRIMARY KEY (...);")
		}
	}
	if name := p.cfg.MessageTopicName(); name != "" {
		if policy, compacted := p.policyOf(name); compacted {
			o.fail("topic "+name, "cleanup.policy="+policy+", and logical messages have no key", "delete",
				deletePolicy(name))
		}
	}
	o.ok("no table without a key goes to a compacted topic")
	return nil
}

// policyOf returns a topic's cleanup.policy: its own, or what it would be made with.
func (p *probe) policyOf(name string) (policy string, compacted bool) {
	f := p.topics[name]
	if f == nil || !f.exists {
		f = &topicFacts{policy: p.cfg.TopicCreation.Configs["cleanup.policy"]}
	}
	return f.policy, f.compacted()
}

func deletePolicy(topic string) string {
	return fmt.Sprintf("kafka-configs --alter --entity-type topics --entity-name '%s' "+
		"--add-config cleanup.policy=delete", topic)
}

// checkTruncate warns of a TRUNCATE that a compacted topic will not take.
func checkTruncate(_ context.Context, p *probe, o *outcome) error {
	if p.cfg.SkippedOperations['t'] || p.publication != nil && !p.publication.Truncate {
		o.ok("TRUNCATE is not sent")
		return nil
	}
	for _, r := range p.tables {
		name := p.topicOf(r)
		if policy, compacted := p.policyOf(name); compacted {
			o.fail("topic "+name, "cleanup.policy="+policy+": a TRUNCATE of "+r.name()+
				" has no key, and the connector stops with truncate_on_compacted_topic",
				"delete, or TRUNCATE skipped", deletePolicy(name)+"; or skipped.operations: t")
		}
	}
	o.ok("no captured table goes to a compacted topic")
	return nil
}

// batchOverhead is what a batch of one record has in addition to it, rounded up: header, record
// header and varints.
const batchOverhead = 512

func checkMessageSize(_ context.Context, p *probe, o *outcome) error {
	limit := p.cfg.Producer.MaxRequestBytes
	for _, r := range p.tables {
		name := p.topicOf(r)
		f := p.topics[name]
		if f == nil || f.maxBytes == 0 || f.maxBytes+batchOverhead >= limit {
			continue
		}
		o.fail("topic "+name, fmt.Sprintf("max.message.bytes %d is less than the producer's "+
			"max.request.size %d", f.maxBytes, limit), "not less: a larger row stops the connector",
			fmt.Sprintf("kafka-configs --alter --entity-type topics --entity-name '%s' "+
				"--add-config max.message.bytes=%d", name, limit))
	}
	o.ok("max.message.bytes is not less than max.request.size %d", limit)
	return nil
}
