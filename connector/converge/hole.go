package converge

import (
	"context"
	"encoding/binary"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-cdc/tidemark/internal/kafkadial"
)

// Where things are in a record batch of message format 2.
const (
	batchLength     = 8  // of what follows its own four bytes
	batchAttributes = 21 // bit 5: a transaction's end marker
	batchLastDelta  = 23 // last offset, from the first
	batchCount      = 57
	batchHeader     = 61
	attributeMarker = 1 << 5
)

// hole asks the partition's leader what is between the next offset and the end: nothing, when
// compaction has taken the last records away, so that no fetch will ever reach the end. The client
// does not tell empty batches apart from silence. stable is the last stable offset.
func (j *Join) hole(
	ctx context.Context, topic kadm.TopicDetail, id int32, p *part,
) (empty bool, stable int64, err error) {
	for at := p.next; at < p.end; {
		got, err := j.fetch(ctx, topic, id, at)
		if err != nil {
			return false, 0, err
		}
		stable = got.LastStableOffset
		if stable < p.end {
			return false, stable, nil
		}
		next, rows := emptyUpTo(got.RecordBatches, at)
		if rows {
			return false, stable, nil
		}
		if next == at { // nothing at all is behind it
			return true, stable, nil
		}
		at = next
	}
	return true, stable, nil
}

func (j *Join) fetch(
	ctx context.Context, topic kadm.TopicDetail, id int32, at int64,
) (*kmsg.FetchResponseTopicPartition, error) {
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = id, at, 1<<20
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID = topic.Topic, [16]byte(topic.ID)
	t.Partitions = append(t.Partitions, p)
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID, req.MaxBytes, req.IsolationLevel, req.SessionEpoch = -1, 1<<20, 1, -1
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(ctx, j.client.Broker(int(topic.Partitions[id].Leader)))
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err == nil && (len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1) {
		err = kerr.UnknownTopicOrPartition
	}
	if err == nil {
		err = kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
	}
	if err != nil {
		return nil, kafkadial.Wrap("Read", "topic "+topic.Topic, err)
	}
	return &resp.Topics[0].Partitions[0], nil
}

// emptyUpTo walks over batches from an offset on. rows says that one has records; else next is
// where the last whole batch ends.
func emptyUpTo(b []byte, at int64) (next int64, rows bool) {
	for len(b) >= batchHeader {
		size := batchLength + 4 + int(binary.BigEndian.Uint32(b[batchLength:]))
		last := int64(binary.BigEndian.Uint64(b)) + int64(binary.BigEndian.Uint32(b[batchLastDelta:]))
		marker := binary.BigEndian.Uint16(b[batchAttributes:])&attributeMarker != 0
		if last >= at {
			if binary.BigEndian.Uint32(b[batchCount:]) > 0 && !marker {
				return at, true
			}
			at = last + 1
		}
		if size > len(b) {
			break
		}
		b = b[size:]
	}
	return at, false
}
