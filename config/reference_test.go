package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReferences(t *testing.T) {
	dir := write(t, map[string]string{
		"p:x":   "user=app\npassword : a=b\\\\c\nempty=\n",
		"whole": "first\nsecond\n",
		"crlf":  "pw\r\n",
	})
	env := map[string]string{"A": "1", "B": "${env:A}", "EMPTY": ""}
	r := resolver{func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
	for text, want := range map[string]string{
		"plain":                         "plain",
		"${env:A}":                      "1",
		"<${env:A}-${env:A}>":           "<1-1>",
		"${env:B}":                      "${env:A}", // not looked at again
		"x${env:EMPTY}y":                "xy",
		"${file:" + dir + "/p:x:user}":  "app",
		"${file:" + dir + "/whole:}":    "first\nsecond",
		"${file:" + dir + "/crlf:}":     "pw",
		"${file:" + dir + "/p:x:empty}": "",
		"$":                             "$",
		"${":                            "${",
		"${env:A":                       "${env:A",
		"${topic}":                      "${topic}",
		"${to pic:x}":                   "${to pic:x}",
		"${a}${env:A}":                  "${a}1",
		"${${env:A}":                    "${1",
		"$${env:A}":                     "$1",
	} {
		if got, _, err := r.resolve(text); err != nil || got != want {
			t.Errorf("%s is %q (%v), want %q", text, got, err, want)
		}
	}
	if got, _, _ := r.resolve("${file:" + dir + "/p:x:password}"); got != `a=b\c` {
		t.Errorf("a password of a properties file is %q", got)
	}
	for text, want := range map[string]string{
		"${env:NO}":                    "${env:NO}: the environment variable is not set",
		"a ${file:/no/such:k} b":       "${file:/no/such:k}: cannot be read: no such file or directory",
		"${file:" + dir + ":k}":        "${file:" + dir + ":k}: cannot be read: is a directory",
		"${file:" + dir + "/whole:no}": "${file:" + dir + "/whole:no}: the file has no such key",
		"${vault:a:b}": "${vault:a:b}: there is no provider of this name: " +
			"use env or file",
	} {
		if _, _, err := r.resolve(text); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// The expected values are those that java.util.Properties documents.
func TestProperties(t *testing.T) {
	got := parseProperties("# comment\n! too = x\n\n  a=1\nb : 2\nc 3\nd\ne=\nf = x = y \n" +
		"g=one\\\n   two\nh\\ i=j\\:k\nu=\\u00e9\\t|\nw=C:\\\\x\na=last\r\nend=\\")
	want := map[string]string{
		"a": "last", "b": "2", "c": "3", "d": "", "e": "", "f": "x = y ", "g": "onetwo",
		"h i": "j:k", "u": "é\t|", "w": `C:\x`, "end": "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzReferences(f *testing.F) {
	for _, seed := range []string{"${env:A}", "${file:x:y}", "${", "}${a:b}", "a${env:A}${env:A", ""} {
		f.Add(seed, "v\\u00e9=1\nb \\")
	}
	f.Fuzz(func(t *testing.T, text, properties string) {
		r := resolver{func(string) (string, bool) { return "\x00VALUE\x00", true }}
		got, found, err := r.resolve(text)
		if err == nil && !found && got != text {
			t.Errorf("%q without a reference became %q", text, got)
		}
		if err == nil && found && !strings.Contains(text, "${") {
			t.Errorf("%q has no reference", text)
		}
		if err != nil && strings.Contains(err.Error(), "VALUE") && !strings.Contains(text, "VALUE") {
			t.Errorf("the error holds a value: %v", err)
		}
		parseProperties(properties)
	})
}
