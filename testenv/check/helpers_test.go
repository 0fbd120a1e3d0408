package check

import (
	"strconv"
	"testing"
)

const topicName = "p.s.t"

// plain is a table under DEFAULT; full is one under FULL; bare has no key.
func plain() *Table {
	return &Table{
		Schema: "s", Name: "t", Identity: IdentityKey, Key: []string{"id"},
		NotNull: []string{"id", "v"}, Version: "v",
	}
}

func full() *Table {
	t := plain()
	t.Identity = IdentityFull
	return t
}

func bare() *Table {
	t := full()
	t.Keyless = true
	return t
}

func text(s string) *string { return &s }

func row(id string, v int) Row {
	return Row{"id": text(id), "v": text(strconv.Itoa(v)), "note": text("n" + strconv.Itoa(v))}
}

// event makes an event of a table with a key, as a connector that keeps its promises writes it.
func event(op, id string, v int, lsn uint64, image string) *Event {
	e := &Event{
		Topic: topicName, Op: op, Image: image, Pair: Pair{CommitLSN: lsn},
		KeyBody: KeyBody(id), Key: Row{"id": text(id)}, Schema: "s", Table: "t",
		Columns: []string{"id", "v", "note"}, content: lsn,
	}
	if op == "r" {
		e.Pair.Index = -1
	}
	if op != "d" {
		e.After = row(id, v)
	}
	if image == "KEY" || image == "FULL" {
		e.BeforeKey = Row{"id": text(id)}
	}
	if image == "FULL" {
		e.Before = row(id, v-1)
	}
	return e
}

func read(id string, v int, lsn uint64) *Event   { return event("r", id, v, lsn, "NOT_APPLICABLE") }
func insert(id string, v int, lsn uint64) *Event { return event("c", id, v, lsn, "NOT_APPLICABLE") }
func update(id string, v int, lsn uint64) *Event { return event("u", id, v, lsn, "ABSENT") }
func remove(id string, lsn uint64) *Event        { return event("d", id, 0, lsn, "KEY") }
func fullUpdate(id string, v int, lsn uint64) *Event {
	return event("u", id, v, lsn, "FULL")
}

func tombstone(id string, lsn uint64) *Event {
	e := remove(id, lsn)
	e.Tombstone, e.content, e.BeforeKey, e.Schema, e.Table = true, 0, nil, "", ""
	return e
}

func truncate(partition int32, lsn uint64) *Event {
	e := insert("", 0, lsn)
	e.Op, e.After, e.Key, e.KeyBody, e.Partition = "t", nil, nil, nil, partition
	return e
}

// keyless takes an event's key away.
func keyless(e *Event) *Event {
	e.Key, e.KeyBody, e.BeforeKey = nil, nil, nil
	return e
}

// copyOf is a repeat of an event.
func copyOf(e *Event) *Event {
	c := *e
	return &c
}

// feed gives events to a checker of one table whose topic has one partition, or as many as the
// events name.
func feed(t *testing.T, table *Table, events ...*Event) *checker {
	t.Helper()
	c := newChecker(&Options{Prefix: "p", MarkerColumn: "note"})
	c.exact = true
	partitions := int32(1)
	for _, e := range events {
		partitions = max(partitions, e.Partition+1)
	}
	c.topic(topicName, table, partitions)
	for i, e := range events {
		e.Offset = int64(i)
		if e.Headers == nil {
			e.Headers = map[string]string{}
		}
		e.Headers["tidemark.op"] = e.Op
		e.Headers["tidemark.history"] = "0"
		e.Headers["tidemark.commit_lsn"] = strconv.FormatUint(e.Pair.CommitLSN, 10)
		e.Headers["tidemark.event_index"] = strconv.FormatInt(e.Pair.Index, 10)
		e.Headers["tidemark.before_image"] = e.Image
		c.add(e)
	}
	return c
}

// wantOnly demands failures of exactly these checks.
func wantOnly(t *testing.T, r *Report, want ...Kind) {
	t.Helper()
	expected := map[Kind]bool{}
	for _, k := range want {
		expected[k] = true
		if r.Counts[k] == 0 {
			t.Errorf("check %s did not fail", k)
		}
	}
	for _, v := range r.Violations {
		if !expected[v.Check] {
			t.Errorf("check %s failed: %s", v.Check, v.Text)
		}
	}
}
