package offsets

import (
	"fmt"
	"slices"
)

// ChangeKind says how the publication differs from the stored fingerprint.
type ChangeKind string

// The kinds. A kind is a gap when rows may be missing between the two states.
const (
	PublicationGone      ChangeKind = "publication_gone"      // gap for all its tables
	PublicationRecreated ChangeKind = "publication_recreated" // another OID: gap for all
	PublicationAltered   ChangeKind = "publication_altered"   // another xmin: gap for all
	TableRowChanged      ChangeKind = "table_changed"         // out and in again, or altered: gap
	TableBack            ChangeKind = "table_back"            // was out and is in again: gap
	TableOut             ChangeKind = "table_out"             // no longer captured; no gap yet
	TableNew             ChangeKind = "table_new"             // never captured: begins here
	NamespaceChanged     ChangeKind = "schema_changed"        // as for tables (TABLES IN SCHEMA)
	NamespaceBack        ChangeKind = "schema_back"
	NamespaceOut         ChangeKind = "schema_out"
	NamespaceNew         ChangeKind = "schema_new"
)

// Change is one difference.
type Change struct {
	Kind ChangeKind
	// ID is the table's or namespace's OID; 0 for the publication itself.
	ID uint32
	// Name is the publication's, table's or namespace's.
	Name string
	// Gap: rows of it may be missing. Own: we did it ourselves (by intent); then it is no gap.
	Gap, Own bool
	// Stored and Present describe the two states for a person.
	Stored, Present string
}

// Compare returns how present differs from stored. A nil stored is unknown and gives no change; a
// nil present is a publication that does not exist. captured says which tables the connector
// captures (nil is all of them): others are no concern of ours. A schema's row concerns every
// table in it and is always reported.
//
// intent, when it is IntentPublication, names the rows that we were about to change and the
// transaction that did it: a difference whose row has that xmin is our own act. A table that was
// out before our own act is a gap all the same: the rows of that time are missing.
func Compare(stored, present *Fingerprint, captured func(relid uint32, name string) bool,
	intent *Intent,
) []Change {
	if stored == nil {
		return nil
	}
	if captured == nil {
		captured = func(uint32, string) bool { return true }
	}
	if present == nil {
		return []Change{{
			Kind: PublicationGone, Name: stored.Name, Gap: true,
			Stored: describePublication(stored), Present: "none",
		}}
	}
	changes := comparePublication(stored, present, intent)
	changes = append(changes, compareTables(stored, present, captured, intent)...)
	return append(changes, compareNamespaces(stored, present, intent)...)
}

// GapChanges returns the changes that mean missing rows.
func GapChanges(changes []Change) []Change {
	return slices.DeleteFunc(slices.Clone(changes), func(c Change) bool { return !c.Gap })
}

func comparePublication(stored, present *Fingerprint, intent *Intent) []Change {
	c := Change{
		Name: present.Name, Gap: true,
		Stored: describePublication(stored), Present: describePublication(present),
	}
	switch {
	case stored.OID != present.OID || stored.Name != present.Name:
		c.Kind = PublicationRecreated
	case stored.XMin != present.XMin:
		c.Kind = PublicationAltered
		c.markOwn(intent.changed(0, present.XMin))
	default:
		return nil
	}
	return []Change{c}
}

func compareTables(stored, present *Fingerprint, captured func(uint32, string) bool,
	intent *Intent,
) []Change {
	var changes []Change
	for _, now := range present.Tables {
		if !captured(now.Relid, now.Name) {
			continue
		}
		c := Change{ID: now.Relid, Name: now.Name, Present: describeRow(now)}
		own := intent.changed(now.Relid, now.XMin)
		was, known := stored.Table(now.Relid)
		switch {
		case known && was.OID == now.OID && was.XMin == now.XMin:
			continue
		case known:
			c.Kind, c.Gap, c.Stored = TableRowChanged, true, describeRow(was)
			c.markOwn(own)
		case wasRemoved(stored.Removed, now.Relid):
			c.Kind, c.Gap, c.Stored = TableBack, true, "taken out"
		default:
			c.Kind, c.Own, c.Stored = TableNew, own, "never in it"
		}
		changes = append(changes, c)
	}
	for _, was := range stored.Tables {
		if _, in := present.Table(was.Relid); in || !captured(was.Relid, was.Name) {
			continue
		}
		changes = append(changes, Change{
			Kind: TableOut, ID: was.Relid, Name: was.Name, Stored: describeRow(was),
			Present: "none",
		})
	}
	return changes
}

func compareNamespaces(stored, present *Fingerprint, intent *Intent) []Change {
	var changes []Change
	for _, now := range present.Namespaces {
		c := Change{ID: now.Nspid, Name: now.Name, Present: describeNamespace(now)}
		own := intent.changed(now.Nspid, now.XMin)
		was, known := stored.namespace(now.Nspid)
		switch {
		case known && was.OID == now.OID && was.XMin == now.XMin:
			continue
		case known:
			c.Kind, c.Gap, c.Stored = NamespaceChanged, true, describeNamespace(was)
			c.markOwn(own)
		case wasRemoved(stored.RemovedNamespaces, now.Nspid):
			c.Kind, c.Gap, c.Stored = NamespaceBack, true, "taken out"
		default:
			c.Kind, c.Own, c.Stored = NamespaceNew, own, "never in it"
		}
		changes = append(changes, c)
	}
	for _, was := range stored.Namespaces {
		if _, in := present.namespace(was.Nspid); !in {
			changes = append(changes, Change{
				Kind: NamespaceOut, ID: was.Nspid, Name: was.Name,
				Stored: describeNamespace(was), Present: "none",
			})
		}
	}
	return changes
}

func (c *Change) markOwn(own bool) {
	if own {
		c.Own, c.Gap = true, false
	}
}

// changed reports whether a catalog row with this xmin is the result of the act that the intent
// names. id 0 is the publication's own row.
func (i *Intent) changed(id, xmin uint32) bool {
	if i == nil || i.Kind != IntentPublication || i.XID == 0 || i.XID != xmin {
		return false
	}
	return id == 0 || slices.Contains(i.Tables, id)
}

// String is the change in one sentence for a log line or an error.
func (c Change) String() string {
	return fmt.Sprintf("%s %s: stored %s, present %s", c.Kind, c.Name, c.Stored, c.Present)
}

func describePublication(f *Fingerprint) string {
	return fmt.Sprintf("oid %d xmin %d (%s; root %t)", f.OID, f.XMin, f.Operations, f.Root)
}

func describeRow(t PublicationTable) string {
	s := fmt.Sprintf("row %d xmin %d", t.OID, t.XMin)
	if t.Filter != "" {
		s += " with a row filter"
	}
	if t.Columns != "" {
		s += " with columns " + t.Columns
	}
	return s
}

func describeNamespace(n PublicationNamespace) string {
	return fmt.Sprintf("row %d xmin %d", n.OID, n.XMin)
}
