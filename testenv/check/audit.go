package check

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
)

// audited is the source's own record of one table's changes, by key, in order. Its order is the
// commits': two changes of a key wait for each other.
type audited struct {
	keys      map[string][]change
	truncates int
}

// audit holds the topics against the source's record of changes: from where a key's sequence in
// the topic begins, both are the same to the end.
func (c *checker) audit(ctx context.Context, conn *pgx.Conn) error {
	tables := map[string]*audited{}
	rows, err := conn.Query(ctx, "SELECT op::text, rel, key, v FROM "+c.o.Audit+" ORDER BY seq")
	if err != nil {
		return err
	}
	var op, rel, name string
	var version int64
	_, err = pgx.ForEachRow(rows, []any{&op, &rel, &name, &version}, func() error {
		a := tables[rel]
		if a == nil {
			a = &audited{keys: map[string][]change{}}
			tables[rel] = a
		}
		if op == "t" {
			a.truncates++
		} else {
			a.keys[name] = append(a.keys[name], change{op: op[0], version: version})
		}
		return nil
	})
	if err != nil {
		return err
	}
	for topicName, t := range c.topics {
		if a := tables[t.table.ID()]; a != nil {
			c.auditTopic(topicName, t, a)
		}
	}
	return nil
}

func (c *checker) auditTopic(name string, t *topic, a *audited) {
	seen := map[string]*key{}
	for _, k := range t.keys {
		if id, ok := k.id(t.table); ok {
			seen[id] = k
		}
	}
	for id, want := range a.keys {
		k := seen[id]
		switch {
		case k == nil && len(want) > 0 && want[len(want)-1].op != 'd' && a.truncates == 0:
			c.report.fail(Hole, "%s: nothing at all of row %s, which has %d changes", name, id, len(want))
		case k == nil:
		case len(k.changes) > len(want):
			c.report.fail(Hole, "%s: row %s has %d changes in the topic and %d in the source", name, id,
				len(k.changes), len(want))
		default:
			c.auditKey(name, id, k, want)
		}
	}
}

// auditKey compares from the end: the topic may begin later, with a snapshot in place of what was
// before, but then exactly there.
func (c *checker) auditKey(name, id string, k *key, want []change) {
	skipped := len(want) - len(k.changes)
	for i, got := range k.changes {
		expected := want[skipped+i]
		if got.op != expected.op || got.version != 0 && got.version != expected.version {
			c.report.fail(Hole, "%s: row %s: change %d of the source is %c with counter %d, the topic "+
				"has %c with %d", name, id, skipped+i+1, expected.op, expected.version, got.op, got.version)
			return
		}
	}
	switch {
	case skipped == 0:
	case k.read && c.exact && want[skipped-1].version < k.readVersion:
		c.report.fail(Order, "%s: row %s: the snapshot has change %d, and the stream brings it again",
			name, id, k.readVersion)
	case k.read && want[skipped-1].version > k.readVersion:
		c.report.fail(Hole, "%s: row %s: the snapshot has change %d, the stream begins behind %d", name,
			id, k.readVersion, want[skipped-1].version)
	case !k.read && c.exact && want[skipped-1].op != 'd' && !truncated(want, skipped):
		c.report.fail(Hole, "%s: row %s: its first %d changes are neither in a snapshot nor in the "+
			"stream", name, id, skipped)
	}
}

// truncated says whether the change that the topic begins with shows that a truncate took the row
// away before the snapshot: an insert of a key that nobody had deleted.
func truncated(want []change, skipped int) bool {
	return skipped < len(want) && want[skipped].op == 'c' && want[skipped-1].op != 'd'
}

// id is the row's identity as the source's record has it: from any row of the key that was seen.
func (k *key) id(t *Table) (string, bool) {
	if k.name == nil {
		return "", false
	}
	return k.name.join(t.Key)
}

// storedSnapshot reads what the offsets record says of the snapshot: whether all its rows are the
// slot's own.
type storedSnapshot struct {
	Snapshot *struct {
		Attempts []struct {
			Exact bool `json:"exact"`
		} `json:"attempts"`
	} `json:"snapshot"`
}

func (s *storedSnapshot) exact() bool {
	if s.Snapshot == nil || len(s.Snapshot.Attempts) == 0 {
		return false
	}
	for _, a := range s.Snapshot.Attempts {
		if !a.Exact {
			return false
		}
	}
	return true
}

// offsetsKey is the key of a connector's record in the offsets topic, in Connect's format.
func offsetsKey(connector, prefix string) string {
	quote := func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"` }
	return "[" + quote(connector) + `,{"server":` + quote(prefix) + "}]"
}
