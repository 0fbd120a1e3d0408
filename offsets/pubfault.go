package offsets

import "github.com/tidemark-cdc/tidemark/internal/fault"

// PublicationFault is the fault of a running connector whose publication was changed in a way that
// may have lost rows: the same text as the start-up matrix gives for it.
func PublicationFault(connector, slot string, stored *Record, gaps []Change) *fault.Error {
	in := StartInput{Connector: connector, SlotName: slot, Stored: stored}
	return in.gapFault(&Gap{
		Code: fault.PublicationChanged, From: stored.LSN, Reason: gaps[0].String(), Changes: gaps,
	})
}
