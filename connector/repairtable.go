package connector

import (
	"context"

	"github.com/tidemark-cdc/tidemark/connector/converge"
	"github.com/tidemark-cdc/tidemark/envelope"
)

// beginTable gets a repair ready for the rows of a table: the end of its topic is noted before the
// first of them is sent. A table without a key gets a truncate instead: no delete could name its
// rows. The returned function must be called when the table is over.
func (s *session) beginTable(ctx context.Context, t *table, at envelope.Snapshot) (func(), error) {
	if s.repair == nil {
		return func() {}, nil
	}
	if err := s.settle(ctx); err != nil { // the topic's end is what is confirmed
		return nil, err
	}
	if !t.compiled.HasKey() {
		return func() {}, s.clearTable(ctx, t, at)
	}
	join, err := converge.New(ctx, converge.Options{
		Kafka: s.c.worker.Kafka, Topic: t.compiled.Topic, Schemas: s.tables.registry,
		Shape: t.compiled.KeyShape(), Logger: s.log,
	})
	if err != nil {
		return nil, err
	}
	s.join = join
	return func() {
		join.Close()
		s.join = nil
	}, nil
}

func (s *session) clearTable(ctx context.Context, t *table, at envelope.Snapshot) error {
	var err error
	if s.records, err = s.enc.Clear(s.records[:0], t.compiled, at); err != nil {
		return err
	}
	if len(s.records) == 0 {
		s.log.Warn("skipped.operations holds t: a table without a key is repaired by repeating its "+
			"rows, without what tells a reader to forget the earlier ones", "table",
			tableName(t.relation))
		return nil
	}
	t.counters.Event('t')
	return s.sendRead(ctx, s.records)
}

// endTable deletes the keys that the topic has and the table no longer, once every row is sent and
// confirmed.
func (s *session) endTable(ctx context.Context, t *table, at envelope.Snapshot) error {
	if s.join == nil {
		return nil
	}
	crashPoint("repair-rows-sent")
	if err := s.join.ReadTopic(ctx); err != nil {
		return err
	}
	var gone int64
	err := s.join.Gone(ctx, func(key []byte, shape *envelope.KeyShape) error {
		gone++
		var err error
		s.records, err = s.enc.Gone(s.records[:0], t.compiled, key, shape, at)
		if err != nil || len(s.records) == 0 {
			return err
		}
		t.counters.Event('d')
		err = s.sendRead(ctx, s.records)
		crashPoint("repair-delete-sent")
		return err
	})
	if err != nil {
		return err
	}
	s.log.Info("keys that are gone from the table were deleted", "table", tableName(t.relation),
		"keys", gone)
	if s.exact != nil {
		return nil // with the table's state, in one transaction
	}
	return s.producer.Flush(ctx)
}
