package imports

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A test that asks for TIDEMARK_REALBROKER, itself or through a helper of its package, has a name and
// a package that stage real of testenv/stages.sh runs: else nothing ever would.
func TestStageRealRunsWhatNeedsRealServers(t *testing.T) {
	script, err := os.ReadFile("../../testenv/stages.sh")
	if err != nil {
		t.Fatal(err)
	}
	stage := regexp.MustCompile(`TIDEMARK_REALBROKER=1 [^']* -run '([^']+)' \\\n *(.+)\n`).
		FindStringSubmatch(string(script))
	if stage == nil {
		t.Fatal("testenv/stages.sh has no stage real that this test understands")
	}
	names := regexp.MustCompile(stage[1])
	found := 0
	for dir, functions := range testFunctions(t) {
		in := false
		for _, pattern := range strings.Fields(stage[2]) {
			in = in || strings.HasPrefix(dir+"/", strings.TrimSuffix(pattern, "...")[len("./"):])
		}
		for name, body := range functions {
			if !strings.HasPrefix(name, "Test") || !needsReal(functions, body, map[string]bool{}) {
				continue
			}
			if found++; !in || !names.MatchString(name) {
				t.Errorf("%s: stage real (%s in %s) does not run %s", dir, stage[1], stage[2], name)
			}
		}
	}
	if found == 0 {
		t.Error("no test needs real servers")
	}
}

// testFunctions are the functions of the test files, without methods, by directory and name.
func testFunctions(t *testing.T) map[string]map[string]ast.Node {
	t.Helper()
	root, all := "../..", map[string]map[string]ast.Node{}
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil || dir == filepath.Join("internal", "imports") {
			return err
		}
		dir = filepath.ToSlash(dir)
		if all[dir] == nil {
			all[dir] = map[string]ast.Node{}
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Body != nil {
				all[dir][f.Name.Name] = f.Body
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// needsReal reports whether a function asks for the variable, or calls one that does.
func needsReal(functions map[string]ast.Node, body ast.Node, seen map[string]bool) (needs bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			needs = needs || n.Value == `"TIDEMARK_REALBROKER"`
		case *ast.Ident:
			if callee := functions[n.Name]; callee != nil && !seen[n.Name] {
				seen[n.Name] = true
				needs = needs || needsReal(functions, callee, seen)
			}
		}
		return !needs
	})
	return needs
}
