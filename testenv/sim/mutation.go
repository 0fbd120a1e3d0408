package sim

import "github.com/tidemark-cdc/tidemark/offsets"

// Mutation is a fault that a run has built in, to show that a check finds it. It changes what the
// simulator's own driver does, never the code that ships.
type Mutation string

// The mutations.
const (
	StoreBeforeConfirm Mutation = "store before confirm"
	AcknowledgeEarly   Mutation = "acknowledge early"
	K2Removed          Mutation = "K2 removed"
	K3Removed          Mutation = "K3 removed"
	FenceRemoved       Mutation = "fence removed"
	SecondLookRemoved  Mutation = "second look removed"
	ReadBeforeFence    Mutation = "offsets read before the fence"
	IndexOffByOne      Mutation = "index skip off by one"
	Drop               Mutation = "drop"
	Swap               Mutation = "swap"
	SkipOnRestart      Mutation = "skip on restart"
	GapIgnored         Mutation = "gap ignored"
	PublicationIgnored Mutation = "publication not compared"
	IdleRemoved        Mutation = "idle advance removed"
)

// offByOne is the record as an index that is off by one reads it.
func (w *World) offByOne(r *offsets.Record) *offsets.Record {
	if !w.is(IndexOffByOne) || r.EventIndex == 0 {
		return r
	}
	wrong := *r
	wrong.EventIndex--
	return &wrong
}
