package offsets

import (
	"cmp"
	"slices"
)

// Fingerprint is what tells one state of a publication from another. What counts are the OIDs and
// xmins of catalog rows: a publication or a table that was out and is back again has other ones,
// though everything that can be read looks the same. The rest is for people, and for deciding what
// a connector can expect.
type Fingerprint struct {
	Name string `json:"name"`
	// OID and XMin are pg_publication's: another OID is another publication, another xmin means
	// that its operations or its root setting may have been otherwise in between.
	OID  uint32 `json:"oid"`
	XMin uint32 `json:"xmin"`
	// AllTables, Root, Operations ("insert, update, delete, truncate", those that are on) and
	// Generated (18: pubgencols) are the publication's options.
	AllTables  bool   `json:"all_tables,omitempty"`
	Root       bool   `json:"root"`
	Operations string `json:"operations"`
	Generated  string `json:"generated,omitempty"`
	// Tables are the rows of pg_publication_rel, by Relid.
	Tables []PublicationTable `json:"tables,omitempty"`
	// Namespaces are the rows of pg_publication_namespace (15 and later), by Nspid.
	Namespaces []PublicationNamespace `json:"namespaces,omitempty"`
	// Removed remembers tables and namespaces that were in it and went out: when one comes back,
	// rows may be missing.
	Removed           []RemovedTable `json:"removed,omitempty"`
	RemovedNamespaces []RemovedTable `json:"removed_namespaces,omitempty"`
}

// PublicationTable is a row of pg_publication_rel.
type PublicationTable struct {
	Relid uint32 `json:"relid"`
	Name  string `json:"name"` // schema.table, quoted as PostgreSQL does
	OID   uint32 `json:"oid"`  // the row's own
	XMin  uint32 `json:"xmin"` // the row's own
	// Filter and Columns are the row filter and the column list as text; "" is none.
	Filter  string `json:"filter,omitempty"`
	Columns string `json:"columns,omitempty"`
}

// PublicationNamespace is a row of pg_publication_namespace.
type PublicationNamespace struct {
	Nspid uint32 `json:"nspid"`
	Name  string `json:"name"`
	OID   uint32 `json:"oid"`
	XMin  uint32 `json:"xmin"`
}

// RemovedTable is a table (or a namespace) that went out of the publication.
type RemovedTable struct {
	ID   uint32 `json:"id"`
	Name string `json:"name"`
}

// Normalize sorts the lists, so that two readings of one state are equal and print equal.
func (f *Fingerprint) Normalize() {
	slices.SortFunc(f.Tables, func(a, b PublicationTable) int { return cmp.Compare(a.Relid, b.Relid) })
	slices.SortFunc(f.Namespaces, func(a, b PublicationNamespace) int {
		return cmp.Compare(a.Nspid, b.Nspid)
	})
	byID := func(a, b RemovedTable) int { return cmp.Compare(a.ID, b.ID) }
	slices.SortFunc(f.Removed, byID)
	slices.SortFunc(f.RemovedNamespaces, byID)
}

// Table returns the row of a table.
func (f *Fingerprint) Table(relid uint32) (PublicationTable, bool) {
	for _, t := range f.Tables {
		if t.Relid == relid {
			return t, true
		}
	}
	return PublicationTable{}, false
}

func (f *Fingerprint) namespace(nspid uint32) (PublicationNamespace, bool) {
	for _, n := range f.Namespaces {
		if n.Nspid == nspid {
			return n, true
		}
	}
	return PublicationNamespace{}, false
}

func wasRemoved(list []RemovedTable, id uint32) bool {
	return slices.ContainsFunc(list, func(r RemovedTable) bool { return r.ID == id })
}

// Remember returns the fingerprint to store when present is accepted after stored: present, and
// what it no longer has. A table that is present again is no longer remembered.
func Remember(stored, present *Fingerprint) *Fingerprint {
	if present == nil {
		return stored
	}
	out := *present
	out.Tables = slices.Clone(present.Tables)
	out.Namespaces = slices.Clone(present.Namespaces)
	out.Removed, out.RemovedNamespaces = nil, nil
	if stored != nil {
		gone := slices.Clone(stored.Removed)
		for _, t := range stored.Tables {
			gone = append(gone, RemovedTable{t.Relid, t.Name})
		}
		for _, r := range gone {
			if _, back := out.Table(r.ID); !back && !wasRemoved(out.Removed, r.ID) {
				out.Removed = append(out.Removed, r)
			}
		}
		gone = slices.Clone(stored.RemovedNamespaces)
		for _, n := range stored.Namespaces {
			gone = append(gone, RemovedTable{n.Nspid, n.Name})
		}
		for _, r := range gone {
			if _, back := out.namespace(r.ID); !back && !wasRemoved(out.RemovedNamespaces, r.ID) {
				out.RemovedNamespaces = append(out.RemovedNamespaces, r)
			}
		}
	}
	out.Normalize()
	return &out
}
