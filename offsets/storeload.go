package offsets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// Limits of one Fetch request of Load.
const (
	fetchWaitMillis = 250
	fetchBytes      = 8 << 20
)

// Load reads the connector's partition, read_committed, from its beginning to the end that it has
// now, and returns the newest record of the connector's key; nil when there is none or it was
// reset. Other keys are ignored. A record of ours that cannot be read is offsets_unreadable.
//
// Its end is the high watermark, not the last stable offset: behind an open transaction there may
// be a newer record of ours. So Load waits until that transaction has ended, at most ReadTimeout,
// and then says whose it is. Only one that is open under our own transactional id is not waited
// for: it is not committed, and whoever is about to write ends it with Fence and loads again.
//
// It fetches by itself instead of through the client's consumer, because the end of a compacted
// and transactional log may be control records or nothing at all, of which a consumer never
// tells: it could only guess by time that it has read everything.
func (s *Store) Load(ctx context.Context) (*Record, error) {
	end, err := s.stableEnd(ctx)
	if err != nil {
		return nil, err
	}
	value, _, err := s.newest(ctx, 0, end)
	if err != nil {
		return nil, err
	}
	return UnmarshalRecord(value)
}

// readBack holds what the topic has at a record's offset against the record that was confirmed.
func (s *Store) readBack(ctx context.Context, record *kgo.Record) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.ReadTimeout)
	defer cancel()
	stable, err := s.stableAt(ctx, record.Offset+1)
	if err != nil {
		return err
	}
	value, found, err := s.newest(ctx, record.Offset, min(stable, record.Offset+1))
	if err == nil && (!found || !bytes.Equal(value, record.Value)) {
		err = fault.New(fault.BrokerUnreachable, fmt.Sprintf("offsets topic %s does not hold at offset %d "+
			"the record that its broker has confirmed", s.opts.Topic, record.Offset)).With(
			"another record, or none", "the record", "nothing, unless it comes again: see that only "+
				"one process runs connector "+s.opts.Connector)
	}
	return err
}

// Overwritten reports whether somebody has written a record of our key after our own last one. Only
// a broker without transactions lets that happen: with them the writer's next Save is refused.
func (s *Store) Overwritten(ctx context.Context) (bool, error) {
	s.mu.Lock() // a Save of ours meanwhile would be taken for somebody's
	defer s.mu.Unlock()
	if !s.plain || s.written == 0 {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.CallTimeout)
	defer cancel()
	end, err := s.offsetOf(ctx, s.admin.ListEndOffsets)
	if err != nil {
		return false, s.brokerFault("asking for its end", err)
	}
	_, found, err := s.newest(ctx, s.written, end)
	return found, err
}

// newest returns the value of the last record of our key from an offset on, before end, and whether
// there is one.
func (s *Store) newest(ctx context.Context, offset, end int64) (value []byte, found bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.ReadTimeout)
	defer cancel()
	where := place{leader: -1}
	for offset < end {
		if where.leader < 0 {
			if where, offset, err = s.locate(ctx, offset); err != nil {
				return nil, false, s.brokerFault("reading it", err)
			}
			continue
		}
		part, next, err := s.fetch(ctx, where, offset)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return nil, false, s.brokerFault(fmt.Sprintf("reading it: stopped at offset %d of %d", offset,
				end), err)
		case kerr.IsRetriable(err) || !isKafkaError(err):
			where.leader = -1 // it moved, or its broker went away: ask again who leads
			if err := sleep(ctx, pollInterval); err != nil {
				return nil, false, s.brokerFault("reading it", err)
			}
			continue
		default:
			return nil, false, s.brokerFault("reading it", err)
		}
		for _, r := range part.Records {
			if r.Offset >= offset && r.Offset < end && bytes.Equal(r.Key, s.key) {
				value, found = r.Value, true
			}
		}
		offset = next
	}
	return value, found, nil
}

// place is where the partition can be read; leader -1 is not known.
type place struct {
	leader int32
	topic  [16]byte
}

// locate asks who leads the partition, and moves offset up to where the log begins.
func (s *Store) locate(ctx context.Context, offset int64) (place, int64, error) {
	where := place{leader: -1}
	var info topicInfo
	err := known(ctx, func() (err error) { info, err = s.describe(ctx); return err })
	if err != nil {
		return where, offset, err
	}
	leader, ok := info.leaders[s.partition]
	if !ok {
		return where, offset, kerr.UnknownTopicOrPartition
	}
	if leader < 0 {
		return where, offset, sleep(ctx, pollInterval)
	}
	start, err := s.offsetOf(ctx, s.admin.ListStartOffsets)
	if err != nil {
		return where, offset, err
	}
	return place{leader, info.id}, max(offset, start), nil
}

// fetch reads once from offset on, and returns where the next fetch begins.
func (s *Store) fetch(ctx context.Context, where place, offset int64) (kgo.FetchPartition, int64,
	error,
) {
	part := kmsg.NewFetchRequestTopicPartition()
	part.Partition, part.FetchOffset = s.partition, offset
	part.PartitionMaxBytes = fetchBytes
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic, topic.TopicID = s.opts.Topic, where.topic
	topic.Partitions = append(topic.Partitions, part)
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID, req.SessionEpoch = -1, -1
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = fetchWaitMillis, 1, fetchBytes
	req.IsolationLevel = 1 // read_committed
	req.Topics = append(req.Topics, topic)

	kresp, err := s.client.Broker(int(where.leader)).Request(ctx, req)
	if err != nil {
		return kgo.FetchPartition{}, offset, err
	}
	resp := kresp.(*kmsg.FetchResponse)
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return kgo.FetchPartition{}, offset, err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return kgo.FetchPartition{}, offset, fmt.Errorf("a fetch of one partition gave %d topics",
			len(resp.Topics))
	}
	rp := &resp.Topics[0].Partitions[0]
	if err := kerr.ErrorForCode(rp.ErrorCode); err != nil {
		return kgo.FetchPartition{}, offset, err
	}
	fp, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
		Offset: offset, IsolationLevel: kgo.ReadCommitted(), Topic: s.opts.Topic,
		Partition: s.partition,
	}, rp, kgo.DefaultDecompressor(), nil)
	return fp, next, fp.Err
}

// sayAfter is how long a transaction may stay open before the log tells that we wait for it.
const sayAfter = time.Second

// stableEnd returns the high watermark, once the last stable offset has reached it.
func (s *Store) stableEnd(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.ReadTimeout)
	defer cancel()
	end, err := s.offsetOf(ctx, s.admin.ListEndOffsets)
	if err != nil {
		return 0, s.brokerFault("asking for its end", err)
	}
	return s.stableAt(ctx, end)
}

// stableAt returns the last stable offset, once it has reached end.
func (s *Store) stableAt(ctx context.Context, end int64) (int64, error) {
	waiting := false
	began := time.Now()
	// Asked before the offset: what we had committed earlier is then below it. Between the end of a
	// transaction and its marker the partition is behind the coordinator for a moment, and only what
	// stays so was left behind.
	for own := false; ; own = s.ownIsOpen(ctx) ||
		time.Since(began) >= s.opts.ReadTimeout/8 && s.ownWasLeft(ctx) {
		stable, err := s.offsetOf(ctx, s.admin.ListCommittedOffsets)
		if err == nil && (stable >= end || own) {
			return stable, nil
		}
		if err == nil && !waiting && time.Since(began) >= sayAfter {
			waiting = true
			s.log.Warn("waiting for an open transaction on the offsets topic", "stable", stable,
				"end", end, "at_most", s.opts.ReadTimeout)
		}
		if sleep(ctx, pollInterval) == nil {
			continue
		}
		if err != nil {
			return 0, s.brokerFault("asking for its last stable offset", err)
		}
		return 0, s.blockedFault(ctx, stable, end)
	}
}

func (s *Store) offsetOf(ctx context.Context,
	list func(context.Context, ...string) (kadm.ListedOffsets, error),
) (int64, error) {
	var found kadm.ListedOffset
	err := known(ctx, func() error {
		listed, err := list(ctx, s.opts.Topic)
		if err != nil {
			return err
		}
		var ok bool
		if found, ok = listed.Lookup(s.opts.Topic, s.partition); !ok {
			return kerr.UnknownTopicOrPartition
		}
		return found.Err
	})
	return found.Offset, err
}

// blockedFault names the transactions that hold the last stable offset back.
func (s *Store) blockedFault(ctx context.Context, stable, end int64) error {
	// The deadline is what brought us here, so that naming them gets a short one of its own.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	f := fault.New(fault.OffsetsUnreadable, fmt.Sprintf("offsets topic %s, partition %d cannot be "+
		"read to its end: an open transaction blocks it at offset %d of %d", s.opts.Topic,
		s.partition, stable, end))
	f.Found = strings.Join(s.openTransactions(ctx), ", ")
	f.Fix = "stop that producer, or abort its transaction (kafka-transactions.sh abort); no other " +
		"program should write to this topic"
	return f
}

func (s *Store) openTransactions(ctx context.Context) []string {
	set := kadm.TopicsSet{}
	set.Add(s.opts.Topic, s.partition)
	producers, err := s.admin.DescribeProducers(ctx, set)
	if err != nil {
		return []string{"a producer that the broker does not name"}
	}
	var ids []int64
	started := map[int64]int64{}
	for _, p := range producers.SortedProducers() {
		if p.CurrentTxnStartOffset >= 0 {
			ids = append(ids, p.ProducerID)
			started[p.ProducerID] = p.CurrentTxnStartOffset
		}
	}
	names := map[int64]string{}
	if listed, err := s.admin.ListTransactions(ctx, ids, nil); err == nil {
		for _, t := range listed.Sorted() {
			names[t.ProducerID] = t.TxnID
		}
	}
	var out []string
	for _, id := range ids {
		text := fmt.Sprintf("producer id %d, open since offset %d", id, started[id])
		if name := names[id]; name != "" {
			text = fmt.Sprintf("transactional id %q (%s)", name, text)
		}
		out = append(out, text)
	}
	return out
}

// isKafkaError reports whether the broker itself answered with an error.
func isKafkaError(err error) bool {
	var e *kerr.Error
	return errors.As(err, &e)
}
