package config

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares text with a file, or writes it.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -update writes it):\n%s", path, diff)
	}
}

// write puts files into a directory of the test's and returns it.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// loadText loads one YAML text; messages name the file "t.yaml".
func loadText(t *testing.T, text string) (*File, []string, []string) {
	t.Helper()
	dir := write(t, map[string]string{"t.yaml": text})
	f, warnings, err := Load(filepath.Join(dir, "t.yaml"), nil)
	return f, lines(dir, warnings), violations(dir, err)
}

func lines[T fmt.Stringer](dir string, messages []T) []string {
	out := make([]string, len(messages))
	for i, m := range messages {
		out[i] = m.String()
		if dir != "" {
			out[i] = strings.ReplaceAll(out[i], dir+string(filepath.Separator), "")
		}
	}
	return out
}

func violations(dir string, err error) []string {
	if err == nil {
		return nil
	}
	var vs Violations
	if !errors.As(err, &vs) {
		return []string{"not violations: " + err.Error()}
	}
	return lines(dir, vs)
}

// dump renders settings for comparison, with what secrets hold and expressions are.
func dump(f *File) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%+v\n", f.Worker)
	fmt.Fprintf(&b, "%q %q %q\n", f.Worker.Registry.Password.Reveal(),
		f.Worker.Registry.Bearer.Reveal(), f.Worker.Kafka.SASLPassword.Reveal())
	for _, c := range f.Connectors {
		fmt.Fprintf(&b, "%+v %q\n", *c, c.Database.Password.Reveal())
	}
	return b.String()
}

func texts(list []*regexp.Regexp) []string {
	var out []string
	for _, re := range list {
		out = append(out, sourceOf(re))
	}
	return out
}
