package connector

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/linkedin/goavro/v2"

	"github.com/tidemark-cdc/tidemark/connector/deliver"
	"github.com/tidemark-cdc/tidemark/envelope"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/offsets"
	"github.com/tidemark-cdc/tidemark/schema"
)

// What was done about what an event tells.
const (
	gapBegun        = "resnapshot_begun"
	gapDone         = "resnapshot_done"
	schemaAnnounced = "announced"
)

// eventSchema is the value of the connector's own events: what a person or a consumer should know
// that is no row. kind is "gap", where from and to bound it in WAL positions, (from, to], or
// "schema", where both are the commit of the first event with the new schema, 0 in a snapshot.
const eventSchema = `{"type":"record","name":"Event","namespace":%q,"fields":[` +
	`{"name":"kind","type":"string"},{"name":"connector","type":"string"},` +
	`{"name":"slot","type":"string"},{"name":"code","type":"string"},` +
	`{"name":"reason","type":"string"},{"name":"action","type":"string"},` +
	`{"name":"history","type":"long"},` +
	`{"name":"from","type":"long"},{"name":"to","type":"long"},` +
	`{"name":"tables","type":{"type":"array","items":"string"}},` +
	`{"name":"ts_ms","type":{"type":"long","logicalType":"timestamp-millis"}}]}`

// ownEvent is one of them.
type ownEvent struct {
	kind           string
	code           fault.Code
	reason, action string
	from, to       offsets.LSN
	tables         []string
}

// eventRecords makes an event's record for the topic <topic.prefix>.tidemark-events, in Avro as the
// tables' events, without a key: order matters there, and nothing replaces anything. It makes the
// topic where it is missing. There is no record when the topic is compacted, which takes none.
func (s *session) eventRecords(
	ctx context.Context, producer *deliver.Producer, e *ownEvent,
) ([]envelope.Record, error) {
	topic := s.cfg.EventTopic()
	text := fmt.Sprintf(eventSchema, schema.AvroNamespace(topic))
	err := producer.EnsureTopic(ctx, topic, false)
	if fault.Has(err, fault.TopicCompactedNoKey) {
		s.log.Warn("what happens is told in the log only: the topic of events is compacted",
			"topic", topic, "kind", e.kind)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	id, err := s.tables.register(ctx, topic, false, text)
	if err != nil {
		return nil, err
	}
	codec, err := goavro.NewCodec(text)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "the schema of "+topic, err)
	}
	names := make([]any, len(e.tables))
	for k, name := range e.tables {
		names[k] = name
	}
	s.recordMu.Lock()
	history := s.record.History
	s.recordMu.Unlock()
	value, err := codec.BinaryFromNative(binary.BigEndian.AppendUint32([]byte{0}, uint32(id)),
		map[string]any{
			"kind": e.kind, "connector": s.cfg.Name, "slot": s.cfg.SlotName, "code": string(e.code),
			"reason": e.reason, "action": e.action, "history": history,
			"from": int64(e.from), "to": int64(e.to), "tables": names, "ts_ms": time.Now(),
		})
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "an event of "+topic, err)
	}
	return []envelope.Record{{Topic: topic, Value: value, Route: envelope.RouteOne, Op: 'g'}}, nil
}

// tellGap puts the gap that is repaired on the topic of events.
func (s *session) tellGap(ctx context.Context, action string) error {
	i := &s.repair.intent
	records, err := s.eventRecords(ctx, s.producer, &ownEvent{
		kind: "gap", code: i.Code, reason: i.Reason, action: action,
		from: i.From, to: max(i.To, i.From), tables: s.repair.names,
	})
	if err != nil || records == nil {
		return err
	}
	if err := s.sendRead(ctx, records); err != nil {
		return err
	}
	return s.settle(ctx)
}
