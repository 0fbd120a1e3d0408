package preflight

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/internal/kafkadial"
	"github.com/tidemark-cdc/tidemark/offsets"
)

// topicFacts is what the broker says of a topic that events or positions go to.
type topicFacts struct {
	exists   bool
	err      error // why it could not be looked at
	allowed  int32 // bit n: the operation kmsg.ACLOperation(n) is allowed; math.MinInt32: not said
	policy   string
	maxBytes int // max.message.bytes; 0: not known
}

// may reports whether an operation is allowed, or the broker does not say.
func (t *topicFacts) may(op kmsg.ACLOperation) bool {
	return t.allowed == math.MinInt32 || t.allowed&(1<<op) != 0
}

func (t *topicFacts) compacted() bool { return strings.Contains(t.policy, "compact") }

func checkBroker(ctx context.Context, p *probe, o *outcome) error {
	servers := strings.Join(p.worker.Kafka.Bootstrap, ", ")
	if err := p.dialBroker(ctx); err != nil {
		p.away[needBroker] = "no Kafka broker can be asked"
		o.failWith(servers, err)
		return nil
	}
	o.ok("%s", servers)
	return nil
}

// dialBroker connects and reads what the broker says of every topic that the connector needs.
func (p *probe) dialBroker(ctx context.Context) error {
	opts, err := kafkadial.Options(p.worker.Kafka)
	if err != nil {
		return err
	}
	client, err := kgo.NewClient(append(opts, kgo.RetryTimeout(p.timeout))...)
	if err != nil {
		return fault.Wrap(fault.ConfigInvalid, "the Kafka client refuses its options", err)
	}
	p.kafka, p.admin = client, kadm.NewClient(client)
	names := p.topicNames()
	if err := p.describeTopics(ctx, names); err != nil {
		return kafkadial.Wrap("Describe", "cluster", err)
	}
	return kafkadial.Wrap("DescribeConfigs", "topics", p.describeConfigs(ctx))
}

// topicNames returns the topics of the captured tables, the connector's own and the offsets topic,
// sorted.
func (p *probe) topicNames() []string {
	names := map[string]bool{p.worker.OffsetTopic: true}
	for _, topic := range p.cfg.OwnTopics() {
		if len(topic) <= topicNameMax {
			names[topic] = true
		}
	}
	for _, r := range p.tables {
		if topic := p.topicOf(r); len(topic) <= topicNameMax {
			names[topic] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// describeTopics asks for metadata with the operations that this principal may do (KIP-430).
func (p *probe) describeTopics(ctx context.Context, names []string) error {
	req := kmsg.NewPtrMetadataRequest()
	req.IncludeTopicAuthorizedOperations = true
	for _, name := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, p.kafka)
	if err != nil {
		return err
	}
	p.topics = map[string]*topicFacts{}
	for _, t := range resp.Topics {
		if t.Topic == nil {
			continue
		}
		f := &topicFacts{allowed: t.AuthorizedOperations}
		switch err := kerr.ErrorForCode(t.ErrorCode); {
		case err == nil:
			f.exists = true
		case !errors.Is(err, kerr.UnknownTopicOrPartition):
			f.err = err
		}
		p.topics[*t.Topic] = f
	}
	return nil
}

// describeConfigs reads the settings of topics that exist. A principal that may not see them leaves
// them unknown: the broker refuses by itself what a check would have refused earlier.
func (p *probe) describeConfigs(ctx context.Context) error {
	var names []string
	for name, f := range p.topics {
		if f.exists && f.may(kmsg.ACLOperationDescribeConfigs) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	configs, err := p.admin.DescribeTopicConfigs(ctx, names...)
	if err != nil {
		return err
	}
	for _, c := range configs {
		f := p.topics[c.Name]
		if f == nil || c.Err != nil {
			continue
		}
		for _, entry := range c.Configs {
			switch entry.Key {
			case "cleanup.policy":
				f.policy = entry.MaybeValue()
			case "max.message.bytes":
				f.maxBytes, _ = strconv.Atoi(entry.MaybeValue()) // 0: not known
			}
		}
	}
	return nil
}

// topicNeed is an operation that a topic must allow, in the words of an ACL.
type topicNeed struct {
	op   kmsg.ACLOperation
	name string
}

var (
	eventNeeds = []topicNeed{
		{kmsg.ACLOperationDescribe, "Describe"}, {kmsg.ACLOperationWrite, "Write"},
	}
	readNeeds = append(slices.Clone(eventNeeds), topicNeed{kmsg.ACLOperationRead, "Read"})
)

func checkTopicRights(ctx context.Context, p *probe, o *outcome) error {
	var missing []string
	existing := 0
	for _, name := range p.topicNames() {
		f := p.topics[name]
		switch {
		case f == nil:
			continue
		case f.err != nil:
			o.failWith("topic "+name, kafkadial.Wrap("Describe", "topic "+name, f.err))
		case !f.exists && name != p.worker.OffsetTopic:
			missing = append(missing, name)
		case f.exists:
			existing++
			p.checkAllowed(o, name, f)
		}
	}
	creation := p.cfg.TopicCreation
	configs := map[string]string{}
	maps.Copy(configs, creation.Configs)
	if err := p.tryCreate(ctx, o, missing, creation.Partitions, creation.Replication,
		configs); err != nil {
		return err
	}
	if f := p.topics[p.worker.OffsetTopic]; f != nil && f.err == nil && !f.exists {
		err := p.tryCreate(ctx, o, []string{p.worker.OffsetTopic}, p.worker.OffsetPartitions,
			p.worker.OffsetReplication, map[string]string{"cleanup.policy": "compact"})
		if err != nil {
			return err
		}
	}
	o.ok("%d exist and may be written, %d can be made", existing, len(p.topics)-existing)
	return nil
}

func (p *probe) checkAllowed(o *outcome, name string, f *topicFacts) {
	var denied []string
	for _, n := range p.needsOf(name) {
		if !f.may(n.op) {
			denied = append(denied, n.name)
		}
	}
	if len(denied) > 0 {
		o.fail("topic "+name, "no "+strings.Join(denied, ", "), "allowed for "+p.principal(),
			fmt.Sprintf("kafka-acls --add --allow-principal %s --topic '%s' %s",
				p.principal(), name, operationFlags(denied)))
	}
}

// needsOf are the operations that the connector needs on a topic. It reads the offsets topic, and
// with on.slot.gap: resnapshot those of tables, to find the keys that their table has no longer.
func (p *probe) needsOf(name string) []topicNeed {
	if name == p.worker.OffsetTopic ||
		p.cfg.OnSlotGap == "resnapshot" && !slices.Contains(p.cfg.OwnTopics(), name) {
		return readNeeds
	}
	return eventNeeds
}

func operationFlags(names []string) string {
	flags := make([]string, len(names))
	for i, n := range names {
		flags[i] = "--operation " + n
	}
	return strings.Join(flags, " ")
}

// principal names who the broker takes this client for.
func (p *probe) principal() string {
	if u := p.worker.Kafka.SASLUser; u != "" {
		return "User:" + u
	}
	return "User:ANONYMOUS"
}

// tryCreate asks the broker whether it would make the topics, without making them.
func (p *probe) tryCreate(
	ctx context.Context, o *outcome, names []string, partitions, replication int,
	configs map[string]string,
) error {
	if len(names) == 0 {
		return nil
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.ValidateOnly = true
	req.TimeoutMillis = int32(p.timeout.Milliseconds())
	for _, name := range names {
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic, t.NumPartitions, t.ReplicationFactor = name, -1, -1
		if partitions > 0 {
			t.NumPartitions = int32(partitions)
		}
		if replication > 0 {
			t.ReplicationFactor = int16(replication)
		}
		for _, k := range slices.Sorted(maps.Keys(configs)) {
			c := kmsg.NewCreateTopicsRequestTopicConfig()
			c.Name, c.Value = k, kmsg.StringPtr(configs[k])
			t.Configs = append(t.Configs, c)
		}
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, p.kafka)
	if err != nil {
		return kafkadial.Wrap("Create", "topics", err)
	}
	for _, t := range resp.Topics {
		err := kerr.ErrorForCode(t.ErrorCode)
		if err == nil || errors.Is(err, kerr.TopicAlreadyExists) {
			continue
		}
		if t.ErrorMessage != nil && *t.ErrorMessage != "" {
			err = fmt.Errorf("%w (%s)", err, *t.ErrorMessage)
		}
		p.createRefused(o, t.Topic, err)
	}
	return nil
}

func (p *probe) createRefused(o *outcome, name string, err error) {
	wrapped := kafkadial.Wrap("Create", "topic "+name, err)
	if !fault.Has(wrapped, fault.BrokerForbids) {
		o.failWith("topic "+name, wrapped)
		return
	}
	wanted := []string{"Create"}
	for _, n := range p.needsOf(name) {
		wanted = append(wanted, n.name)
	}
	o.fail("topic "+name, "does not exist, and "+p.principal()+" may not make it", "Create",
		fmt.Sprintf("kafka-acls --add --allow-principal %s --topic '%s' %s", p.principal(), name,
			operationFlags(wanted)))
}

// checkTransactions looks whether the broker has transactions, on which the fence between two
// processes rests, and whether this principal may use the connector's id.
func checkTransactions(ctx context.Context, p *probe, o *outcome) error {
	id := offsets.TransactionalID(p.cfg.Name)
	versions, err := p.admin.ApiVersions(ctx)
	if err != nil {
		return kafkadial.Wrap("Describe", "cluster", err)
	}
	for _, v := range versions.Sorted() {
		if _, _, has := v.KeyVersions(int16(kmsg.EndTxn)); !has && v.Err == nil {
			if p.cfg.ExactlyOnce {
				o.failWith("broker", fault.New(fault.ConfigInvalid, "exactly.once.support cannot be "+
					"required").With("a broker without transactions", "one that has them",
					"set exactly.once.support: disabled"))
				return nil
			}
			o.failAs(Warning, "broker", "has no transactions",
				"transactions: the fence between two processes of one connector rests on them", "")
			return nil
		}
	}
	available := "available"
	if !newTransactions(versions) {
		available = "available (of the protocol before KIP-890: an id is initialised anew after each " +
			"failure)"
	}
	switch err := p.describeTransaction(ctx, id); {
	case errors.Is(err, kerr.TransactionalIDAuthorizationFailed):
		o.fail("transactional id "+id, "not allowed for "+p.principal(), "Describe and Write",
			fmt.Sprintf("kafka-acls --add --allow-principal %s --transactional-id '%s' %s",
				p.principal(), id, operationFlags([]string{"Describe", "Write"})))
	case err == nil, errors.Is(err, kerr.TransactionalIDNotFound):
		// Describe is allowed. Write cannot be asked for without taking the id over.
		o.ok("%s, %s may be used", available, id)
	default:
		// A broker that has transactions but cannot describe them says nothing about rights.
		o.ok("%s; whether %s may be used is not known", available, id)
	}
	return nil
}

// newTransactions reports whether all brokers use the transactions of KIP-890, which tell a late
// request of an earlier transaction from one of this.
func newTransactions(versions kadm.BrokersApiVersions) bool {
	for _, v := range versions.Sorted() {
		if v.Err == nil && !slices.ContainsFunc(v.Raw().FinalizedFeatures,
			func(f kmsg.ApiVersionsResponseFinalizedFeature) bool {
				return f.Name == "transaction.version" && f.MaxVersionLevel >= 2
			}) {
			return false
		}
	}
	return true
}

// describeTransaction asks for the state of a transactional id, which changes nothing.
func (p *probe) describeTransaction(ctx context.Context, id string) error {
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = []string{id}
	resp, err := req.RequestWith(ctx, p.kafka)
	if err != nil {
		return err
	}
	for _, s := range resp.TransactionStates {
		if err := kerr.ErrorForCode(s.ErrorCode); err != nil {
			return err
		}
	}
	return nil
}
