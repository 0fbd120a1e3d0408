package check

import "slices"

// checker holds what it has seen of the topics. Records of one partition come in the order of
// their offsets.
type checker struct {
	o      *Options
	report *Report
	topics map[string]*topic
	exact  bool // the snapshot's rows are the slot's own, at its point
}

// topic is a table's topic.
type topic struct {
	table *Table
	parts map[int32]*partition
	keys  map[string]*key
	size  int32 // partitions
	// moved are the old rows of deletes that a change of key made, by pair: the insert must have
	// the same one.
	moved   map[Pair]Row
	arrived []*Event // inserts of changes of key, held against moved at the end
}

// partition is one partition of it: the first appearances in order, and where in them a repeat is.
type partition struct {
	log    []entry
	index  map[entryID]int
	next   int // in a repeat: the entry that must come next; -1: none is going on
	last   *Event
	truncs int // truncates so far
	marked bool
}

// entryID tells records apart, but for repeats.
type entryID struct {
	pair      Pair
	key       string
	op        string
	tombstone bool
}

type entry struct {
	id      entryID
	content uint64
}

func newChecker(o *Options) *checker {
	return &checker{o: o, report: newReport(), topics: map[string]*topic{}}
}

// topic makes a table's topic known, with its number of partitions.
func (c *checker) topic(name string, table *Table, partitions int32) {
	t := &topic{
		table: table, parts: map[int32]*partition{}, keys: map[string]*key{}, size: partitions,
		moved: map[Pair]Row{},
	}
	for p := range partitions {
		t.parts[p] = &partition{index: map[entryID]int{}, next: -1}
	}
	c.topics[name] = t
	c.report.Partitions += int(partitions)
}

// add takes the next record of a partition.
func (c *checker) add(e *Event) {
	t := c.topics[e.Topic]
	p := t.parts[e.Partition]
	c.report.Records++
	c.checkPartition(t, e)
	c.checkHeaders(e)
	if !e.Tombstone {
		c.checkImage(t, e)
		if m := e.After[c.o.MarkerColumn]; m != nil && c.o.Marker != "" && *m == c.o.Marker {
			p.marked = true
		}
	}
	c.tombstone(t, p, e)
	p.last = e
	if e.Op == "r" {
		c.report.Snapshot++
		c.report.Ops[e.Op]++
		c.snapshotRow(t, e)
		c.fold(t, e)
		return
	}
	first := c.appear(p, e)
	if first && !e.Tombstone {
		c.report.Changes++
		c.report.Ops[e.Op]++
		c.report.Images[e.Image]++
		for _, s := range e.States {
			c.report.States[s.State]++
		}
		c.change(t, p, e)
	}
	c.fold(t, e)
}

// appear says whether the record is a first appearance. A repeat begins anywhere at or before the
// end of what is known, goes on in the same order with the same content, and reaches that end,
// unless another one begins.
func (c *checker) appear(p *partition, e *Event) bool {
	id := entryID{pair: e.Pair, key: string(e.KeyBody), op: e.Op, tombstone: e.Tombstone}
	at, known := p.index[id]
	switch {
	case !known && p.next >= 0:
		c.report.fail(Order, "%s: new, in the middle of a repeat: %s is still to come again",
			e.where(), p.log[p.next].id.pair)
		p.next = -1
	case known && p.next >= 0 && at > p.next:
		c.report.fail(Order, "%s: the repeat leaves out what follows %s", e.where(),
			p.log[p.next].id.pair)
	}
	if !known {
		p.index[id] = len(p.log)
		p.log = append(p.log, entry{id: id, content: e.content})
		return true
	}
	c.report.Repeats++
	if c.o.ExactlyOnce {
		c.report.fail(Once, "%s: committed a second time", e.where())
	}
	if p.log[at].content != e.content {
		c.report.fail(Order, "%s: repeated with another content", e.where())
	}
	if p.next = at + 1; p.next == len(p.log) {
		p.next = -1
	}
	return false
}

// tombstone demands a delete's tombstone right behind it, and none elsewhere. A process that was
// killed between the two leaves the delete as the last record, and repeats it later.
func (c *checker) tombstone(t *topic, p *partition, e *Event) {
	last := p.last
	if t.table.Keyless {
		if e.Tombstone {
			c.report.fail(Image, "%s: a tombstone without a key", e.where())
		}
		return
	}
	if e.Tombstone {
		if last == nil || last.Op != "d" || last.Tombstone || last.Pair != e.Pair ||
			string(last.KeyBody) != string(e.KeyBody) {
			c.report.fail(Order, "%s: not behind its delete", e.where())
		}
		return
	}
	if last == nil || last.Tombstone || last.Op != "d" {
		return
	}
	// Without its tombstone only where the stream was cut, and then it comes again.
	id := entryID{pair: e.Pair, key: string(e.KeyBody), op: e.Op}
	if at, known := p.index[id]; !known || at > p.index[entryID{
		pair: last.Pair, key: string(last.KeyBody), op: "d",
	}] {
		c.report.fail(Order, "%s: a delete without its tombstone before it", e.where())
	}
}

func (c *checker) checkPartition(t *topic, e *Event) {
	switch {
	case t.table.Keyless && e.KeyBody != nil:
		c.report.fail(Partition, "%s: a key, in a table that has none", e.where())
	case e.KeyBody == nil && e.Op != "t" && !t.table.Keyless:
		c.report.fail(Partition, "%s: no key", e.where())
	case e.KeyBody != nil:
		if want := PartitionOf(e.KeyBody, t.size); want != e.Partition {
			c.report.fail(Partition, "%s: its key belongs to partition %d", e.where(), want)
		}
	}
}

// finish judges what can be judged only when everything was read.
func (c *checker) finish() {
	for name, t := range c.topics {
		c.finishTopic(name, t)
	}
}

func (c *checker) finishTopic(name string, t *topic) {
	used := int32(-1)
	var truncates []Pair
	for n := range t.size {
		p := t.parts[n]
		if p.next >= 0 {
			c.report.fail(Hole, "%s[%d]: ends in the middle of a repeat, before %s", name, n,
				p.log[p.next].id.pair)
		}
		if last := p.last; last != nil && last.Op == "d" && !last.Tombstone && !t.table.Keyless {
			c.report.fail(Hole, "%s[%d]: ends with a delete without its tombstone", name, n)
		}
		var here []Pair
		rows := false
		for i := range p.log {
			if id := p.log[i].id; id.op == "t" {
				here = append(here, id.pair)
			} else {
				rows = true
			}
		}
		if t.table.Keyless && rows {
			if used >= 0 {
				c.report.fail(Partition, "%s: without a key, and yet in partitions %d and %d", name,
					used, n)
			}
			used = n
		}
		if n > 0 && !slices.Equal(here, truncates) {
			c.report.fail(Hole, "%s: %d truncates in partition %d, %d in partition %d", name,
				len(here), n, len(truncates), n-1)
		}
		truncates = here
	}
	for _, e := range t.arrived {
		if before, ok := t.moved[e.Pair]; !ok {
			c.report.fail(Hole, "%s: the new key's insert without the old key's delete", e.where())
		} else if t.table.Identity == IdentityFull && !sameRow(before, e.Before) {
			c.report.fail(Before, "%s: its old row is not the deleted one", e.where())
		}
	}
}
