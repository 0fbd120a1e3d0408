package connector

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-cdc/tidemark/connector/deliver"
	"github.com/tidemark-cdc/tidemark/envelope"
	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// Registries compare Avro types and look at nothing else: decimal(10,4) may follow decimal(10,2)
// under every level, and a reader that resolves with its old schema is wrong by powers of ten. A
// column that was dropped and is back with another type passes the levels that look at the latest
// version only. So each new version of a table's value schema is compared with the one before it,
// before it is registered: this session's own, else the subject's latest (what an earlier process
// registered), and for fields that the one before lacks the version that had them last.
//
// The announcement is confirmed before the schema is registered: a crash in between announces
// again, and none is silent. What the registry is going to refuse is not announced.

// earlierVersions bounds how many versions of a subject are looked at for a field that was there
// before.
const earlierVersions = 100

// announcer tells a change on the topic of the connector's own events, and returns when that is
// confirmed.
type announcer func(ctx context.Context, table, reason string) error

// schemaChange announces what is about to change in how a table's values are written, or stops.
func (ts *tables) schemaChange(ctx context.Context, t *table) error {
	c := t.compiled
	if ts.written[c.Topic] == c.ValueSchema {
		return nil
	}
	subject := ts.subject(c.Topic, false, c.ValueSchema)
	changes, err := ts.changes(ctx, c, subject)
	if err != nil && ctx.Err() == nil && ts.cfg.SchemaLogicalChange != "fail" {
		// A registry that lets nobody read, or holds something else there: registering tells.
		ts.log.Warn("a schema cannot be compared with the one before it", "subject", subject, "error", err)
		return nil
	}
	if err != nil || len(changes) == 0 {
		return err
	}
	name := t.relation.Namespace + "." + t.relation.Name
	reason := "the fields' types change in subject " + subject + ": " + strings.Join(changes, "; ")
	if ts.cfg.SchemaLogicalChange == "fail" {
		return fault.New(fault.SchemaChanged, "the types of columns of table "+name+" change").With(
			strings.Join(changes, "; "), "the types that subject "+subject+" has, since "+
				"schema.logical.change is fail",
			"prepare the readers of topic "+c.Topic+"; then start with schema.logical.change: warn "+
				"until the table's next event is sent, or register what `tidemark explain` prints; "+
				"nothing is lost meanwhile, the slot keeps the WAL")
	}
	ts.log.Warn("the types of a table's columns change: readers that resolve with an earlier schema "+
		"may misread them", "table", name, "subject", subject, "changes", strings.Join(changes, "; "))
	if err := ts.announce(ctx, name, reason); err != nil {
		return err
	}
	t.counters.LogicalChange(len(changes))
	return nil
}

// changes returns the fields whose types change and that the registry would let change, in words.
func (ts *tables) changes(
	ctx context.Context, c *envelope.Table, subject string,
) (changes []string, err error) {
	before, known := ts.written[c.Topic]
	if !known {
		err = ts.ask(ctx, "read", subject, func() error {
			var err error
			before, err = ts.registry.Latest(ctx, subject)
			return err
		})
	}
	if err != nil || before == "" {
		return nil, err
	}
	changed, fresh, err := envelope.Changes(before, c.ValueSchema)
	if err != nil {
		return nil, err
	}
	for _, f := range changed {
		changes = append(changes, f.String())
	}
	if len(fresh) > 0 {
		again, err := ts.comeBack(ctx, c, subject, fresh)
		if err != nil {
			return nil, err
		}
		changes = append(changes, again...)
	}
	if len(changes) == 0 {
		return nil, nil
	}
	allowed := true
	err = ts.ask(ctx, "ask about", subject, func() error {
		var err error
		allowed, err = ts.registry.Compatible(ctx, subject, c.ValueSchema)
		return err
	})
	if err != nil || !allowed {
		return nil, err
	}
	return changes, nil
}

// comeBack returns those of the fresh fields that an earlier version had with another type.
func (ts *tables) comeBack(
	ctx context.Context, c *envelope.Table, subject string, fresh []string,
) (changes []string, err error) {
	err = ts.ask(ctx, "read", subject, func() error {
		left := slices.Clone(fresh)
		changes = nil
		var bad error
		err := ts.registry.Earlier(ctx, subject, earlierVersions, func(text string) bool {
			changed, unknown, err := envelope.Changes(text, c.ValueSchema)
			if err != nil {
				bad = err
				return false
			}
			for _, f := range changed {
				if slices.Contains(left, f.Field) {
					changes = append(changes, f.String()+" (it comes back)")
				}
			}
			left = slices.DeleteFunc(left, func(name string) bool {
				return !slices.Contains(unknown, name)
			})
			return len(left) > 0
		})
		if err == nil {
			err = bad
		}
		return err
	})
	return changes, err
}

// announceSchemaChange is the session's announcer. It has a producer of its own: the pump may be
// inside a Kafka transaction, which a crash would take the announcement away with, while the
// registry keeps the schema.
func (s *session) announceSchemaChange(ctx context.Context, table, reason string) error {
	waiting := "the brokers have not confirmed an event on " + s.cfg.EventTopic()
	s.tables.wait.Store(&waiting)
	defer s.tables.wait.Store(nil)
	e := ownEvent{
		kind: "schema", code: fault.SchemaChanged, reason: reason, action: schemaAnnounced,
		tables: []string{table},
	}
	if s.tx != nil {
		e.from, e.to = s.tx.Final, s.tx.Final
	}
	producer, err := deliver.New(ctx, deliver.Options{
		Kafka: s.c.worker.Kafka, Producer: s.cfg.Producer, Creation: s.cfg.TopicCreation,
		Queue: deliver.NewQueue(s.cfg.MaxQueueBytes, nil), Logger: s.log,
	})
	if err != nil {
		return fmt.Errorf("the announcement of a schema's change: %w", err)
	}
	defer producer.Close()
	records, err := s.eventRecords(ctx, producer, &e)
	if err != nil || records == nil {
		return err
	}
	s.tables.wait.Store(&waiting) // the registry's wait has ended
	if err := producer.Send(ctx, records, nil); err != nil {
		return err
	}
	return producer.Flush(ctx)
}
