package offsets

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// pollInterval is the pause between two looks at something that the broker has to finish.
const pollInterval = 50 * time.Millisecond

// knownWithin bounds the wait for a broker to learn of a topic that another one has: after a topic
// was made, each broker hears of it at a time of its own.
const knownWithin = 5 * time.Second

// ensureTopic makes the topic when it is missing, checks its policy, and finds the partition of
// the connector's key.
func (s *Store) ensureTopic(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.CallTimeout)
	defer cancel()
	info, err := s.describe(ctx)
	if errors.Is(err, kerr.UnknownTopicOrPartition) && !s.opts.MustExist {
		if err := s.create(ctx); err != nil {
			return s.brokerFault("creating it", err)
		}
		info, err = s.awaitTopic(ctx)
	}
	if err != nil {
		return s.brokerFault("describing it", err)
	}
	if err := s.checkPolicy(ctx); err != nil {
		return err
	}
	// The sticky key partitioner is Java's default one for records with a key: murmur2.
	partitioner := kgo.StickyKeyPartitioner(nil).ForTopic(s.opts.Topic)
	s.partition = int32(partitioner.Partition(&kgo.Record{Key: s.key}, len(info.leaders)))
	return nil
}

// topicInfo is what a metadata answer says about the topic.
type topicInfo struct {
	id      [16]byte
	leaders map[int32]int32 // by partition; -1 while there is none
}

// describe asks a broker itself: the client's cached metadata may be seconds old, which is wrong
// for a topic that was just made and for a partition whose leader moved.
func (s *Store) describe(ctx context.Context) (topicInfo, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.AllowAutoTopicCreation = false
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = kmsg.StringPtr(s.opts.Topic)
	req.Topics = append(req.Topics, topic)
	resp, err := req.RequestWith(ctx, s.client)
	if err != nil {
		return topicInfo{}, err
	}
	if len(resp.Topics) != 1 {
		return topicInfo{}, fmt.Errorf("the broker described %d topics instead of 1",
			len(resp.Topics))
	}
	t := resp.Topics[0]
	if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
		return topicInfo{}, err
	}
	if len(t.Partitions) == 0 {
		return topicInfo{}, kerr.UnknownTopicOrPartition
	}
	info := topicInfo{id: t.TopicID, leaders: make(map[int32]int32, len(t.Partitions))}
	for _, p := range t.Partitions {
		info.leaders[p.Partition] = p.Leader
	}
	return info, nil
}

func (s *Store) create(ctx context.Context) error {
	policy := "compact"
	_, err := s.admin.CreateTopic(ctx, int32(s.opts.Partitions), int16(s.opts.Replication),
		map[string]*string{"cleanup.policy": &policy}, s.opts.Topic)
	if errors.Is(err, kerr.TopicAlreadyExists) {
		return nil // another connector's store was faster
	}
	if err == nil {
		s.log.Info("offsets topic created", "partitions", s.opts.Partitions)
	}
	return err
}

// awaitTopic waits until a topic that was just made is known to the broker that answers.
func (s *Store) awaitTopic(ctx context.Context) (info topicInfo, err error) {
	err = askWhile(ctx, kerr.IsRetriable, func() (err error) {
		info, err = s.describe(ctx)
		return err
	})
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("the new topic does not appear: %w", errors.Join(ctx.Err(), err))
	}
	return info, err
}

// known asks again while the broker that answers does not know the topic, at most knownWithin.
func known(ctx context.Context, ask func() error) error {
	ctx, cancel := context.WithTimeout(ctx, knownWithin)
	defer cancel()
	return askWhile(ctx, func(err error) bool {
		return errors.Is(err, kerr.UnknownTopicOrPartition)
	}, ask)
}

// askWhile asks again while again says so of the answer's error, until ctx ends.
func askWhile(ctx context.Context, again func(error) bool, ask func() error) error {
	for {
		if err := ask(); err == nil || !again(err) || sleep(ctx, pollInterval) != nil {
			return err
		}
	}
}

func (s *Store) checkPolicy(ctx context.Context) error {
	var configs kadm.ResourceConfigs
	err := known(ctx, func() (err error) {
		configs, err = s.admin.DescribeTopicConfigs(ctx, s.opts.Topic)
		if err == nil && len(configs) != 1 {
			err = fmt.Errorf("the broker described %d topics instead of 1", len(configs))
		}
		if err == nil {
			err = configs[0].Err
		}
		return err
	})
	if err != nil {
		return s.brokerFault("describing its configuration", err)
	}
	policy := ""
	for _, c := range configs[0].Configs {
		if c.Key == "cleanup.policy" {
			policy = c.MaybeValue()
		}
	}
	if policy == "compact" {
		return nil
	}
	return fault.New(fault.OffsetsTopicNotCompact, fmt.Sprintf("offsets topic %s is not compacted "+
		"only: the broker would delete positions", s.opts.Topic)).With(
		fmt.Sprintf("cleanup.policy=%s", policy), "cleanup.policy=compact",
		fmt.Sprintf("kafka-configs.sh --alter --entity-type topics --entity-name %s "+
			"--add-config cleanup.policy=compact", s.opts.Topic))
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
