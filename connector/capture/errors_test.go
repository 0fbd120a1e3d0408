package capture

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// The texts of a server with lc_messages de_DE: what they mean is told without them.
func TestCodesOfAServerThatSpeaksGerman(t *testing.T) {
	t.Parallel()
	publication := &pgconn.PgError{
		Severity: "FEHLER", Code: "42704", Message: "»p« existiert nicht",
		Routine: "get_publication_oid",
	}
	if err := streamFault(publication); !fault.Has(err, fault.PublicationChanged) {
		t.Errorf("a missing publication: %v", err)
	}
	invalid := &pgconn.PgError{
		Severity: "FEHLER", Code: "55000",
		Message: "kann nicht mehr aus dem Replikations-Slot »s« lesen",
		Routine: "CreateDecodingContext",
	}
	if err := startFault("s", invalid); !fault.Has(err, fault.SlotLost) {
		t.Errorf("an invalidated slot: %v", err)
	}
	other := &pgconn.PgError{Severity: "FEHLER", Code: "42704", Message: "x", Routine: "typenameType"}
	if err := streamFault(other); fault.Has(err, fault.PublicationChanged) {
		t.Errorf("another object that is missing: %v", err)
	}
}
