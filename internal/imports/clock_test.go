package imports

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// wall lists the files that make microseconds of the wall clock, or a time of such a number: for
// people and records, never for an interval.
var wall = map[string]string{
	"connector/freshstart.go":     "the record's ts_usec",
	"connector/keeper.go":         "the same, and a commit's age in the metrics",
	"connector/exactly.go":        "the record's ts_usec",
	"connector/session.go":        "the envelope's ts_ms",
	"connector/initial.go":        "the same of snapshot rows",
	"connector/capture/status.go": "a field of the protocol, which the server shows",
	"envelope/options.go":         "the envelope's ts_ms",
	"offsets/repair.go":           "the record's ts_usec",
}

// Intervals are monotonic: no code takes the difference of two readings of the wall clock, which may
// leap while a connector runs.
func TestF17IntervalsAreMonotonic(t *testing.T) {
	root := "../.."
	for _, dir := range []string{"connector", "offsets", "envelope", "internal", "schema"} {
		look := func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			name = filepath.ToSlash(name)
			if strings.HasPrefix(name, "connector/consume/") ||
				strings.HasPrefix(name, "connector/preflight/") {
				return nil // no connector runs there
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if sel, ok := n.(*ast.SelectorExpr); ok && slices.Contains(wallCalls, sel.Sel.Name) &&
					(sel.Sel.Name == "UnixNano" || wall[name] == "") {
					t.Errorf("%s: %s: intervals are differences of time.Time", name, sel.Sel.Name)
				}
				return true
			})
			return nil
		}
		if err := filepath.WalkDir(filepath.Join(root, dir), look); err != nil {
			t.Fatal(err)
		}
	}
}

var wallCalls = []string{"UnixNano", "UnixMilli", "UnixMicro"}
