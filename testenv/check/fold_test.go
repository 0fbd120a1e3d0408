package check

import "testing"

// foldOf folds events of a table and compares them with its rows.
func foldOf(t *testing.T, events []*Event, rows ...Row) *Report {
	t.Helper()
	c := feed(t, plain(), events...)
	c.report = newReport()
	have := map[string]*folded{}
	for _, k := range c.topics[topicName].keys {
		if k.folded.row != nil {
			id, _ := k.folded.row.join([]string{"id"})
			have[id] = &k.folded
		}
	}
	for _, r := range rows {
		c.compareRow(topicName, plain(), r, have)
	}
	for id := range have {
		c.report.fail(Fold, "row %s is too many", id)
	}
	return c.report
}

func TestTheFoldIsTheTable(t *testing.T) {
	late := update("1", 2, 15) // before the snapshot that was begun again
	kept := update("2", 3, 40)
	kept.After["note"] = nil
	kept.States = []State{{Image: "AFTER", Column: "note", State: "UNAVAILABLE"}}
	want := row("2", 3)
	want["note"] = text("n2") // what it was before
	want["added"] = nil       // added since
	report := foldOf(t, []*Event{
		read("1", 5, 20), read("2", 2, 20), late, insert("3", 1, 30), remove("3", 35),
		tombstone("3", 35), kept,
	}, row("1", 5), want)
	wantOnly(t, report)
}

func TestFoldFails(t *testing.T) {
	wantOnly(t, foldOf(t, []*Event{insert("1", 1, 10)}), Fold)
	wantOnly(t, foldOf(t, []*Event{insert("1", 1, 10)}, row("1", 2)), Fold)
	wantOnly(t, foldOf(t, nil, row("1", 1)), Fold)
	null := insert("1", 1, 10)
	null.After["note"] = nil // without a state: null it is
	wantOnly(t, foldOf(t, []*Event{null}, row("1", 1)), Fold)
	wantOnly(t, foldOf(t, []*Event{insert("1", 1, 10), truncate(0, 20)}, row("1", 1)), Fold)
}

func TestTheAuditNamesWhatIsNotThere(t *testing.T) {
	good := map[string][]change{"1": {{'c', 1}, {'u', 2}, {'d', 3}}, "2": {{'c', 1}, {'u', 2}}}
	events := func() []*Event {
		return []*Event{
			read("2", 1, 10), insert("1", 1, 20), update("1", 2, 30), update("2", 2, 40),
			remove("1", 50), tombstone("1", 50),
		}
	}
	audit := func(keys map[string][]change, events []*Event) *Report {
		c := feed(t, plain(), events...)
		c.report = newReport()
		c.auditTopic(topicName, c.topics[topicName], &audited{keys: keys})
		return c.report
	}
	wantOnly(t, audit(good, events()))
	wantOnly(t, audit(good, events()[:4]), Hole) // the last delete
	more := map[string][]change{"1": good["1"], "2": good["2"], "3": {{'c', 1}}}
	wantOnly(t, audit(more, events()), Hole)
	less := map[string][]change{"1": good["1"][:2], "2": good["2"]}
	wantOnly(t, audit(less, events()), Hole)
	gap := map[string][]change{"1": good["1"], "2": {{'c', 1}, {'u', 2}, {'u', 3}}}
	wantOnly(t, audit(gap, events()), Hole)
}
