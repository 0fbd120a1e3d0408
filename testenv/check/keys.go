package check

import "strconv"

// key is what is known of one key from the first appearances of its changes.
type key struct {
	name    Row      // its key columns, as the first event shows them
	changes []change // in order, truncates left out
	last    Pair
	any     bool // a change was seen
	exists  bool
	truncs  int   // the partition's truncates at that time
	version int64 // of the last change; unknownVersion when nobody told
	after   Row

	read        bool // a snapshot had a row
	readVersion int64
	readAfter   Row

	folded folded
}

// unknownVersion: the key's first change was a delete, which does not carry the counter.
const unknownVersion = -1

// change is a change as the source's record of changes has it. version is 0 where the event does
// not carry it.
type change struct {
	op      byte
	version int64
}

// keyOf returns the key's state, nil for an event that belongs to none.
func (c *checker) keyOf(t *topic, e *Event) *key {
	var name string
	switch {
	case e.Op == "t":
		return nil
	case !t.table.Keyless:
		name = string(e.KeyBody)
	default:
		row := e.After
		if row == nil {
			row = e.Before
		}
		var ok bool
		if name, ok = row.join(t.table.Key); !ok {
			c.report.fail(Image, "%s: its row has no %v", e.where(), t.table.Key)
			return nil
		}
	}
	k := t.keys[name]
	if k == nil {
		k = &key{name: e.Key}
		if t.table.Keyless {
			k.name = e.After
			if k.name == nil {
				k.name = e.Before
			}
		}
		t.keys[name] = k
	}
	return k
}

// snapshotRow remembers the oldest that a snapshot showed of a key.
func (c *checker) snapshotRow(t *topic, e *Event) {
	k := c.keyOf(t, e)
	if k == nil || e.After == nil {
		return
	}
	if k.any {
		c.report.fail(Order, "%s: a snapshot's row behind changes of the stream", e.where())
	}
	version := versionOf(t.table, e.After)
	if !k.read || version < k.readVersion {
		k.readVersion = version
	}
	k.read, k.readAfter = true, e.After
}

func versionOf(t *Table, row Row) int64 {
	if t.Version == "" || row[t.Version] == nil {
		return 0
	}
	n, err := strconv.ParseInt(*row[t.Version], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// change takes the first appearance of a change: its place in the key's sequence, and its old row.
func (c *checker) change(t *topic, p *partition, e *Event) {
	if e.Op == "t" {
		p.truncs++
		return
	}
	c.moves(t, e)
	for _, half := range halves(t.table, e) {
		if k := c.keyOf(t, half); k != nil {
			c.changeOf(t, p, k, half)
		}
	}
}

// halves makes of an update that gives a row of a table without a key another identity what it is
// for a table with one: a delete and an insert.
func halves(t *Table, e *Event) []*Event {
	if !t.Keyless || e.Op != "u" {
		return []*Event{e}
	}
	from, _ := e.Before.join(t.Key)
	if to, ok := e.After.join(t.Key); !ok || from == to {
		return []*Event{e}
	}
	gone, made := *e, *e
	gone.Op, gone.After, gone.States = "d", nil, nil
	made.Op, made.Before = "c", nil
	return []*Event{&gone, &made}
}

func (c *checker) changeOf(t *topic, p *partition, k *key, e *Event) {
	if k.any && !k.last.Less(e.Pair) {
		c.report.fail(Order, "%s: behind %s of the same key", e.where(), k.last)
	}
	if k.truncs != p.truncs {
		k.exists, k.after, k.readAfter = false, nil, nil
	}
	if k.any {
		c.follows(t, k, e)
	} else {
		c.begins(t, k, e, p)
	}
	version := versionOf(t.table, e.After)
	k.changes = append(k.changes, change{op: e.Op[0], version: version})
	k.any, k.last, k.truncs = true, e.Pair, p.truncs
	k.exists, k.after = e.Op != "d", e.After
	switch {
	case version != 0:
		k.version = version
	case k.version != unknownVersion:
		k.version++
	}
}

// begins judges a key's first change against what the snapshot read of it.
func (c *checker) begins(t *topic, k *key, e *Event, p *partition) {
	version := versionOf(t.table, e.After)
	switch {
	case k.read && version > k.readVersion+1:
		c.report.fail(Hole, "%s: change %d of its key, but the snapshot ends with %d", e.where(),
			version, k.readVersion)
	case k.read && c.exact && version != 0 && version != k.readVersion+1:
		c.report.fail(Order, "%s: change %d of its key is in the snapshot, which has %d", e.where(),
			version, k.readVersion)
	case !k.read && c.exact && e.Op != "c":
		c.report.fail(Hole, "%s: the first of its key, which was in no snapshot", e.where())
	case k.read && c.exact && p.truncs == 0 && e.Op == "c":
		c.report.fail(Hole, "%s: an insert of a key that the snapshot has", e.where())
	}
	k.version = unknownVersion
	if k.read && c.exact {
		if k.version = k.readVersion; p.truncs == 0 {
			c.oldRow(t, k.readAfter, e)
		}
	}
}

// follows judges a change against the one before it.
func (c *checker) follows(t *topic, k *key, e *Event) {
	version := versionOf(t.table, e.After)
	if version != 0 && k.version != unknownVersion && version != k.version+1 {
		c.report.fail(Hole, "%s: change %d of its key follows change %d", e.where(), version, k.version)
	}
	if created := e.Op == "c"; created == k.exists {
		c.report.fail(Hole, "%s: its key %s at this point", e.where(),
			map[bool]string{true: "exists", false: "does not exist"}[k.exists])
	}
	c.oldRow(t, k.after, e)
}

// oldRow demands, with FULL, that an event's old row is the row that the event before it left.
// Columns that came or went in between are compared where both rows have them.
func (c *checker) oldRow(t *topic, left Row, e *Event) {
	if t.table.Identity != IdentityFull || left == nil || e.Before == nil || e.Op == "c" {
		return
	}
	for name, text := range e.Before {
		old, had := left[name]
		if had && !same(old, text) || !had && text != nil {
			c.report.fail(Before, "%s: column %s of its old row is not what the event before it left",
				e.where(), name)
		}
	}
}

// moves pairs the two halves of a change of key.
func (c *checker) moves(t *topic, e *Event) {
	if _, from := e.Headers["tidemark.key.old"]; from {
		t.arrived = append(t.arrived, e)
	}
	if _, to := e.Headers["tidemark.key.new"]; to {
		t.moved[e.Pair] = e.Before
	}
}

func sameRow(a, b Row) bool {
	if len(a) != len(b) {
		return false
	}
	for name, text := range a {
		other, ok := b[name]
		if !ok || !same(text, other) {
			return false
		}
	}
	return true
}
