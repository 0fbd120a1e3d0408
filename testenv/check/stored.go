package check

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// storedReader follows a connector's record in the offsets topic, whose writer is transactional.
//
// A broker answers the end of a transaction when the decision is durable in its transaction log;
// the marker reaches the partition a little later. So a record that is in the partition without
// its marker may be stored already, and there are two answers: written is the newest record that
// was not aborted, committed the newest whose marker is there.
type storedReader struct {
	key     string
	topic   string
	brokers []string

	client    *kgo.Client
	at        map[int32]int64
	open      map[int64][]byte // by producer id: what its open transaction has written
	written   []byte
	committed []byte
	fell      []fall // since somebody took them: a look sees the newest record only
}

// fall is a record that stores less than the one before it.
type fall struct{ was, is uint64 }

func newStoredReader(brokers []string, topic, key string) *storedReader {
	return &storedReader{
		key: key, topic: topic, brokers: brokers, at: map[int32]int64{}, open: map[int64][]byte{},
	}
}

func (s *storedReader) close() {
	if s.client != nil {
		s.client.Close()
	}
}

// errNoTopic: nothing was stored yet.
var errNoTopic = errors.New("there is no offsets topic yet")

// read goes on to the end that the topic has now.
func (s *storedReader) read(ctx context.Context) error {
	if s.client == nil {
		client, err := kgo.NewClient(kgo.SeedBrokers(s.brokers...), kgo.ConsumeTopics(s.topic),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.KeepControlRecords(),
			kgo.FetchMaxWait(50*time.Millisecond), kgo.MetadataMinAge(50*time.Millisecond),
			kgo.UnknownTopicRetries(-1), kgo.RequestTimeoutOverhead(2*time.Second))
		if err != nil {
			return err
		}
		s.client = client
	}
	end, err := kadm.NewClient(s.client).ListEndOffsets(ctx, s.topic)
	if err != nil {
		return err
	}
	if len(end[s.topic]) == 0 || end.Error() != nil {
		return errNoTopic
	}
	for !s.reached(end) {
		fetches := s.client.PollFetches(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		for records := fetches.RecordIter(); !records.Done(); {
			s.take(records.Next())
		}
	}
	return nil
}

func (s *storedReader) reached(end kadm.ListedOffsets) bool {
	for p, o := range end[s.topic] {
		if s.at[p] < o.Offset {
			return false
		}
	}
	return true
}

// take follows one record. A control record's key is its version and its type, two bytes each: 0
// is an abort, 1 a commit (KIP-98).
func (s *storedReader) take(r *kgo.Record) {
	s.at[r.Partition] = r.Offset + 1
	switch {
	case r.Attrs.IsControl():
		value, had := s.open[r.ProducerID]
		delete(s.open, r.ProducerID)
		if had && len(r.Key) >= 4 && binary.BigEndian.Uint16(r.Key[2:]) == 1 {
			s.commit(value)
		} else if had {
			s.written = s.committed
		}
	case string(r.Key) != s.key:
	case r.Attrs.IsTransactional():
		s.open[r.ProducerID], s.written = r.Value, r.Value
	default:
		s.commit(r.Value)
		s.written = r.Value
	}
}

func (s *storedReader) commit(value []byte) {
	was, _ := storedLSN(s.committed)
	if is, _ := storedLSN(value); is != 0 && is < was {
		s.fell = append(s.fell, fall{was: was, is: is})
	}
	s.committed = value
}

// takeFell returns what fell since it was called last.
func (s *storedReader) takeFell() []fall {
	fell := s.fell
	s.fell = nil
	return fell
}
