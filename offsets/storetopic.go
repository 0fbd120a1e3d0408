package offsets

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// pollInterval is the pause between two looks at something that the broker has to finish.
const pollInterval = 50 * time.Millisecond

// ensureTopic makes the topic when it is missing, checks its policy, and finds the partition of
// the connector's key.
func (s *Store) ensureTopic(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.CallTimeout)
	defer cancel()
	detail, err := s.describe(ctx)
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		if err := s.create(ctx); err != nil {
			return s.brokerFault("creating it", err)
		}
		detail, err = s.awaitTopic(ctx)
	}
	if err != nil {
		return s.brokerFault("describing it", err)
	}
	if err := s.checkPolicy(ctx); err != nil {
		return err
	}
	// The sticky key partitioner is Java's default one for records with a key: murmur2.
	partitioner := kgo.StickyKeyPartitioner(nil).ForTopic(s.opts.Topic)
	s.partition = int32(partitioner.Partition(&kgo.Record{Key: s.key}, len(detail.Partitions)))
	return nil
}

func (s *Store) describe(ctx context.Context) (kadm.TopicDetail, error) {
	topics, err := s.admin.ListTopics(ctx, s.opts.Topic)
	if err != nil {
		return kadm.TopicDetail{}, err
	}
	detail, ok := topics[s.opts.Topic]
	switch {
	case !ok:
		return detail, kerr.UnknownTopicOrPartition
	case detail.Err != nil:
		return detail, detail.Err
	case len(detail.Partitions) == 0:
		return detail, kerr.UnknownTopicOrPartition
	}
	return detail, nil
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
func (s *Store) awaitTopic(ctx context.Context) (kadm.TopicDetail, error) {
	for {
		detail, err := s.describe(ctx)
		if err == nil || !kerr.IsRetriable(err) && !errors.Is(err, kerr.UnknownTopicOrPartition) {
			return detail, err
		}
		if waitErr := sleep(ctx, pollInterval); waitErr != nil {
			return detail, fmt.Errorf("the new topic does not appear: %w", errors.Join(waitErr, err))
		}
	}
}

func (s *Store) checkPolicy(ctx context.Context) error {
	configs, err := s.admin.DescribeTopicConfigs(ctx, s.opts.Topic)
	if err == nil && len(configs) != 1 {
		err = fmt.Errorf("the broker described %d topics instead of 1", len(configs))
	}
	if err == nil {
		err = configs[0].Err
	}
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
