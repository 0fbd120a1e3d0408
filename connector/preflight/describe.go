package preflight

import (
	"errors"
	"slices"
	"strings"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// describe renders an error as found, wanted and fix. The texts come from faults, which hold no
// secret and no value of a row; an error without one is shown whole: it is the client library's.
func describe(err error) (found, wanted, fix string) {
	var f *fault.Error
	if !errors.As(err, &f) {
		return err.Error(), "", ""
	}
	found = f.Text
	if f.Err != nil {
		found += ": " + f.Err.Error()
	}
	if f.Found != "" {
		found += " (" + f.Found + ")"
	}
	return found, f.Wanted, f.Fix
}

// failWith adds an error as a finding with its own code.
func (o *outcome) failWith(object string, err error) {
	found, wanted, fix := describe(err)
	o.bad = append(o.bad, Finding{
		Code: fault.CodeOf(err), Object: object, Found: found, Wanted: wanted, Fix: fix,
	})
}

// listMax is how many names a line shows; the JSON has one finding an object instead.
const listMax = 8

// list joins names for a person: "a, b and 3 more".
func list(names []string) string {
	if len(names) <= listMax {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:listMax], ", ") + " and " + plural(len(names)-listMax, "other")
}

// sortedNames returns the qualified names of relations in order.
func sortedNames(rels []*relation) []string {
	names := make([]string, len(rels))
	for i, r := range rels {
		names[i] = r.name()
	}
	slices.Sort(names)
	return names
}
