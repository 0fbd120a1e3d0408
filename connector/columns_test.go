package connector_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// printf 'peppera@b' | sha256sum, and the same of c@d; printf 'pepper' | cat - x | sha256sum, where x
// is ac ed 00 05 74 00 03 and the word old.
const (
	hashAB  = "919f9740b9487578d6b6fb432de1eee32c7712a2f90105147f08d8f82c7370a9"
	hashCD  = "8a95dd0536823542e0bd8b35df2eb41ff7be9517aebd7f9a10c21f6d864e2328"
	hashOld = "e86800488bae144aa59e09048e202ad8373bba5e7196a9b6bc0f0edb95b56b95"
)

// Columns that are left out and masked are so in the snapshot and in the stream, in after, before,
// key and schema; nothing of what they hold, and not the salt, is in any record or in the log.
func TestColumnsOutAndMasked(t *testing.T) {
	r := newRig(t, "18")
	r.onePartition()
	t.Setenv("TIDEMARK_TEST_SALT", "pepper")
	r.extra["column.exclude.list"] = `public.t.(ssn|big)`
	r.extra["column.mask.with.4.chars"] = "public.t.phone"
	r.extra["column.mask.hash.v2.SHA-256.with.salt.${env:TIDEMARK_TEST_SALT}"] = "public.t.mail"
	r.extra["column.mask.hash.SHA-256.with.salt.pepper"] = "public.t.word"
	r.extra["column.truncate.to.3.chars"] = "public.t.note, public.t.nothing"
	r.exec("CREATE TABLE t (mail text PRIMARY KEY, ssn text NOT NULL, phone text, word varchar(8), "+
		"note text, big text)", "ALTER TABLE t ALTER big SET STORAGE EXTERNAL",
		"ALTER TABLE t REPLICA IDENTITY FULL",
		"INSERT INTO t VALUES ('a@b', 'ssn-1', '555-1', 'old', 'note-1', "+big+")")
	run := r.start()
	r.streaming(run)
	r.exec("UPDATE t SET phone = NULL, ssn = 'ssn-2', note = 'no'", "UPDATE t SET mail = 'c@d'",
		"DELETE FROM t")
	word := "word:" + hashOld[:8]
	same(t, lines(r.read("shop.public.t", 7)), []string{
		"r NOT_APPLICABLE {mail:<64>} {mail:<64> note:not phone:**** " + word + "}",
		"u FULL {mail:<64>} {mail:<64> note:no phone:**** " + word + "} before{mail:<64> note:not " +
			"phone:**** " + word + "} old{mail:<64>}",
		"d FULL {mail:<64>} before{mail:<64> note:no phone:**** " + word + "} old{mail:<64>}",
		"x {mail:<64>}",
		"c FULL {mail:<64>} {mail:<64> note:no phone:**** " + word + "} before{mail:<64> note:no " +
			"phone:**** " + word + "} old{mail:<64>}",
		"d FULL {mail:<64>} before{mail:<64> note:no phone:**** " + word + "} old{mail:<64>}",
		"x {mail:<64>}",
	})
	r.until("the entry that matches nothing is told", func() bool {
		return strings.Contains(strings.Join(run.c.Status().Reasons, "\n"),
			"column.truncate.to.3.chars: public.t.nothing matches no column of a captured table")
	})
	r.clean(run)
	keys := r.rawKeys("shop.public.t", 7)
	for i, want := range []string{hashAB, hashAB, hashAB, hashAB, hashCD, hashCD, hashCD} {
		if got := string(keys[i][len(keys[i])-64:]); got != want {
			t.Errorf("key %d is %s, want %s", i, got, want)
		}
	}
	for _, secret := range []string{"pepper", "a@b", "ssn-1", "555-1", "note-1"} {
		if strings.Contains(r.log.String(), secret) {
			t.Errorf("the log shows %s", secret)
		}
	}
}

// rawKeys reads a topic's first n records, fails the test if any of their bytes show what was to be
// hidden, and returns their keys.
func (r *rig) rawKeys(topic string, n int) (keys [][]byte) {
	r.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(r.addrs()...), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		r.t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	for len(keys) < n {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			r.t.Fatal(err)
		}
		fetches.EachRecord(func(rec *kgo.Record) {
			keys = append(keys, rec.Key)
			for _, secret := range []string{"a@b", "c@d", "ssn-", "555-", "note-1"} {
				if bytes.Contains(rec.Key, []byte(secret)) || bytes.Contains(rec.Value, []byte(secret)) {
					r.t.Errorf("a record shows %s", secret)
				}
			}
		})
	}
	return keys
}

// What cannot be hidden without harm is refused before anything is made on the server, and again at
// a start with a configuration that was changed.
func TestColumnsThatCannotBeHiddenAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.exec("CREATE TABLE t (id int PRIMARY KEY, n int, v text)")
	for key, want := range map[string]string{
		"column.exclude.list":      "column.exclude.list leaves out key column public.t.id",
		"column.mask.with.3.chars": "names column public.t.id, whose field is not a string",
	} {
		r.extra = map[string]string{key: ".*\\\\.id"}
		contains(t, r.refused(fault.ConfigInvalid), want)
	}
	if n := r.query("SELECT (SELECT count(*) FROM pg_publication) + count(*) || '' FROM " +
		"pg_replication_slots WHERE slot_name = '" + r.slot() + "'"); n != "0" {
		t.Errorf("a refused start has made something: %s", n)
	}
	r.extra = map[string]string{"column.include.list": "public.t.id"}
	run := r.start()
	r.streaming(run)
	r.exec("INSERT INTO t VALUES (1, 2, 'v')")
	same(t, lines(r.read("shop.public.t", 1)), []string{"c NOT_APPLICABLE {id:1} {id:1}"})
	r.clean(run)
	r.extra = map[string]string{"column.include.list": "public.t.v"}
	contains(t, r.refused(fault.ConfigInvalid), "column.include.list leaves out key column public.t.id",
		"or into column.include.list")
}

// With an exclude list, messages of every other prefix are sent, but never Tidemark's own.
func TestLogicalMessagesButThoseOfSomePrefixes(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.onePartition()
	r.extra["message.prefix.exclude.list"] = "app.*, mark"
	r.exec(numbers)
	run := r.start()
	r.streaming(run)
	for _, prefix := range []string{"app1", "Other", "tidemark.own", "APP", "apricot"} {
		r.exec("SELECT pg_logical_emit_message(true, '" + prefix + "', 'x')")
	}
	r.caughtUp(run)
	r.clean(run)
	var got []string
	for _, e := range r.all("shop.message") {
		got = append(got, inner(row(e.value["message"])["prefix"]).(string))
	}
	same(t, got, []string{"Other", "apricot"})
}
