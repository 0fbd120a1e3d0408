package connector_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// The subjects are those of the strategies; schemas that nobody registers must be there, and a
// version that differs in documentation only is named in the records.
func TestSubjectsAndSchemasThatAreNotRegistered(t *testing.T) {
	t.Parallel()
	r := newRig(t, "18")
	r.exec("CREATE TABLE t (id int PRIMARY KEY)")
	r.extra["key.converter.key.subject.name.strategy"] = "RecordNameStrategy"
	r.extra["value.converter.value.subject.name.strategy"] = "io.confluent.kafka.serializers." +
		"subject.TopicRecordNameStrategy"
	run := r.start()
	r.streaming(run)
	r.exec("INSERT INTO t VALUES (1)")
	r.read("shop.public.t", 1)
	r.clean(run)
	reg, err := sr.NewClient(sr.URLs(r.registry.URL))
	if err != nil {
		t.Fatal(err)
	}
	subjects, err := reg.Subjects(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(subjects)
	const key, value = "shop.public.t.Key", "shop.public.t-shop.public.t.Envelope"
	same(t, subjects, []string{value, key})

	// A column more: its schema is not registered by us.
	r.extra["key.converter.auto.register.schemas"] = "false"
	r.exec("ALTER TABLE t ADD v text", "INSERT INTO t VALUES (2, 'x')")
	contains(t, code(t, r.start().ended(t), fault.SchemaRejected), "subject "+value+" does not have",
		"tidemark explain --schemas")
	r.extra["value.converter.use.latest.version"] = "true"
	contains(t, code(t, r.start().ended(t), fault.SchemaRejected), "version 1 of subject "+value,
		"field v is written, and not registered")

	latest, err := reg.SchemaByVersion(t.Context(), value, -1)
	if err != nil {
		t.Fatal(err)
	}
	const id = `{"name":"id","type":["null","int"],"default":null,"pg_type":"integer"}`
	text := strings.Replace(latest.Schema.Schema, id, id+
		`,{"name":"v","type":["null","string"],"default":null,"doc":"by hand"}`, 1)
	made, err := reg.CreateSchema(t.Context(), value, sr.Schema{Schema: text})
	if err != nil || made.Version != 2 {
		t.Fatalf("version %d, %v", made.Version, err)
	}
	run = r.start()
	r.streaming(run)
	r.until("the row is there", func() bool { return len(r.all("shop.public.t")) == 2 })
	r.clean(run)
	slices.Sort(subjects)
	if got := r.all("shop.public.t"); !slices.Contains(lines(got), "c NOT_APPLICABLE {id:2} {id:2 v:x}") {
		t.Errorf("events: %v", lines(got))
	}
	if again, err := reg.SchemaByVersion(t.Context(), value, -1); err != nil || again.Version != 2 {
		t.Errorf("version %d is registered, %v", again.Version, err)
	}
}
