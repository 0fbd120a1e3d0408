package connector

import (
	"context"

	"github.com/tidemark-cdc/tidemark/connector/decode"
	"github.com/tidemark-cdc/tidemark/envelope"
)

// The topic of transactions (provide.transaction.metadata) holds a BEGIN in front of a transaction's
// first event and an END behind its last. A transaction without events has neither. BEGIN is one
// step with the first event and END with the end of the transaction: in exactly-once mode no Kafka
// transaction ends in between, so that a restart in a source transaction that was split knows from
// the row messages that are done whether BEGIN was sent. Those are encoded again, for their number
// alone: END has the numbers of the whole transaction.

// transactionOpens forgets the counts of the transaction before.
func (s *session) transactionOpens(ev *decode.Event) {
	if s.cfg.TransactionMetadata {
		s.enc.BeginTransaction(ev.Tx)
		s.beginSent = false
	}
}

// transactionBegins puts BEGIN in front of s.records when they are a transaction's first. done says
// that the records were sent by an earlier session, and have been dropped.
func (s *session) transactionBegins(ctx context.Context, ev *decode.Event) (done bool, err error) {
	if !s.cfg.TransactionMetadata || len(s.records) == 0 || !ev.RowMessage() {
		return false, nil
	}
	sent := s.beginSent
	s.beginSent = true
	if s.recounting {
		s.drop()
		return true, nil
	}
	if sent {
		return false, nil
	}
	t, err := s.tables.transactionTable(ctx)
	if err != nil {
		return false, err
	}
	if s.records, err = s.enc.TransactionBegins(s.records, t, ev.Tx); err != nil {
		return false, err
	}
	last := len(s.records) - 1
	begin := s.records[last]
	copy(s.records[1:], s.records[:last])
	s.records[0] = begin
	return false, nil
}

// recount counts the events of a row message that an earlier session has sent.
func (s *session) recount(ctx context.Context, ev *decode.Event) error {
	if !s.cfg.TransactionMetadata || !ev.RowMessage() {
		return nil
	}
	s.recounting = true
	defer func() { s.recounting = false }()
	return s.change(ctx, ev, nil)
}

// transactionEnds makes END, and sends it unless it must be one step with the transaction's end.
func (s *session) transactionEnds(
	ctx context.Context, ev *decode.Event,
) (end []envelope.Record, err error) {
	if !s.cfg.TransactionMetadata || !s.beginSent {
		return nil, nil
	}
	s.beginSent = false
	t, err := s.tables.transactionTable(ctx)
	if err != nil {
		return nil, err
	}
	if s.records, err = s.enc.TransactionEnds(s.records[:0], t, ev.Tx); err != nil {
		return nil, err
	}
	if s.exact != nil {
		return s.records, nil
	}
	return nil, s.producer.Hold(ctx, s.records, s.tx)
}
