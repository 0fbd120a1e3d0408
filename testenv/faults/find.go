package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// test is a test function that makes faults happen.
type test struct {
	name string
	file string // from the root of the tree, with slashes
	rows []int
}

func (t *test) dir() string { return path.Dir(t.file) }

var (
	testName  = regexp.MustCompile(`^Test((?:F\d\d)+)([A-Z]\w*)$`)
	rowNumber = regexp.MustCompile(`\d\d`)
)

// rowsOf returns the numbers in a test's name; nil when it has none.
func rowsOf(name string) (rows []int) {
	m := testName.FindStringSubmatch(name)
	if m == nil {
		return nil
	}
	for _, digits := range rowNumber.FindAllString(m[1], -1) {
		n, _ := strconv.Atoi(digits) // two digits
		rows = append(rows, n)
	}
	return rows
}

// findTests finds the tests of faults in a tree, whatever the build tags, in order of their names.
func findTests(root string) (tests []test, err error) {
	err = filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		for _, decl := range parsed.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil {
				if rows := rowsOf(f.Name.Name); rows != nil {
					tests = append(tests, test{f.Name.Name, filepath.ToSlash(rel), rows})
				}
			}
		}
		return nil
	})
	slices.SortFunc(tests, func(a, b test) int { return strings.Compare(a.name, b.name) })
	return tests, err
}

// level is what the tests of a place run against.
type level struct {
	prefix string // of the file's path; the longest counts
	text   string
	mode   bool // a connector runs, in one delivery mode or the other
}

var levels = []level{
	{"offsets/", "unit", false},
	{"offsets/store", "in-process broker", false},
	{"schema/", "unit", false},
	{"schema/registry/", "in-process registry", false},
	{"schema/catalog/", "real PostgreSQL", false},
	{"config/", "unit", false},
	{"envelope/", "unit", false},
	{"internal/imports/", "unit", false},
	{"internal/pgdial/", "real PostgreSQL", false},
	{"internal/kafkadial/", "in-process broker", false},
	{"connector/", "real PostgreSQL, in-process broker", true},
	{"connector/capture/", "real PostgreSQL", false},
	{"connector/capture/clock", "unit", false},
	{"connector/converge/", "in-process broker", false},
	{"connector/decode/", "unit", false},
	{"connector/deliver/", "in-process broker", false},
	{"connector/metrics/", "unit", false},
	{"connector/preflight/", "real PostgreSQL, in-process broker", false},
	{"connector/snapshot/", "real PostgreSQL", false},
	{"connector/worker/", "unit", false},
	{"testenv/cases/", "real PostgreSQL, in-process broker", true},
	{"testenv/proof/", "real PostgreSQL, in-process broker", true},
	{"cmd/tidemark/", "real PostgreSQL, in-process broker", true},
}

// level returns what the test runs against; the zero level when its place is not known.
func (t *test) level() (found level) {
	for _, l := range levels {
		if strings.HasPrefix(t.file, l.prefix) && len(l.prefix) > len(found.prefix) {
			found = l
		}
	}
	if m := testName.FindStringSubmatch(t.name); found.text != "" && strings.HasPrefix(m[2], "Real") {
		found.text = strings.Replace(found.text, "in-process broker", "real broker", 1)
	}
	return found
}
