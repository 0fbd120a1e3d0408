package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// columnsOf loads a connector with some more keys.
func columnsOf(t *testing.T, keys string) (Columns, []string) {
	t.Helper()
	f, warnings, violations := loadText(t, withConnector(keys))
	if len(violations) > 0 {
		t.Fatal(violations)
	}
	return f.Connectors[0].Columns, warnings
}

// What each key says of a column: sent or not, and the key that says so.
func TestColumnRules(t *testing.T) {
	t.Setenv("TIDEMARK_TEST_SALT", "pepper.and.salt")
	columns, warnings := columnsOf(t, `column.exclude.list: public\.users\.(ssn|pin)
column.truncate.to.20.chars: .*\.users\..*
column.truncate.to.10.chars: .*\.users\.note
column.mask.with.5.chars: public.users.phone
column.mask.hash.v2.SHA-256.with.salt.${env:TIDEMARK_TEST_SALT}: public.users.(mail|phone)
column.mask.hash.MD5.with.salt.old: public.users.mail, public.users.nick
`)
	for column, want := range map[string]string{
		"ssn": "false column.exclude.list", "PIN": "false column.exclude.list",
		"ssn2":  "true column.truncate.to.20.chars",
		"note":  "true column.truncate.to.10.chars",
		"phone": "true column.mask.with.5.chars",
		"mail":  "true column.mask.hash.v2.SHA-256.with.salt.****",
		"nick":  "true column.mask.hash.MD5.with.salt.****",
	} {
		sent, mask, key := columns.Rule("public", "users", column)
		if got := fmt.Sprint(sent, " ", key); got != want {
			t.Errorf("%s: %s, want %s", column, got, want)
		}
		if mask != nil && strings.Contains(fmt.Sprintf("%+v %#v %v", *mask, *mask, mask), "pepper") {
			t.Errorf("%s: the salt is printed", column)
		}
		if column == "mail" && mask.Salt.Reveal() != "pepper.and.salt" {
			t.Errorf("the salt is not the reference's value")
		}
	}
	if sent, _, key := columns.Rule("public", "orders", "ssn"); !sent || key != "" {
		t.Errorf("a column that nothing names: %v %s", sent, key)
	}
	want := []string{"t.yaml:15: connectors.shop: column.mask.hash.MD5.with.salt.****: the salt " +
		"stands in the file: write ${env:NAME} or ${file:PATH:KEY} in its place"}
	if d := cmp.Diff(want, warnings); d != "" {
		t.Errorf("warnings (-want +got)\n%s", d)
	}
	unmatched := columns.Unmatched([]string{"public.users.mail", "public.users.pin"})
	if d := cmp.Diff([][2]string{
		{"column.mask.with.5.chars", "public.users.phone"},
		{"column.mask.hash.MD5.with.salt.****", "public.users.nick"},
		{"column.truncate.to.10.chars", `.*\.users\.note`},
	}, unmatched); d != "" {
		t.Errorf("unmatched (-want +got)\n%s", d)
	}
}

func TestColumnIncludeList(t *testing.T) {
	columns, _ := columnsOf(t, "column.include.list: public.users.id\n")
	for column, want := range map[string]bool{"id": true, "id2": false, "mail": false} {
		if sent, _, _ := columns.Rule("public", "users", column); sent != want {
			t.Errorf("%s: sent %v, want %v", column, sent, want)
		}
	}
	_, _, violations := loadText(t, withConnector(
		"column.include.list: public.users.id\ncolumn.exclude.list: public.users.pin\n"))
	if len(violations) != 1 || !strings.Contains(violations[0],
		"column.exclude.list: given beside column.include.list: remove one of them") {
		t.Errorf("both lists: %q", violations)
	}
}

// What is wrong in the names of keys, which is told without a salt.
func TestColumnKeysThatAreWrong(t *testing.T) {
	c := func(lines, want string) [2]string {
		return [2]string{lines, "t.yaml:10: connectors.shop: " + want}
	}
	for _, tc := range [][2]string{
		c("column.mask.with.x.chars: a.b.c", `column.mask.with.x.chars: found "x", wanted a number `+
			"of characters from 0 to 1048576"),
		c("column.truncate.to.0.chars: a.b.c", `column.truncate.to.0.chars: found "0", wanted a `+
			"number of characters from 1 to 1048576"),
		c("column.mask.hash.v2.SHA-257.with.salt.pepper: a.b.c", "column.mask.hash.v2.SHA-257."+
			`with.salt.****: found "SHA-257", wanted a hash: MD5, SHA, SHA-1, SHA-224, SHA-256, `+
			"SHA-384, SHA-512, SHA-512/224, SHA-512/256, SHA3-224, SHA3-256, SHA3-384 or SHA3-512"),
		c("column.mask.hash.SHA-256.with.slat.pepper: a.b.c", "column.mask.hash.SHA-256.with.****: "+
			"unknown key: `tidemark config keys` lists all"),
		c("column.mask.hash.v2.SHA-256.with.salt.${env:TIDEMARK_NO_SUCH}: a.b.c",
			"column.mask.hash.v2.SHA-256.with.salt.****: ${env:TIDEMARK_NO_SUCH}: the environment "+
				"variable is not set"),
	} {
		_, _, got := loadText(t, withConnector(tc[0]))
		if diff := cmp.Diff([]string{tc[1]}, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}
