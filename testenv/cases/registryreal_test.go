package cases_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/testenv"
	"github.com/tidemark-cdc/tidemark/testenv/avrocompat"
)

// realRegistry is a rig whose connectors use a real registry, and a client of it. Subjects stay: a
// test's tables have names of their own.
func realRegistry(t *testing.T) (*rig, *sr.Client) {
	t.Helper()
	if os.Getenv("TIDEMARK_REALBROKER") == "" {
		t.Skip("the real registry is a stage of its own: TIDEMARK_REALBROKER=1")
	}
	r := newRig(t, testenv.SharedPostgres(t, "18"))
	r.url = testenv.SharedRegistry(t).URL
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client, err := sr.NewClient(sr.URLs(r.url), sr.HTTPClient(&http.Client{Transport: transport}))
	if err != nil {
		t.Fatal(err)
	}
	return r, client
}

// A real registry takes and refuses the same, but for NONE: Apicurio's takes it at a subject for no
// level of its own, and then its global level holds, here BACKWARD.
func TestRealRegistryDDLPage(t *testing.T) {
	r, _ := realRegistry(t)
	if os.Getenv("TIDEMARK_TEST_ALL") == "" {
		t.Skip("half a minute: TIDEMARK_TEST_ALL=1")
	}
	actual := r.url
	r.url = r.registry.URL
	seen := r.runDDL()
	fake, err := testenv.StartFakeRegistry(testenv.FakeRegistryOptions{Compatible: avrocompat.Check})
	if err != nil {
		t.Fatal(err)
	}
	defer fake.Close()
	for i, d := range ddls {
		want := refusals(t, fake.URL, i, &seen[i])
		want[len(levels)-1] = want[0]
		same(t, d.title, refusals(t, actual, i, &seen[i]), want...)
	}
}

// streams runs a connector until a table's rows are in its topic, and returns the events.
func (r *rig) streams(table string, want ...string) []event {
	r.t.Helper()
	run := r.streaming()
	got := r.drain(run, table)
	r.clean(run)
	same(r.t, "event", lines(got), want...)
	return got
}

// newest is a subject's newest version.
func newest(t *testing.T, client *sr.Client, subject string) sr.SubjectSchema {
	t.Helper()
	s, err := client.SchemaByVersion(t.Context(), subject, -1)
	if err != nil {
		t.Fatalf("%s: %v", subject, err)
	}
	return s
}

// put registers a schema and returns its id and version.
func put(t *testing.T, client *sr.Client, subject, text string) sr.SubjectSchema {
	t.Helper()
	s, err := client.CreateSchema(t.Context(), subject, sr.Schema{Schema: text})
	if err != nil {
		t.Fatalf("%s: %v", subject, err)
	}
	return s
}

// A topic whose subjects hold Debezium's schemas goes on under BACKWARD with ours as the next
// versions; without the default of a field that Debezium does not have it would not.
func TestRealRegistryChangesOverFromDebezium(t *testing.T) {
	r, client := realRegistry(t)
	theirs := map[string]string{}
	for _, half := range []string{"key", "value"} {
		text, err := os.ReadFile("../../envelope/testdata/debezium-" + half + ".avsc")
		if err != nil {
			t.Fatal(err)
		}
		theirs[half] = string(text)
		put(t, client, "shop.public.orders-"+half, theirs[half])
	}
	r.level(sr.CompatBackward, "shop.public.orders-key", "shop.public.orders-value")
	r.exec(`CREATE TABLE orders(id int PRIMARY KEY, v text)`, `INSERT INTO orders VALUES (1,'x')`)
	r.streams("orders", `r NOT_APPLICABLE {id:1} {id:1 v:"x"}`)
	ours := newest(t, client, "shop.public.orders-value")
	if ours.Version != 2 || !strings.Contains(ours.Schema.Schema, "before_image") {
		t.Errorf("version %d of the value is %s", ours.Version, ours.Schema.Schema)
	}
	without := strings.Replace(ours.Schema.Schema, `,"default":"UNKNOWN"},"default":"UNKNOWN"}`, `}}`, 1)
	put(t, client, "without-default", theirs["value"])
	_, err := client.CreateSchema(t.Context(), "without-default", sr.Schema{Schema: without})
	var refusal *sr.ResponseError
	if without == ours.Schema.Schema || !errors.As(err, &refusal) || refusal.StatusCode != 409 {
		t.Errorf("without the default: %v", err)
	}
}

// Under FULL the registry refuses an int for a text: the connector stops before the first row with
// it, names what refuses it and why, and goes on without loss when the level is another.
func TestRealRegistryRefusesAnotherType(t *testing.T) {
	r, client := realRegistry(t)
	r.exec(`CREATE TABLE widened(id int PRIMARY KEY, n int)`, `INSERT INTO widened VALUES (1,1)`)
	run := r.streaming()
	r.drain(run, "widened")
	r.level(sr.CompatFull, "shop.public.widened-value")
	r.exec(`ALTER TABLE widened ALTER n TYPE bigint`, `INSERT INTO widened VALUES (2,5000000000)`)
	r.ends(run, fault.SchemaRejected, "shop.public.widened-value", "FULL", "/config/")
	if v := newest(t, client, "shop.public.widened-value").Version; v != 1 {
		t.Errorf("version %d was registered", v)
	}
	r.level(sr.CompatBackward, "shop.public.widened-value")
	r.streams("widened", `r NOT_APPLICABLE {id:1} {id:1 n:1}`,
		`c NOT_APPLICABLE {id:2} {id:2 n:5000000000}`)
}

func TestRealRegistrySubjectNameStrategies(t *testing.T) {
	r, client := realRegistry(t)
	for strategy, want := range map[string][]string{
		"TopicNameStrategy":  {"shop.public.s1-key", "shop.public.s1-value"},
		"RecordNameStrategy": {"shop.public.s2.Envelope", "shop.public.s2.Key"},
		"io.confluent.kafka.serializers.subject.TopicRecordNameStrategy": {
			"shop.public.s3-shop.public.s3.Envelope", "shop.public.s3-shop.public.s3.Key",
		},
	} {
		table := strings.TrimPrefix(want[0], "shop.public.")[:2]
		r.keys["table.include.list"] = "public." + table
		r.keys["slot.name"] = r.slot() + table
		r.worker["key.subject.name.strategy"] = strategy
		r.worker["value.subject.name.strategy"] = strategy
		r.worker["offset.storage.topic"] = "offsets-" + table
		r.exec("CREATE TABLE "+table+"(id int PRIMARY KEY)", "INSERT INTO "+table+" VALUES (1)")
		r.streams(table, `r NOT_APPLICABLE {id:1} {id:1}`)
		subjects, err := client.Subjects(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		subjects = slices.DeleteFunc(subjects, func(s string) bool {
			return !strings.HasPrefix(s, "shop.public."+table)
		})
		slices.Sort(subjects)
		same(t, strategy, subjects, want...)
	}
}

// Without auto.register.schemas nothing is registered: a subject that has not the schema stops the
// connector, one that has is used, and with use.latest.version also a version with another
// documentation, whose id is in the records then.
func TestRealRegistryThatIsNotWritten(t *testing.T) {
	r, client := realRegistry(t)
	r.exec(`CREATE TABLE given(id int PRIMARY KEY)`, `INSERT INTO given VALUES (1)`)
	r.streams("given", `r NOT_APPLICABLE {id:1} {id:1}`)
	const subject = "shop.public.given-value"
	first := newest(t, client, subject)

	r.worker["auto.register.schemas"] = "false"
	r.exec(`INSERT INTO given VALUES (2)`)
	events := []string{`r NOT_APPLICABLE {id:1} {id:1}`, `c NOT_APPLICABLE {id:2} {id:2}`}
	r.streams("given", events...)

	r.exec(`ALTER TABLE given ADD v text`, `INSERT INTO given VALUES (3,'x')`)
	r.ends(r.start(), fault.SchemaRejected, subject, "auto.register.schemas")
	r.worker["use.latest.version"] = "true"
	r.ends(r.start(), fault.SchemaRejected, subject, "field v is written, and not registered")
	if v := newest(t, client, subject).Version; v != 1 {
		t.Fatalf("version %d was registered", v)
	}
	const id = `{"name":"id","type":["null","int"],"default":null,"pg_type":"integer"}`
	text := strings.Replace(first.Schema.Schema, id, id+
		`,{"name":"v","type":["null","string"],"default":null,"doc":"by hand"}`, 1)
	byHand := put(t, client, subject, text)
	var ids []int
	for _, e := range r.streams("given", append(events, `c NOT_APPLICABLE {id:3} {id:3 v:"x"}`)...) {
		ids = append(ids, e.schema)
	}
	if after := newest(t, client, subject); after.Version != 2 ||
		!slices.Equal(ids, []int{first.ID, first.ID, byHand.ID}) {
		t.Errorf("version %d; the records name the schemas %v, by hand is %d", after.Version, ids,
			byHand.ID)
	}
}

// With normalize.schemas the registry compares normal forms: a schema that somebody registered with
// its attributes in another order is ours. Without, it is another one, and ours the next version.
func TestRealRegistryNormalizes(t *testing.T) {
	r, client := realRegistry(t)
	r.exec(`CREATE TABLE own(id int PRIMARY KEY)`, `CREATE TABLE plain(id int PRIMARY KEY)`,
		`CREATE TABLE normal(id int PRIMARY KEY)`)
	r.keys["table.include.list"] = "public.own"
	r.streams("own")
	ours := newest(t, client, "shop.public.own-value").Schema.Schema
	for table, versions := range map[string]int{"plain": 2, "normal": 1} {
		subject := "shop.public." + table + "-value"
		var parsed any
		if err := json.Unmarshal([]byte(strings.ReplaceAll(ours, "own", table)), &parsed); err != nil {
			t.Fatal(err)
		}
		reordered, err := json.MarshalIndent(parsed, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		byHand := put(t, client, subject, string(reordered))
		r.keys["table.include.list"] = "public." + table
		r.keys["slot.name"] = r.slot() + table
		r.worker["offset.storage.topic"] = "offsets-" + table
		r.worker["normalize.schemas"] = fmt.Sprint(table == "normal")
		r.exec("INSERT INTO " + table + " VALUES (1)")
		events := r.streams(table, `r NOT_APPLICABLE {id:1} {id:1}`)
		if v := newest(t, client, subject).Version; v != versions ||
			len(events) == 1 && (events[0].schema == byHand.ID) != (versions == 1) {
			t.Errorf("%s: version %d, want %d; by hand is %d, the record names %d", table, v, versions,
				byHand.ID, events[0].schema)
		}
	}
}

// Addresses are tried in turn, and the path is a part of each; a registry that is not where the
// address says is told from one that does not answer.
func TestRealRegistryBehindSeveralAddresses(t *testing.T) {
	r, _ := realRegistry(t)
	r.exec(`CREATE TABLE addresses(id int PRIMARY KEY)`, `INSERT INTO addresses VALUES (1)`)
	r.worker["schema.registry.url"] = "http://127.0.0.1:1/apis/ccompat/v7, " + r.url + "/"
	r.streams("addresses", `r NOT_APPLICABLE {id:1} {id:1}`)

	root, path, _ := strings.Cut(strings.TrimPrefix(r.url, "http://"), "/")
	if path != "apis/ccompat/v7" {
		t.Fatalf("the registry's path is %s", path)
	}
	r.exec(`ALTER TABLE addresses ADD v text`, `INSERT INTO addresses VALUES (2)`)
	r.worker["schema.registry.url"] = "http://" + root
	r.ends(r.start(), fault.ConfigInvalid, "http://"+root, "schema.registry.url")
}
