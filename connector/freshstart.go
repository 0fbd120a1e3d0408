package connector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-cdc/tidemark/connector/capture"
	"github.com/tidemark-cdc/tidemark/connector/source"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/offsets"
)

// slotTimeout bounds the wait for the transactions that are open when a slot is made. Debezium's
// is the same.
const slotTimeout = 90 * time.Second

// lostRace reports whether create failed because another process did the same at the same time: it
// has fenced us, or its publication or slot is there. The next look says who waits for whom.
func lostRace(err error) bool {
	return fault.Has(err, fault.Fenced) || fault.Has(err, fault.SlotWithoutOffset) ||
		errors.Is(err, source.ErrExists)
}

// create makes what a fresh start needs, in the order that loses nothing: the publication before the
// slot, because a change before it cannot be decoded; and the slot's exported snapshot is its own
// point exactly. again means that somebody else begins too.
func (s *session) create(ctx context.Context, in offsets.StartInput) (again bool, err error) {
	if err := s.checkTables(ctx, in.Publication); err != nil {
		return false, err
	}
	return offsets.Fresh{
		Fence: func() error { return s.fence(ctx) },
		Look: func() (offsets.Decision, offsets.StartInput, error) {
			return s.look(ctx, 0, 0)
		},
		Intend: func(in *offsets.StartInput) error { return s.intend(ctx, in) },
		Create: func() error {
			if err := s.ensurePublication(ctx); err != nil {
				return err
			}
			crashPoint("publication-made")
			return s.makeSlot(ctx, s.wantsSnapshot())
		},
	}.Make()
}

// intend stores that slot and publication are about to be made: a slot of ours without a record
// would stop every later start.
func (s *session) intend(ctx context.Context, in *offsets.StartInput) error {
	if in.Stored != nil {
		s.record = *in.Stored
	}
	err := s.saveRecord(ctx, func(r *offsets.Record) {
		r.SystemID, r.Timeline, r.Slot = s.system.SystemID, uint32(s.system.Timeline), s.cfg.SlotName
		r.Intent = &offsets.Intent{
			Kind: offsets.IntentCreate, Slot: s.cfg.SlotName, SystemID: s.system.SystemID,
			TsUsec: time.Now().UnixMicro(),
		}
	})
	if err != nil {
		return err
	}
	crashPoint("intent-stored")
	return nil
}

// sayWhatSlotWaitsFor names open transactions every ten seconds. On an idle standby it is a record of
// running transactions that the server waits for: the primary is asked for one each second.
func (s *session) sayWhatSlotWaitsFor(ctx context.Context) {
	refused := false
	for seconds := 1; sleep(ctx, time.Second); seconds++ {
		if err := s.src.LogStandbySnapshot(ctx); err != nil && ctx.Err() == nil && !refused {
			refused = true
			s.log.Warn("the slot waits for a record of running transactions, and the primary could "+
				"not be asked for one", "error", err, "fix", "set primary.hostname and GRANT EXECUTE "+
				"ON FUNCTION pg_log_standby_snapshot() TO the connector's role; or call it there")
		}
		if seconds%10 == 0 {
			blockers, err := s.src.OpenTransactions(ctx)
			s.log.Warn("waiting for open transactions before the slot can be made",
				"transactions", blockers, "error", err)
		}
	}
}

// createSlot makes the slot; while the server waits for open transactions they are named in the
// log every ten seconds.
func (s *session) createSlot(ctx context.Context) (capture.Created, error) {
	ctx, cancel := context.WithTimeout(ctx, slotTimeout)
	defer cancel()
	saying, quiet := context.WithCancel(ctx)
	said := make(chan struct{})
	go func() {
		defer close(said)
		s.sayWhatSlotWaitsFor(saying)
	}()
	created, err := s.rep.CreateSlot(ctx, s.cfg.SlotName, s.cfg.SlotFailover)
	quiet()
	<-said
	if err != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		blockers, _ := s.src.OpenTransactions(context.WithoutCancel(ctx)) // for the text only
		return created, fault.Wrap(fault.SnapshotBlocked,
			"the slot could not be made: the server waits for open transactions", err).
			With(fmt.Sprint(blockers), "that they end within "+slotTimeout.String(),
				"end them, then start again; no slot was left behind")
	}
	return created, err
}
