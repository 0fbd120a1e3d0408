package offsets

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

var update = flag.Bool("update", false, "write the golden files")

// fullRecord has every field that the contract names.
func fullRecord() Record {
	return Record{
		LSN: 0x16B374D848, History: 2, LSNCommit: 0x16B374D900, EventIndex: 17,
		RowLSN: 0x16B374D8F0, MessageLSN: 0x16B374D800, TxID: 771, TsUsec: 1764460800123456,
		Publication: &Fingerprint{
			Name: "tidemark_shop", OID: 16400, XMin: 760, Root: true,
			Operations: "insert, update, delete, truncate",
			Tables: []PublicationTable{
				{Relid: 16385, Name: "public.orders", OID: 16401, XMin: 760},
				{
					Relid: 16390, Name: `public."Odd"`, OID: 16402, XMin: 761,
					Filter: "(id > 10)", Columns: "id, name",
				},
			},
			Namespaces: []PublicationNamespace{{Nspid: 2200, Name: "public", OID: 16410, XMin: 762}},
			Removed:    []RemovedTable{{ID: 16395, Name: "public.gone"}},
		},
		SystemID: "7445902345678901234", Timeline: 3, Slot: "tidemark_shop",
		Snapshot: &SnapshotState{
			Point: 0x16B3740000,
			Attempts: []SnapshotAttempt{
				{ID: 1, Position: 0x16B3740000, Exact: true},
				{
					ID: 2, Position: 0x16B3740100, Until: 0x16B3740200, XMin: 765, XMax: 770,
					Running: []uint64{765, 768}, Recovery: true,
				},
			},
			Tables: map[string]TableState{
				"public.orders":    {Status: TableDone, OID: 16385, First: 1, Last: 1, Rows: 1000},
				`public."Odd"`:     {Status: TableRunning, OID: 16390, First: 1, Last: 2, Rows: 12},
				"public.untouched": {Status: TableSkipped, OID: 16399},
			},
		},
		Intent: &Intent{
			Kind: IntentRepair, Slot: "tidemark_shop", SystemID: "7445902345678901234",
			TsUsec: 1764460800000000, XID: 769, Tables: []uint32{16385}, From: 0x16B3700000,
			To: 0x16B3740000, Code: fault.SlotLost, Reason: "wal_removed",
		},
		Epoch: 5,
		Extra: map[string]json.RawMessage{"zeta": json.RawMessage(`[1,2]`)},
	}
}

func TestRecordGolden(t *testing.T) {
	r := fullRecord()
	got, err := r.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	const name = "testdata/record.golden.json"
	if *update {
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Fatalf("the offsets record changed (-want +got):\n%s", diff)
	}
	back, err := UnmarshalRecord(want)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, *back); diff != "" {
		t.Fatalf("not read back (-written +read):\n%s", diff)
	}
}

func TestRecordMinimalIsTheContractsMap(t *testing.T) {
	r := Record{LSN: 25, SystemID: "7", Timeline: 1, Slot: "s", Epoch: 1}
	got, err := r.Marshal()
	want := `{"lsn":25,"history":0,"system_id":"7","timeline":1,"slot":"s","epoch":1}`
	if err != nil || string(got) != want {
		t.Fatalf("%s %v", got, err)
	}
}

func TestRecordIntentBeforeTheFirstPosition(t *testing.T) {
	r := Record{Intent: &Intent{Kind: IntentCreate, Slot: "s", SystemID: "7"}, Epoch: 1}
	b, err := r.Marshal()
	want := `{"history":0,"intent":{"kind":"create","slot":"s","system_id":"7"},"epoch":1}`
	if err != nil || string(b) != want {
		t.Fatalf("%s %v", b, err)
	}
	back, err := UnmarshalRecord(b)
	if err != nil || back.HasPosition() || back.Intent.Kind != IntentCreate {
		t.Fatalf("%+v %v", back, err)
	}
}

func TestRecordUnknownFieldsAreKept(t *testing.T) {
	r, err := UnmarshalRecord([]byte(
		`{"lsn":25,"history":0,"new_thing":{"a":1},"system_id":"7","another":null}`))
	if err != nil {
		t.Fatal(err)
	}
	r.LSN = 26
	b, err := r.Marshal()
	want := `{"lsn":26,"history":0,"system_id":"7","epoch":0,"another":null,"new_thing":{"a":1}}`
	if err != nil || string(b) != want {
		t.Fatalf("%s %v", b, err)
	}
}

func TestRecordNullIsAReset(t *testing.T) {
	for _, v := range []string{"", "null", " null\n"} {
		if r, err := UnmarshalRecord([]byte(v)); r != nil || err != nil {
			t.Errorf("%q: %+v %v", v, r, err)
		}
	}
	if (*Record)(nil).HasPosition() {
		t.Error("no record has a position")
	}
}

func TestRecordUnreadable(t *testing.T) {
	for name, v := range map[string]string{
		"not JSON":                "lsn=5",
		"cut off":                 `{"lsn":25,"history":0`,
		"an array":                `[1]`,
		"a newer format":          `{"format":2,"lsn":25,"history":0,"system_id":"7"}`,
		"a format in words":       `{"format":"two","lsn":25,"history":0,"system_id":"7"}`,
		"a negative position":     `{"lsn":-1,"history":0,"system_id":"7"}`,
		"a fractional position":   `{"lsn":1.5,"history":0,"system_id":"7"}`,
		"a position in text":      `{"lsn":"0/19","history":0,"system_id":"7"}`,
		"no position, no intent":  `{"history":0,"system_id":"7"}`,
		"a position of nobody":    `{"lsn":25,"history":0}`,
		"a negative history":      `{"lsn":25,"history":-1,"system_id":"7"}`,
		"a cut before it":         `{"lsn":25,"history":0,"system_id":"7","lsn_commit":24}`,
		"somebody else's":         `{"file":"binlog.1","pos":4}`,
		"an unknown table status": `{"lsn":2,"history":0,"system_id":"7","snapshot":{"tables":{"a":{}}}}`,
		"done and running": `{"lsn":2,"history":0,"system_id":"7",
			"snapshot":{"done":true,"tables":{"a":{"status":"running"}}}}`,
	} {
		if r, err := UnmarshalRecord([]byte(v)); fault.CodeOf(err) != fault.OffsetsUnreadable {
			t.Errorf("%s: %+v %v", name, r, err)
		}
	}
}

// Debezium's lsn is a row's, so its lsn_commit is taken. Nothing in it names the cluster.
func TestRecordOfDebezium(t *testing.T) {
	r, err := UnmarshalRecord([]byte(`{"transaction_id":null,"lsn_proc":37752392,` +
		`"messageType":"UPDATE","lsn_commit":37752320,"lsn":37752392,"txId":752,` +
		`"ts_usec":1764460800123456}`))
	if err != nil {
		t.Fatal(err)
	}
	want := &Record{LSN: 37752320, TxID: 752, TsUsec: 1764460800123456, Migrated: "debezium"}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Fatal(diff)
	}
	for name, v := range map[string]string{
		"in its snapshot":      `{"snapshot":"INITIAL","lsn":5,"lsn_commit":5,"lsn_proc":5}`,
		"in its old snapshot":  `{"snapshot":true,"lsn":5,"lsn_commit":5,"last_snapshot_record":false}`,
		"without a commit LSN": `{"lsn":5,"lsn_proc":5}`,
		"with text for an LSN": `{"lsn":5,"lsn_commit":"5"}`,
	} {
		if _, err := UnmarshalRecord([]byte(v)); fault.CodeOf(err) != fault.OffsetsUnreadable {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRecordErrorShowsNoContent(t *testing.T) {
	_, err := UnmarshalRecord([]byte(`{"lsn":"s3cret","history":0}`))
	if err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Fatalf("%v", err)
	}
}

func TestRecordPositionAbove63BitsIsNotWritten(t *testing.T) {
	r := Record{LSN: 1 << 63, SystemID: "7"}
	if _, err := r.Marshal(); !fault.Has(err, fault.Internal) {
		t.Fatalf("%v", err)
	}
}

func TestSnapshotAttempt(t *testing.T) {
	s := fullRecord().Snapshot
	if a, ok := s.Attempt(2); !ok || a.XMax != 770 {
		t.Fatalf("%+v", a)
	}
	if _, ok := s.Attempt(3); ok {
		t.Fatal("attempt 3")
	}
}
