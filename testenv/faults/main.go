// Command faults writes docs/faults.md: the catalogue of faults, and for each which tests of this
// tree make it happen, at which level, in which delivery mode, and how they ended last.
//
//	go test -json -run '^TestF[0-9]' ./... > out; go run ./testenv/faults out
//	go run ./testenv/faults -packages   # the packages that have such tests
//
// A test belongs to row 5 when it is named TestF05...; TestF01F02... belongs to both. Real behind
// the numbers is a test against a real broker. Without results, and for tests that are not in
// them, the page keeps what it said.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
)

const pagePath = "docs/faults.md"

func main() {
	packages := flag.Bool("packages", false, "print the packages that have tests of faults")
	flag.Parse()
	if err := run(*packages, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

func run(packages bool, files []string) error {
	tests, err := findTests(".")
	if err != nil {
		return err
	}
	if packages {
		var dirs []string
		for _, t := range tests {
			dirs = append(dirs, "./"+t.dir())
		}
		slices.Sort(dirs)
		for _, d := range slices.Compact(dirs) {
			fmt.Println(d)
		}
		return nil
	}
	old, err := os.ReadFile(pagePath)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	results := resultsOfPage(string(old))
	for _, f := range files {
		if err := results.read(f); err != nil {
			return err
		}
	}
	if err := os.WriteFile(pagePath, []byte(page(tests, results)), 0o644); err != nil {
		return err
	}
	if failed := results.failed(tests); len(failed) > 0 {
		return fmt.Errorf("failed: %v", failed)
	}
	return nil
}
