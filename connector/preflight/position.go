package preflight

import (
	"context"

	"github.com/tidemark-cdc/tidemark/connector/capture"
	"github.com/tidemark-cdc/tidemark/connector/source"
	"github.com/tidemark-cdc/tidemark/internal/kafkadial"
	"github.com/tidemark-cdc/tidemark/offsets"
)

// checkPosition makes the decision that a start would make, by the same code: the start-up matrix
// over the stored position, the slot and the publication. It stores nothing and fences nobody.
func checkPosition(ctx context.Context, p *probe, o *outcome) error {
	src, err := source.Connect(ctx, p.cfg.Database, applicationName)
	if err != nil {
		return err
	}
	defer src.Close()
	in := offsets.StartInput{
		Connector: p.cfg.Name, SlotName: p.cfg.SlotName, Plugin: "pgoutput",
		Database: p.cfg.Database.Name, PublicationName: p.cfg.Publication,
		Adopt: p.cfg.SlotAdopt, OnGap: p.cfg.OnSlotGap,
		TakeoverTimeout: p.cfg.SlotTakeover, Captured: p.capturedOID,
	}
	// The slot first: the record of a connector that runs is then never behind it.
	if in.Slot, err = src.Slot(ctx, p.cfg.SlotName); err != nil {
		return err
	}
	if in.Stored, err = p.stored(ctx); err != nil {
		return err
	}
	if in.Slot != nil {
		// Who uses it is another check's finding: here the positions count.
		in.Slot.Active = false
	}
	if in.Publication, err = src.Publication(ctx, p.cfg.Publication); err != nil {
		return err
	}
	if err := p.identify(ctx, &in); err != nil {
		return err
	}
	o.decision(offsets.Decide(in), in.Stored)
	return nil
}

func (o *outcome) decision(d offsets.Decision, stored *offsets.Record) {
	position := "none"
	if stored.HasPosition() {
		position = stored.LSN.String()
	}
	switch d.Action {
	case offsets.Refuse:
		o.failWith("stored position "+position, d.Fault)
	case offsets.Repair:
		found, _, _ := describe(d.Fault)
		o.failAs(Warning, "stored position "+position, found, "",
			"on.slot.gap is resnapshot: the next start reads the tables concerned again")
	case offsets.FreshStart:
		o.ok("no stored position and no slot: a fresh start")
	case offsets.HalfMade:
		o.ok("a start that was not finished goes on from %s", d.Start)
	case offsets.Adopt:
		o.ok("the slot is adopted at %s, as slot.adopt says", d.Start)
	case offsets.Resume:
		o.ok("the stream goes on from %s", d.Start)
	case offsets.Wait:
		o.ok("stored position %s; the slot is in use", position)
	}
}

// stored reads the connector's record; nil when there is none. Opening the store would make a
// missing topic, so it is opened only when the topic is there.
func (p *probe) stored(ctx context.Context) (*offsets.Record, error) {
	if f := p.topics[p.worker.OffsetTopic]; f == nil || !f.exists {
		return nil, nil
	}
	opts, err := kafkadial.Options(p.worker.Kafka)
	if err != nil {
		return nil, err
	}
	store, err := offsets.OpenStore(ctx, offsets.StoreOptions{
		ClientOpts: opts, Topic: p.worker.OffsetTopic, Connector: p.cfg.Name,
		Prefix: p.cfg.TopicPrefix, CallTimeout: p.timeout, ReadTimeout: p.timeout,
	})
	if err != nil {
		return nil, err
	}
	defer store.Close()
	return store.Load(ctx)
}

func (p *probe) capturedOID(oid uint32, _ string) bool {
	for _, r := range p.tables {
		if r.OID == oid {
			return true
		}
	}
	return false
}

// identify asks a replication session which cluster this is and where its WAL ends; after a
// promotion also for the timeline's history.
func (p *probe) identify(ctx context.Context, in *offsets.StartInput) error {
	conn, err := capture.Dial(ctx, p.cfg.Database, applicationName)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	system, err := conn.Identify(ctx)
	if err != nil {
		return err
	}
	in.Server = offsets.ServerInfo{
		SystemID: system.SystemID, Timeline: uint32(system.Timeline), WALEnd: system.WAL,
	}
	history, err := conn.TimelineHistory(ctx, system.Timeline)
	for _, h := range history {
		in.Timelines = append(in.Timelines, offsets.TimelineSwitch{
			Timeline: uint32(h.Timeline), Switch: h.Switch,
		})
	}
	return err
}
