package converge

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-cdc/tidemark/envelope"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/internal/kafkadial"
)

// Bounds of reading.
const (
	// A broker answers a fetch that finds nothing after this.
	fetchWait = 500 * time.Millisecond
	// A partition's last offsets may belong to no record (compaction empties batches). When
	// nothing came for this long it is looked at.
	quietEnd = 5 * time.Second
	// Who waits longer than this gives up. A transaction that is open in the topic is somebody
	// else's: ours was ended by the fence.
	silence = 2 * time.Minute
)

// keyHead is what stands in front of a key's Avro body: a zero byte and the schema's id.
const keyHead = 5

func schemaID(key []byte) uint32 { return binary.BigEndian.Uint32(key[1:keyHead]) }

// ReadTopic reads the topic's keys up to the end that New found.
func (j *Join) ReadTopic(ctx context.Context) error {
	if j.Empty() {
		return nil
	}
	from := map[int32]kgo.Offset{}
	for id, p := range j.parts {
		from[id] = kgo.NewOffset().At(p.start)
	}
	j.client.AddConsumePartitions(map[string]map[int32]kgo.Offset{j.o.Topic: from})
	open := len(j.parts)
	var unusual oddities
	moved := time.Now()
	for open > 0 {
		records, err := j.poll(ctx)
		if err != nil {
			return err
		}
		if len(records) == 0 {
			if time.Since(moved) < quietEnd {
				continue
			}
			reached, err := j.quiet(ctx, time.Since(moved))
			if err != nil {
				return err
			}
			open -= reached
			continue
		}
		moved = time.Now()
		for _, rec := range records {
			p := j.parts[rec.Partition]
			before := p.next
			p.next = rec.Offset + 1
			if before < p.end && p.next >= p.end {
				open--
				j.client.PauseFetchPartitions(map[string][]int32{rec.Topic: {rec.Partition}})
			}
			if rec.Offset >= p.end || rec.Attrs.IsControl() {
				continue
			}
			if err := j.record(ctx, rec, p, &unusual); err != nil {
				return err
			}
		}
	}
	j.say(&unusual)
	return nil
}

func (j *Join) poll(ctx context.Context) ([]*kgo.Record, error) {
	pollCtx, cancel := context.WithTimeout(ctx, time.Second)
	fetches := j.client.PollFetches(pollCtx)
	cancel()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for _, f := range fetches.Errors() {
		if !errors.Is(f.Err, context.DeadlineExceeded) && !kafkadial.Temporary(f.Err) {
			return nil, kafkadial.Wrap("Read", "topic "+j.o.Topic, f.Err)
		}
	}
	return fetches.Records(), nil
}

// quiet finds partitions whose last offsets belong to no record, and returns how many there are. A
// silence alone proves nothing: a busy broker is silent too.
func (j *Join) quiet(ctx context.Context, since time.Duration) (reached int, err error) {
	topics, err := j.admin.ListTopics(ctx, j.o.Topic)
	if err != nil {
		return 0, kafkadial.Wrap("Describe", "topic "+j.o.Topic, err)
	}
	topic := topics[j.o.Topic]
	for id, p := range j.parts {
		if p.next >= p.end {
			continue
		}
		empty, stable, err := j.hole(ctx, topic, id, p)
		if err != nil {
			return reached, err
		}
		switch {
		case empty:
			p.next = p.end
			reached++
			j.client.PauseFetchPartitions(map[string][]int32{j.o.Topic: {id}})
		case since >= silence:
			return reached, fault.New(fault.BrokerUnreachable, fmt.Sprintf("partition %d of topic %s "+
				"cannot be read to its end: the broker sends nothing, or another producer has a "+
				"transaction open", id, j.o.Topic)).
				With(fmt.Sprintf("offset %d, last stable offset %d", p.next, stable),
					fmt.Sprintf("offset %d", p.end), "end the transaction, or wait for its timeout")
		}
	}
	return reached, nil
}

// oddities are records that are no rows of a table with a key.
type oddities struct {
	withoutKey, foreign int64
	unknown             map[uint32]bool
}

// record takes note of what a record says of its key.
func (j *Join) record(ctx context.Context, rec *kgo.Record, p *part, odd *oddities) error {
	op := ""
	for _, h := range rec.Headers {
		if h.Key == envelope.HeaderOp {
			op = string(h.Value)
		}
	}
	switch {
	case rec.Key == nil && op == "t":
		p.cleared = rec.Offset
		return nil
	case rec.Key == nil:
		odd.withoutKey++
		return nil
	case len(rec.Key) < keyHead || rec.Key[0] != 0:
		odd.foreign++
		return nil
	}
	schema, err := j.schema(ctx, schemaID(rec.Key), odd)
	if err != nil {
		return err
	}
	live := rec.Value != nil && op != "d"
	return j.topic.write(rec.Key[keyHead:], topicEntry(rec, live, schema.same))
}

// schema finds out how keys of a schema id compare with the table's.
func (j *Join) schema(ctx context.Context, id uint32, odd *oddities) (keySchema, error) {
	if s, known := j.shapes[id]; known {
		return s, nil
	}
	text, err := j.o.Schemas.SchemaByID(ctx, int(id))
	if err != nil {
		switch fault.CodeOf(err) {
		case fault.RegistryUnreachable, fault.AuthenticationFailed:
			return keySchema{}, err
		}
		if ctx.Err() != nil {
			return keySchema{}, ctx.Err()
		}
	}
	s := keySchema{same: true} // not known: it may be, and a row that is there must not be deleted
	if err == nil {
		s.shape, err = envelope.ParseKeyShape(text)
	}
	if err == nil {
		s.same = s.shape.Same(j.o.Shape)
	} else {
		if odd.unknown == nil {
			odd.unknown = map[uint32]bool{}
		}
		odd.unknown[id] = true
	}
	j.shapes[id] = s
	return s, nil
}

func (j *Join) say(odd *oddities) {
	if odd.withoutKey > 0 {
		j.o.Logger.Warn("the topic has records without a key, rows from a time when the table had "+
			"none or truncates without headers: no delete can name them", "topic", j.o.Topic, "records", odd.withoutKey)
	}
	if odd.foreign > 0 {
		j.o.Logger.Warn("the topic has records whose keys are not in the registry's wire format: "+
			"another program's; they are left alone", "topic", j.o.Topic, "records", odd.foreign)
	}
	for id := range odd.unknown {
		j.o.Logger.Warn("the registry does not know the schema of some of the topic's keys: they are "+
			"compared by their bytes", "topic", j.o.Topic, "schema_id", id)
	}
}
