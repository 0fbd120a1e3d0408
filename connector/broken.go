//go:build !broken

package connector

import (
	"context"

	"github.com/tidemark-cdc/tidemark/connector/decode"
	"github.com/tidemark-cdc/tidemark/envelope"
	"github.com/tidemark-cdc/tidemark/offsets"
)

// saboteur is where the builds with the tag broken do wrong, to show that the checker of the proof
// notices (broken_on.go); nothing otherwise.
type saboteur struct{}

func (saboteur) decoded(*decode.Event)                                     {}
func (saboteur) row(*session, *decode.Event) (drop bool)                   { return false }
func (saboteur) records(_ *session, r []envelope.Record) []envelope.Record { return r }
func (saboteur) commit(*session)                                           {}
func (saboteur) mark(_ *session, m offsets.Mark) offsets.Mark              { return m }
func (saboteur) keepalive(*session, offsets.LSN)                           {}
func (saboteur) cut(r *offsets.Record) *offsets.Record                     { return r }

func (saboteur) claim(
	_ context.Context, c offsets.Claim, _ *offsets.Decision, _ *offsets.StartInput,
) offsets.Claim {
	return c
}

func (saboteur) save(ctx context.Context, s *session, r offsets.Record) error {
	return s.offsets.Save(ctx, r)
}
