package connector_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// lines renders events, and ids lists the values of a column of the after images, sorted.
func lines(events []event) []string {
	out := make([]string, len(events))
	for i, e := range events {
		out[i] = e.String()
	}
	return out
}

func ids(events []event, column string) []int {
	var out []int
	for _, e := range events {
		if after := row(e.value["after"]); after != nil {
			n, err := strconv.Atoi(fmt.Sprint(inner(after[column])))
			if err != nil {
				panic(err)
			}
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

func sequence(from, to int) []int {
	var out []int
	for i := from; i <= to; i++ {
		out = append(out, i)
	}
	return out
}

func sameInts(t *testing.T, what string, got, want []int) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %d values, want %d: %.300s", what, len(got), len(want), fmt.Sprint(got))
	}
}

func same(t *testing.T, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Errorf("%d: missing %s", i, want[i])
		case i >= len(want):
			t.Errorf("%d: too much: %s", i, got[i])
		case got[i] != want[i]:
			t.Errorf("%d:\n got %s\nwant %s", i, got[i], want[i])
		}
	}
}

// inner takes a value out of goavro's form of a union.
func inner(v any) any {
	if m, ok := v.(map[string]any); ok && len(m) == 1 {
		for _, v := range m {
			return v
		}
	}
	return v
}

func row(v any) map[string]any {
	m, _ := inner(v).(map[string]any)
	return m
}

// String is an event in one line, as tests expect it:
//
//	op IMAGE key {after} before{...} old{before_key}
//
// Columns are in the order of their names; "-" is null, "?" is flagged UNAVAILABLE, "!text"
// UNREPRESENTABLE, "~" is in front of what is RESELECTED; a long string is shown by its length. A tombstone is "x".
func (e event) String() string {
	key := "-"
	if k, ok := e.key.(map[string]any); ok {
		key = fields(k, nil)
	}
	if e.value == nil {
		return "x " + key
	}
	states := map[string]map[string]string{"AFTER": {}, "BEFORE": {}}
	for _, s := range e.value["column_states"].([]any) {
		m := s.(map[string]any)
		of, column := states[m["image"].(string)], m["column"].(string)
		switch m["state"] {
		case "UNREPRESENTABLE":
			of[column] += fmt.Sprint("!", inner(m["text"]))
		case "RESELECTED":
			of[column] += "~"
		default:
			of[column] += "?"
		}
	}
	out := fmt.Sprintf("%s %s %s", e.op(), e.value["before_image"], key)
	if m := row(e.value["after"]); m != nil {
		out += " " + fields(m, states["AFTER"])
	}
	if m := row(e.value["before"]); m != nil {
		out += " before" + fields(m, states["BEFORE"])
	}
	if m := row(e.value["before_key"]); m != nil {
		out += " old" + fields(m, nil)
	}
	return out
}

func fields(m map[string]any, states map[string]string) string {
	var parts []string
	for name, v := range m {
		text := fmt.Sprint(inner(v))
		switch {
		case v == nil:
			text = "-"
		case len(text) > 40:
			text = fmt.Sprintf("<%d>", len(text))
		}
		switch state := states[name]; {
		case state == "~":
			text = "~" + text
		case state != "" && v == nil:
			text = state
		case state != "":
			text = "flagged but not null: " + text
		}
		parts = append(parts, name+":"+text)
	}
	slices.Sort(parts)
	return "{" + strings.Join(parts, " ") + "}"
}
