package check

import (
	"slices"
	"strconv"
)

// checkHeaders holds the headers against the envelope.
func (c *checker) checkHeaders(e *Event) {
	for name, want := range map[string]string{
		"tidemark.op":           e.Op,
		"tidemark.history":      strconv.FormatInt(e.Pair.History, 10),
		"tidemark.commit_lsn":   strconv.FormatUint(e.Pair.CommitLSN, 10),
		"tidemark.event_index":  strconv.FormatInt(e.Pair.Index, 10),
		"tidemark.before_image": e.Image,
	} {
		if e.Headers[name] != want {
			c.report.fail(Image, "%s: header %s is %q, not %q", e.where(), name, e.Headers[name], want)
		}
	}
}

// checkImage holds before_image, before, before_key and column_states against what the table's
// replica identity allows: the table "What is known of the old row" of the contract.
func (c *checker) checkImage(t *topic, e *Event) {
	bad := func(what string) { c.report.fail(Image, "%s, image %s: %s", e.where(), e.Image, what) }
	full := t.table.Identity == IdentityFull
	if want := images(e, full); !slices.Contains(want, e.Image) {
		bad("its replica identity allows " + want[0] + " only")
	}
	if (e.Image == "FULL") != (e.Before != nil) {
		bad("before is the complete old row, and that with FULL only")
	}
	if wantKey := !t.table.Keyless && (e.Image == "KEY" || e.Image == "FULL"); wantKey !=
		(e.BeforeKey != nil) {
		bad("before_key is there with KEY and FULL, and only then")
	}
	if wantAfter := e.Op == "c" || e.Op == "u" || e.Op == "r"; wantAfter != (e.After != nil) {
		bad("after is there with c, u and r, and only then")
	}
	if e.Schema != t.table.Schema || e.Table != t.table.Name {
		bad("its source is another table")
	}
	if e.Op == "d" && !t.table.Keyless && !sameRow(e.Key, e.BeforeKey) {
		bad("before_key is not the key")
	}
	if e.After != nil && !t.table.Keyless {
		for name, text := range e.Key {
			if !same(text, e.After[name]) {
				bad("the key is not the row's in " + name)
			}
		}
	}
	c.checkStates(e, full)
	for _, row := range []Row{e.Before, e.After} {
		for _, name := range t.table.NotNull {
			if text, has := row[name]; has && text == nil && !flagged(e, name) {
				bad("column " + name + " is null, which it never is, without a state that says why")
			}
		}
	}
}

// images lists what before_image may be.
func images(e *Event, full bool) []string {
	moved := e.keyChange()
	switch {
	case e.Op == "u" && full, e.Op == "d" && full, e.Op == "c" && moved && full:
		return []string{"FULL"}
	case e.Op == "d", e.Op == "c" && moved:
		return []string{"KEY"}
	case e.Op == "u":
		return []string{"ABSENT", "KEY"} // KEY when the key itself is stored out of line
	}
	return []string{"NOT_APPLICABLE"}
}

func (c *checker) checkStates(e *Event, full bool) {
	for _, s := range e.States {
		row := e.After
		if s.Image == "BEFORE" {
			row = e.Before
		}
		switch {
		case !slices.Contains(e.Columns, s.Column):
			c.report.fail(Image, "%s: a state of column %s, which is no field", e.where(), s.Column)
		case row == nil:
			c.report.fail(Image, "%s: a state of %s, which is null as a whole", e.where(), s.Image)
		case s.State == "UNAVAILABLE" && s.Text == nil && full:
			c.report.fail(Image, "%s: %s is unavailable, though the old row is there", e.where(), s.Column)
		case s.State != "RESELECTED" && row[s.Column] != nil:
			c.report.fail(Image, "%s: %s is %s and yet has a value", e.where(), s.Column, s.State)
		}
	}
}

// flagged says whether a state explains a column of the new row.
func flagged(e *Event, column string) bool {
	return slices.ContainsFunc(e.States, func(s State) bool { return s.Column == column })
}
