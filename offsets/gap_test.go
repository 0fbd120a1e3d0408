package offsets

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// whole is a start at which everything fits: C = 200, O = 300, W = 1000.
func whole() StartInput {
	pub := shopPublication()
	return StartInput{
		Connector: "shop", SlotName: "tidemark_shop", Plugin: "pgoutput", Database: "shopdb",
		PublicationName: "pub",
		Stored: &Record{
			LSN: 300, SystemID: "7", Timeline: 1, Slot: "tidemark_shop",
			Publication: shopPublication(), Epoch: 1,
		},
		Slot: &SlotInfo{
			Name: "tidemark_shop", Plugin: "pgoutput", Type: "logical", Database: "shopdb",
			RestartLSN: 100, ConfirmedFlush: 200, WALStatus: "reserved",
		},
		Server:      ServerInfo{SystemID: "7", Timeline: 1, WALEnd: 1000},
		Publication: pub, OnGap: "fail", TakeoverTimeout: 90 * time.Second,
	}
}

func intentCreate(in *StartInput) {
	in.Stored = &Record{Intent: &Intent{Kind: IntentCreate, Slot: "tidemark_shop", SystemID: "7"}}
}

type matrixRow struct {
	name   string
	change func(*StartInput)
	action Action
	start  LSN
	code   fault.Code // "": no fault
	// gap: the row says gap, so on.slot.gap: resnapshot repairs; from and to bound it.
	gap      bool
	from, to LSN
	says     []string // parts of the error
}

func TestStartMatrix(t *testing.T) {
	for _, row := range slices.Concat(matrixWithout, matrixWithPosition) {
		t.Run(row.name, func(t *testing.T) {
			for _, onGap := range []string{"fail", OnGapResnapshot} {
				in := whole()
				row.change(&in)
				in.OnGap = onGap
				want := row.action
				if row.gap {
					want = Refuse
					if onGap == OnGapResnapshot {
						want = Repair
					}
				}
				checkDecision(t, row, Decide(in), want)
			}
		})
	}
}

func checkDecision(t *testing.T, row matrixRow, d Decision, action Action) {
	t.Helper()
	if d.Action != action || d.Start != row.start {
		t.Fatalf("%s at %s, want %s at %s (%v)", d.Action, d.Start, action, row.start, d.Fault)
	}
	if (d.Gap != nil) != row.gap {
		t.Fatalf("gap %+v", d.Gap)
	}
	if row.gap && (d.Gap.From != row.from || d.Gap.To != row.to || d.Gap.Code != row.code) {
		t.Fatalf("gap %s (%s, %s], want %s (%s, %s]", d.Gap.Code, d.Gap.From, d.Gap.To, row.code,
			row.from, row.to)
	}
	if row.code == "" {
		if d.Fault != nil {
			t.Fatalf("fault %v", d.Fault)
		}
		return
	}
	if d.Fault == nil || d.Fault.Code != row.code {
		t.Fatalf("fault %v, want %s", d.Fault, row.code)
	}
	if d.Fault.Fix == "" {
		t.Errorf("no way out in %q", d.Fault.Error())
	}
	offered := strings.Contains(d.Fault.Error(), "on.slot.gap: resnapshot")
	if offered != (row.gap && d.Action == Refuse) {
		t.Errorf("repair offered: %t, in %q", offered, d.Fault.Error())
	}
	for _, part := range row.says {
		if !strings.Contains(d.Fault.Error(), part) {
			t.Errorf("%q does not say %q", d.Fault.Error(), part)
		}
	}
}

func TestStartMatrixNotesWhatGoesOn(t *testing.T) {
	in := whole()
	in.Publication.Tables = in.Publication.Tables[1:]
	in.Server.Timeline, in.Timelines = 2, []TimelineSwitch{{1, 400}}
	d := Decide(in)
	notes := strings.Join(d.Notes, "\n")
	if d.Action != Resume || len(d.Changes) != 1 || !strings.Contains(notes, "table_out public.a") ||
		!strings.Contains(notes, "timeline 1 became 2 at 0/190") {
		t.Fatalf("%+v", d)
	}
}

func TestStartMatrixWaitSaysForWhom(t *testing.T) {
	in := whole()
	in.Slot.Active, in.Slot.ActivePID = true, 4711
	if d := Decide(in); d.Waiting != "PID 4711" {
		t.Fatalf("%q", d.Waiting)
	}
	in.ActiveSession = &SessionInfo{PID: 4711, ApplicationName: "psql"}
	want := `PID 4711 from a local socket, application_name "psql"`
	if d := Decide(in); d.Waiting != want {
		t.Fatalf("%q", d.Waiting)
	}
}

// A publication of many tables gives an error that can be read.
func TestStartMatrixErrorListsTheFirstTables(t *testing.T) {
	in := whole()
	for i := range uint32(100) {
		table := PublicationTable{Relid: 1000 + i, Name: "public.t", OID: 5000 + i, XMin: 1}
		in.Stored.Publication.Tables = append(in.Stored.Publication.Tables, table)
		table.XMin = 2
		in.Publication.Tables = append(in.Publication.Tables, table)
	}
	d := Decide(in)
	if len(d.Gap.Changes) != 100 || !strings.Contains(d.Fault.Error(), "and 95 more") {
		t.Fatalf("%d %v", len(d.Gap.Changes), d.Fault)
	}
}

func TestStartMatrixQuotesTheSlotsName(t *testing.T) {
	in := whole()
	in.SlotName, in.Slot.Plugin = "it's", "wal2json"
	if d := Decide(in); !strings.Contains(d.Fault.Fix, "pg_drop_replication_slot('it''s')") {
		t.Fatal(d.Fault.Fix)
	}
}
