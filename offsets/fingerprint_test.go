package offsets

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// shopPublication has two tables and a schema.
func shopPublication() *Fingerprint {
	return &Fingerprint{
		Name: "pub", OID: 500, XMin: 90, Operations: "insert, update, delete, truncate",
		Tables: []PublicationTable{
			{Relid: 11, Name: "public.a", OID: 601, XMin: 90},
			{Relid: 12, Name: "public.b", OID: 602, XMin: 90},
		},
		Namespaces: []PublicationNamespace{{Nspid: 21, Name: "app", OID: 701, XMin: 90}},
		Removed:    []RemovedTable{{ID: 13, Name: "public.gone"}},
	}
}

type changeRow struct {
	name    string
	stored  func(*Fingerprint) // changes shopPublication
	present func(*Fingerprint)
	intent  *Intent
	ignored []uint32 // tables that are not captured
	want    []Change // Kind, ID, Name, Gap, Own
}

var own = &Intent{Kind: IntentPublication, XID: 99, Tables: []uint32{11, 13, 14, 21}}

var changeRows = []changeRow{
	{name: "the same"},
	{
		name:    "made again under its name",
		present: func(f *Fingerprint) { f.OID = 501 },
		want:    []Change{{Kind: PublicationRecreated, Name: "pub", Gap: true}},
	},
	{
		name:    "made again with the same content, by whom the intent names",
		present: func(f *Fingerprint) { f.OID, f.XMin = 501, 99 },
		intent:  own,
		want:    []Change{{Kind: PublicationRecreated, Name: "pub", Gap: true}},
	},
	{
		name:    "operations or root setting were otherwise in between",
		present: func(f *Fingerprint) { f.XMin = 95 },
		want:    []Change{{Kind: PublicationAltered, Name: "pub", Gap: true}},
	},
	{
		name:    "altered by us",
		present: func(f *Fingerprint) { f.XMin = 99 },
		intent:  own,
		want:    []Change{{Kind: PublicationAltered, Name: "pub", Own: true}},
	},
	{
		name:    "a table taken out and put back",
		present: func(f *Fingerprint) { f.Tables[0].OID, f.Tables[0].XMin = 650, 95 },
		want:    []Change{{Kind: TableRowChanged, ID: 11, Name: "public.a", Gap: true}},
	},
	{
		name:    "a table's row altered",
		present: func(f *Fingerprint) { f.Tables[0].XMin = 95 },
		want:    []Change{{Kind: TableRowChanged, ID: 11, Name: "public.a", Gap: true}},
	},
	{
		name:    "a table's row altered by us",
		present: func(f *Fingerprint) { f.Tables[0].OID, f.Tables[0].XMin = 650, 99 },
		intent:  own,
		want:    []Change{{Kind: TableRowChanged, ID: 11, Name: "public.a", Own: true}},
	},
	{
		name:    "another table altered in our transaction's number",
		present: func(f *Fingerprint) { f.Tables[1].XMin = 99 },
		intent:  own,
		want:    []Change{{Kind: TableRowChanged, ID: 12, Name: "public.b", Gap: true}},
	},
	{
		name:    "an intent without a transaction proves nothing",
		present: func(f *Fingerprint) { f.Tables[0].XMin = 0 },
		intent:  &Intent{Kind: IntentPublication, Tables: []uint32{11}},
		want:    []Change{{Kind: TableRowChanged, ID: 11, Name: "public.a", Gap: true}},
	},
	{
		name:    "another kind of intent proves nothing",
		present: func(f *Fingerprint) { f.Tables[0].XMin = 99 },
		intent:  &Intent{Kind: IntentCreate, XID: 99, Tables: []uint32{11}},
		want:    []Change{{Kind: TableRowChanged, ID: 11, Name: "public.a", Gap: true}},
	},
	{
		name:    "a table gone",
		present: func(f *Fingerprint) { f.Tables = f.Tables[1:] },
		want:    []Change{{Kind: TableOut, ID: 11, Name: "public.a"}},
	},
	{
		name: "a table that went out is back",
		present: func(f *Fingerprint) {
			f.Tables = append(f.Tables, PublicationTable{13, "public.gone", 660, 95, "", ""})
		},
		want: []Change{{Kind: TableBack, ID: 13, Name: "public.gone", Gap: true}},
	},
	{
		name: "a table that went out is back by our own act: it was out all the same",
		present: func(f *Fingerprint) {
			f.Tables = append(f.Tables, PublicationTable{13, "public.gone", 660, 99, "", ""})
		},
		intent: own,
		want:   []Change{{Kind: TableBack, ID: 13, Name: "public.gone", Gap: true}},
	},
	{
		name: "a table never captured",
		present: func(f *Fingerprint) {
			f.Tables = append(f.Tables, PublicationTable{14, "public.new", 661, 95, "", ""})
		},
		want: []Change{{Kind: TableNew, ID: 14, Name: "public.new"}},
	},
	{
		name: "a table never captured, added by us",
		present: func(f *Fingerprint) {
			f.Tables = append(f.Tables, PublicationTable{14, "public.new", 661, 99, "", ""})
		},
		intent: own,
		want:   []Change{{Kind: TableNew, ID: 14, Name: "public.new", Own: true}},
	},
	{
		name:    "tables that are not captured do not count",
		present: func(f *Fingerprint) { f.Tables[0].XMin = 95; f.Tables = f.Tables[:1] },
		ignored: []uint32{11, 12},
	},
	{
		name:    "a renamed table, and a filter printed with a renamed column: no rows are missing",
		present: func(f *Fingerprint) { f.Tables[0].Name, f.Tables[0].Filter = "public.z", "(n > 1)" },
	},
	{
		name:    "a schema taken out and put back",
		present: func(f *Fingerprint) { f.Namespaces[0].OID = 750 },
		want:    []Change{{Kind: NamespaceChanged, ID: 21, Name: "app", Gap: true}},
	},
	{
		name:    "a schema gone",
		present: func(f *Fingerprint) { f.Namespaces = nil },
		want:    []Change{{Kind: NamespaceOut, ID: 21, Name: "app"}},
	},
	{
		name: "a schema is back",
		stored: func(f *Fingerprint) {
			f.Namespaces, f.RemovedNamespaces = nil, []RemovedTable{{21, "app"}}
		},
		want:    []Change{{Kind: NamespaceBack, ID: 21, Name: "app", Gap: true}},
		present: func(f *Fingerprint) { f.Namespaces[0].OID = 750 },
	},
	{
		name:   "a new schema",
		stored: func(f *Fingerprint) { f.Namespaces = nil },
		want:   []Change{{Kind: NamespaceNew, ID: 21, Name: "app"}},
	},
	{
		name:    "a schema altered by us",
		present: func(f *Fingerprint) { f.Namespaces[0].XMin = 99 },
		intent:  own,
		want:    []Change{{Kind: NamespaceChanged, ID: 21, Name: "app", Own: true}},
	},
}

func TestCompareFingerprints(t *testing.T) {
	for _, row := range changeRows {
		t.Run(row.name, func(t *testing.T) {
			stored, present := shopPublication(), shopPublication()
			if row.stored != nil {
				row.stored(stored)
			}
			if row.present != nil {
				row.present(present)
			}
			captured := func(relid uint32, _ string) bool {
				for _, id := range row.ignored {
					if id == relid {
						return false
					}
				}
				return true
			}
			got := Compare(stored, present, captured, row.intent)
			for i := range got {
				if got[i].Stored == "" || got[i].Present == "" {
					t.Errorf("%s says nothing of the two states", got[i])
				}
				got[i].Stored, got[i].Present = "", ""
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestComparePublicationGoneOrUnknown(t *testing.T) {
	if got := Compare(nil, shopPublication(), nil, nil); got != nil {
		t.Errorf("nothing is known of before: %v", got)
	}
	got := Compare(shopPublication(), nil, nil, nil)
	if len(got) != 1 || got[0].Kind != PublicationGone || !got[0].Gap {
		t.Errorf("%v", got)
	}
}

func TestRememberWhatWentOut(t *testing.T) {
	stored, present := shopPublication(), shopPublication()
	present.Removed = nil
	present.Tables = []PublicationTable{
		{Relid: 14, Name: "public.new", OID: 661, XMin: 95},
		{Relid: 12, Name: "public.b", OID: 602, XMin: 90},
	}
	present.Namespaces = nil
	got := Remember(stored, present)
	want := &Fingerprint{
		Name: "pub", OID: 500, XMin: 90, Operations: "insert, update, delete, truncate",
		Tables: []PublicationTable{
			{Relid: 12, Name: "public.b", OID: 602, XMin: 90},
			{Relid: 14, Name: "public.new", OID: 661, XMin: 95},
		},
		Removed:           []RemovedTable{{11, "public.a"}, {13, "public.gone"}},
		RemovedNamespaces: []RemovedTable{{21, "app"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	again := Remember(got, shopPublication())
	if diff := cmp.Diff([]RemovedTable{{13, "public.gone"}, {14, "public.new"}},
		again.Removed); diff != "" || again.RemovedNamespaces != nil {
		t.Fatal(diff, again.RemovedNamespaces)
	}
	if Remember(stored, nil) != stored || Remember(nil, present).Removed != nil {
		t.Fatal("nothing to remember")
	}
}
