package main

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/faults.md with the tests that there are")

const root = "../.."

// owed are the rows that have no test yet: a line a row, taken out with the test.
var owed []int

func tree(t *testing.T) []test {
	t.Helper()
	tests, err := findTests(root)
	if err != nil {
		t.Fatal(err)
	}
	return tests
}

// Each row has a test, or says why there is none; each test has a row, a level and its own name.
func TestEveryRowHasATest(t *testing.T) {
	tests := tree(t)
	have := map[int]bool{}
	for i, test := range tests {
		for _, n := range test.rows {
			if n < 1 || n > len(rows) {
				t.Errorf("%s: there is no row %d", test.name, n)
			}
			have[n] = true
		}
		if test.level().text == "" {
			t.Errorf("%s: the level of tests in %s is not known", test.name, test.file)
		}
		if i > 0 && tests[i-1].name == test.name {
			t.Errorf("%s is in %s and in %s", test.name, tests[i-1].file, test.file)
		}
	}
	for i, row := range rows {
		if row.number != i+1 {
			t.Fatalf("row %d stands at %d", row.number, i+1)
		}
		if covered := have[row.number] || row.reason != ""; covered == slices.Contains(owed, row.number) {
			t.Errorf("row %d: covered is %v; owed must hold just the rows that are not", row.number, covered)
		}
		if strings.Contains(row.fault+row.reason, "|") {
			t.Errorf("row %d: | would break the table", row.number)
		}
	}
}

// The page lists the tests that there are, and none of them failed.
func TestThePageIsOfThisTree(t *testing.T) {
	tests := tree(t)
	file := filepath.Join(root, pagePath)
	text, err := os.ReadFile(file)
	if err != nil && !*update {
		t.Fatal(err)
	}
	results := resultsOfPage(string(text))
	want := page(tests, results)
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(text) != want {
		t.Errorf("%s is of another tree: go run ./testenv/faults, with results where there are",
			pagePath)
	}
	if failed := results.failed(tests); len(failed) > 0 {
		t.Errorf("failed when they were run last: %v", failed)
	}
}

func TestResultsOfARun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out")
	const stream = `{"Time":"2026-01-31T10:00:00Z","Action":"pass","Test":"TestF05A/at_least_once"}
{"Time":"2026-01-31T10:00:00Z","Action":"pass","Test":"TestF05A/exactly_once/x"}
{"Time":"2026-01-31T10:00:00Z","Action":"pass","Test":"TestF05A"}
{"Time":"2026-01-31T10:00:00Z","Action":"fail","Test":"TestF05ExactlyOnceB"}
{"Time":"2026-01-31T10:00:00Z","Action":"skip","Test":"TestF06RealC"}
{"Time":"2026-01-31T10:00:00Z","Action":"pass","Test":"TestOther"}
{"Time":"2026-01-31T10:00:00Z","Action":"fail"}
`
	if err := os.WriteFile(file, []byte(stream), 0o600); err != nil {
		t.Fatal(err)
	}
	got := results{"TestF06RealC": {"pass 2026-01-30", "at least once"}}
	if err := got.read(file); err != nil {
		t.Fatal(err)
	}
	tests := []test{
		{"TestF05A", "connector/a_test.go", []int{5}},
		{"TestF05ExactlyOnceB", "offsets/store_test.go", []int{5}},
		{"TestF06RealC", "testenv/proof/c_test.go", []int{6}},
	}
	text := page(tests, got)
	for _, line := range []string{
		"| `TestF05A` | real PostgreSQL, in-process broker | both | pass 2026-01-31 |",
		"| | | `TestF05ExactlyOnceB` | in-process broker | — | fail 2026-01-31 |",
		"| `TestF06RealC` | real PostgreSQL, real broker | at least once | pass 2026-01-30 |",
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("the page has no line %s\n%s", line, text)
		}
	}
	if again := page(tests, resultsOfPage(text)); again != text {
		t.Errorf("read back it is another page:\n%s", again)
	}
	if failed := got.failed(tests); !slices.Equal(failed, []string{"TestF05ExactlyOnceB"}) {
		t.Errorf("failed: %v", failed)
	}
	for name, want := range map[string][]int{
		"TestF01F02Both": {1, 2}, "TestF57K01Numbers": {57}, "TestFold": nil, "TestF1One": nil,
	} {
		if got := rowsOf(name); !slices.Equal(got, want) {
			t.Errorf("%s: rows %v, want %v", name, got, want)
		}
	}
}
