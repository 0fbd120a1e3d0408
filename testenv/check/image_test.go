package check

import "testing"

func TestImageFails(t *testing.T) {
	for name, c := range map[string]struct {
		table *Table
		event func() *Event
	}{
		"FULL under DEFAULT": {plain(), func() *Event { return fullUpdate("1", 2, 20) }},
		"ABSENT under FULL":  {full(), func() *Event { return update("1", 2, 20) }},
		"NOT_APPLICABLE for an update": {plain(), func() *Event {
			return event("u", "1", 2, 20, "NOT_APPLICABLE")
		}},
		"a before that is not FULL": {plain(), func() *Event {
			e := update("1", 2, 20)
			e.Before = row("1", 1)
			return e
		}},
		"FULL without before": {full(), func() *Event {
			e := fullUpdate("1", 2, 20)
			e.Before = nil
			return e
		}},
		"no before_key with KEY": {plain(), func() *Event {
			e := event("u", "1", 2, 20, "KEY")
			e.BeforeKey = nil
			return e
		}},
		"a null that is not explained": {plain(), func() *Event {
			e := update("1", 2, 20)
			e.After["id"] = nil
			return e
		}},
		"a state of no column": {plain(), func() *Event {
			e := update("1", 2, 20)
			e.States = []State{{Image: "AFTER", Column: "x", State: "UNAVAILABLE"}}
			return e
		}},
		"unavailable with a value": {plain(), func() *Event {
			e := update("1", 2, 20)
			e.States = []State{{Image: "AFTER", Column: "note", State: "UNAVAILABLE"}}
			return e
		}},
		"unavailable under FULL": {full(), func() *Event {
			e := fullUpdate("1", 2, 20)
			e.After["note"] = nil
			e.States = []State{{Image: "AFTER", Column: "note", State: "UNAVAILABLE"}}
			return e
		}},
		"a row of another table": {plain(), func() *Event {
			e := update("1", 2, 20)
			e.Table = "u"
			return e
		}},
		"a key that is not the row's": {plain(), func() *Event {
			e := update("1", 2, 20)
			e.Key = Row{"id": text("9")}
			return e
		}},
	} {
		t.Run(name, func(t *testing.T) {
			wantOnly(t, feed(t, c.table, read("1", 1, 10), c.event()).report, Image)
		})
	}
}

func TestAHeaderThatContradictsFails(t *testing.T) {
	c := feed(t, plain())
	e := insert("1", 1, 10)
	e.Headers = map[string]string{"tidemark.op": "u"}
	c.add(e)
	wantOnly(t, c.report, Image)
}

func TestWhatAnUnavailableValueMayBe(t *testing.T) {
	e := update("1", 2, 20)
	e.After["note"] = nil
	e.States = []State{{Image: "AFTER", Column: "note", State: "UNAVAILABLE"}}
	wantOnly(t, feed(t, plain(), read("1", 1, 10), e).report)
}
