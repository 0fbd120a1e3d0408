package connector

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/linkedin/goavro/v2"

	"github.com/tidemark-cdc/tidemark/envelope"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/schema"
)

// What was done about a gap.
const (
	gapBegun = "resnapshot_begun"
	gapDone  = "resnapshot_done"
)

// eventSchema is the value of the connector's own events: what a person or a consumer should know
// that is no row. from and to bound the gap in WAL positions, (from, to].
const eventSchema = `{"type":"record","name":"Event","namespace":%q,"fields":[` +
	`{"name":"kind","type":"string"},{"name":"connector","type":"string"},` +
	`{"name":"slot","type":"string"},{"name":"code","type":"string"},` +
	`{"name":"reason","type":"string"},{"name":"action","type":"string"},` +
	`{"name":"history","type":"long"},` +
	`{"name":"from","type":"long"},{"name":"to","type":"long"},` +
	`{"name":"tables","type":{"type":"array","items":"string"}},` +
	`{"name":"ts_ms","type":{"type":"long","logicalType":"timestamp-millis"}}]}`

// tellGap puts the gap on the topic <topic.prefix>.tidemark-events, in Avro as the tables' events,
// without a key: order matters there, and nothing replaces anything.
func (s *session) tellGap(ctx context.Context, action string) error {
	topic := s.cfg.TopicPrefix + ".tidemark-events"
	text := fmt.Sprintf(eventSchema, schema.AvroNamespace(topic))
	err := s.producer.EnsureTopic(ctx, topic, false)
	if fault.Has(err, fault.TopicCompactedNoKey) {
		s.log.Warn("the gap is told in the log only: the topic of events is compacted", "topic", topic)
		return nil
	}
	if err != nil {
		return err
	}
	id, err := s.tables.register(ctx, topic+"-value", text)
	if err != nil {
		return err
	}
	codec, err := goavro.NewCodec(text)
	if err != nil {
		return fault.Wrap(fault.Internal, "the schema of "+topic, err)
	}
	i := &s.repair.intent
	names := make([]any, len(s.repair.names))
	for k, name := range s.repair.names {
		names[k] = name
	}
	value, err := codec.BinaryFromNative(binary.BigEndian.AppendUint32([]byte{0}, uint32(id)),
		map[string]any{
			"kind": "gap", "connector": s.cfg.Name, "slot": s.cfg.SlotName, "code": string(i.Code),
			"reason": i.Reason, "action": action, "history": s.record.History,
			"from": int64(i.From), "to": int64(max(i.To, i.From)), "tables": names,
			"ts_ms": time.Now(),
		})
	if err != nil {
		return fault.Wrap(fault.Internal, "an event of "+topic, err)
	}
	err = s.sendRead(ctx, []envelope.Record{{
		Topic: topic, Value: value, Route: envelope.RouteOne, Op: 'g',
	}})
	if err != nil {
		return err
	}
	return s.settle(ctx)
}
