package preflight

import (
	"context"
	"fmt"
	"strings"

	"github.com/tidemark-cdc/tidemark/schema"
)

// topicNameMax is the longest name that a broker takes: Topic.MAX_NAME_LENGTH in Kafka.
const topicNameMax = 249

func (p *probe) topicOf(r *relation) string {
	return schema.TopicName(p.cfg.TopicPrefix, r.Schema, r.Name)
}

// checkTopicNames finds what the broker would refuse: names that are too long, and names that
// differ only in dots and underscores, which Kafka's own metrics would mix up.
func checkTopicNames(_ context.Context, p *probe, o *outcome) error {
	folded := map[string]string{fold(p.worker.OffsetTopic): "the offsets topic"}
	for _, topic := range p.cfg.OwnTopics() {
		folded[fold(topic)] = "the connector's own topic " + topic
		if len(topic) > topicNameMax {
			o.fail("topic "+topic, fmt.Sprintf("%d characters", len(topic)),
				fmt.Sprintf("at most %d", topicNameMax), "choose a shorter topic.prefix")
		}
	}
	for _, r := range p.tables {
		topic := p.topicOf(r)
		if len(topic) > topicNameMax {
			o.fail(r.name(), fmt.Sprintf("topic %s has %d characters", topic, len(topic)),
				fmt.Sprintf("at most %d", topicNameMax), "choose a shorter topic.prefix")
		}
		if other, taken := folded[fold(topic)]; taken {
			o.fail(r.name(), "topic "+topic+" collides with that of "+other,
				"names that differ in more than dots and underscores",
				"rename one, or give each its own connector with another topic.prefix")
			continue
		}
		folded[fold(topic)] = r.name()
	}
	o.ok("%s, each its own", plural(len(p.tables), "topic"))
	return nil
}

func fold(topic string) string { return strings.ReplaceAll(topic, ".", "_") }

// checkRootAndLeaf refuses a partitioned table that is listed together with a partition of it (rows
// come under one of the two names, and the other topic would stay empty), and a rule that captures
// the name under which rows do not come.
func checkRootAndLeaf(_ context.Context, p *probe, o *outcome) error {
	literal := map[[2]string]bool{}
	for _, name := range p.cfg.Tables.Literal() {
		literal[name] = true
	}
	for _, r := range p.relations {
		if r.root == nil || !r.isTable() {
			continue
		}
		leaf := p.cfg.Tables.Captured(r.Schema, r.Name)
		root := p.cfg.Tables.Captured(r.root.Schema, r.root.Name)
		switch {
		case leaf && root && literal[[2]string{r.Schema, r.Name}]:
			o.fail(r.name(), "listed together with its root "+r.root.name(), "one of the two",
				"take one of them out of table.include.list")
		case p.viaRoot() && leaf && !root:
			o.fail(r.name(), "its rows come under the name of its root "+r.root.name()+
				", which no rule captures", "the root captured",
				"list the root, or set publish.via.partition.root: false")
		case !p.viaRoot() && !leaf && root && r.Kind == 'r':
			o.fail(r.name(), "its rows come under its own name, which no rule captures, though its "+
				"root "+r.root.name()+" is", "captured as its root is",
				"set publish.via.partition.root: true, or list the partitions")
		}
	}
	o.ok("no partition is listed together with its root, none is dropped for its name")
	return nil
}
