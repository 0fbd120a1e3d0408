package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

const minimal = `worker:
  bootstrap.servers: localhost:9092
  schema.registry.url: http://localhost:8081
connectors:
  shop:
    topic.prefix: shop
    database.hostname: localhost
    database.user: tidemark
    database.dbname: shop
`

func TestLoadTakesTheContractsExample(t *testing.T) {
	dir := write(t, map[string]string{"pg": "password = s3cret\nother=x\n"})
	f, warnings, bad := loadText(t, `worker:
  bootstrap.servers: localhost:9092
  schema.registry.url: http://localhost:8081
  http.listen: 127.0.0.1:8083        # health, metrics, REST
connectors:
  shop:
    topic.prefix: shop
    database.hostname: localhost
    database.port: 5432
    database.user: tidemark
    database.password: ${file:`+dir+`/pg:password}
    database.dbname: shop
    table.include.list: public.orders, public.customers
`)
	if bad != nil || len(warnings) > 0 {
		t.Fatalf("violations %q, warnings %q", bad, warnings)
	}
	c := f.Connectors[0]
	if got := c.Database.Password.Reveal(); got != "s3cret" {
		t.Errorf("password is %q", got)
	}
	want := []string{"public.orders", "public.customers"}
	if diff := cmp.Diff(want, texts(c.Tables.TableInclude)); diff != "" {
		t.Error(diff)
	}
	if c.SlotName != "tidemark" || c.Publication != "tidemark" || c.Database.Port != 5432 ||
		c.MaxQueueBytes != 67108864 || c.OffsetFlush != time.Second || c.MoneyDigits != -1 ||
		c.HeartbeatInterval != 10*time.Second || c.Database.SSLMode != "prefer" {
		t.Errorf("defaults are not the contract's: %+v", c)
	}
}

// withWorker and withConnector add lines to the minimal file.
func withWorker(lines string) string {
	return strings.Replace(minimal, "connectors:\n", indent("  ", lines)+"connectors:\n", 1)
}

func withConnector(lines string) string { return minimal + indent("    ", lines) }

func indent(by, lines string) string {
	var b strings.Builder
	for _, line := range strings.Split(lines, "\n") {
		b.WriteString(by + line + "\n")
	}
	return b.String()
}

func TestOneViolationEach(t *testing.T) {
	t.Setenv("EMPTY_PORT", "geheim")
	c := func(lines, want string) [2]string {
		return [2]string{withConnector(lines), "t.yaml:10: connectors.shop: " + want}
	}
	w := func(lines, want string) [2]string {
		return [2]string{withWorker(lines), "t.yaml:4: worker: " + want}
	}
	for _, tc := range [][2]string{
		c("tabel.include.list: a.b",
			"tabel.include.list: unknown key: did you mean table.include.list?"),
		c("zzzzzzzzzzzzzzzz: 1",
			"zzzzzzzzzzzzzzzz: unknown key: `tidemark config keys` lists all"),
		c("bootstrap.servers: a:1",
			"bootstrap.servers: unknown here: the key belongs into worker"),
		w("slot.name: a", "slot.name: unknown here: the key belongs into a connector"),
		c("database.port: many",
			`database.port: found "many", wanted an integer from 1 to 65535`),
		c("database.port: 5432.5",
			`database.port: found "5432.5", wanted an integer from 1 to 65535`),
		c("database.port: ${env:EMPTY_PORT}",
			"database.port: found ****, wanted an integer from 1 to 65535"),
		c("heartbeat.interval.ms: -1",
			`heartbeat.interval.ms: found "-1", wanted an integer of ms from 0 to 86400000`),
		c("slot.adopt: yes", `slot.adopt: found "yes", wanted true or false`),
		c("slot.adopt: [true]", `slot.adopt: found "true", wanted one plain value`),
		c("slot.name: {a: b}",
			"slot.name: found a map, wanted a plain value; keys are written with dots: a.b.c"),
		c("slot.name:",
			`slot.name: found no value; remove the key, or write "" for an empty value`),
		c("slot.name: Shop", `slot.name: found "Shop", wanted 1 to 63 of a-z, 0-9 and underscore`),
		c("slot.name: "+strings.Repeat("a", 64), `slot.name: found "`+strings.Repeat("a", 64)+
			`", wanted 1 to 63 of a-z, 0-9 and underscore`),
		c("publication.name: "+strings.Repeat("a", 64), `publication.name: found "`+
			strings.Repeat("a", 64)+`", wanted 1 to 63 bytes`),
		c("table.include.list: a.(b",
			"table.include.list: found \"a.(b\", wanted a regular expression (RE2 syntax); "+
				"missing closing ): `a.(b`"),
		c("table.include.list: ''", "table.include.list: found an empty list, wanted at least one "+
			"expression; remove the key to capture everything"),
		c("skipped.operations: t,x",
			`skipped.operations: found "x", wanted some of c, u, d and t; or none alone`),
		c("skipped.operations: none,t",
			`skipped.operations: found "none", wanted some of c, u, d and t; or none alone`),
		c("message.key.columns: a.b", `message.key.columns: found "a.b", wanted `+
			"TABLE:COLUMN,COLUMN;...; there is no colon behind the table"),
		c("message.key.columns: a.b:c,c", `message.key.columns: found "a.b:c,c", wanted `+
			"TABLE:COLUMN,COLUMN;...; a column is empty or comes twice"),
		c("name: other", `name: found "other", wanted the connector's name, "shop"`),
		c("database.password: ${env:TIDEMARK_NO_SUCH}", "database.password: "+
			"${env:TIDEMARK_NO_SUCH}: the environment variable is not set"),
		c("database.password: ${file:/no/such/file:k}", "database.password: "+
			"${file:/no/such/file:k}: cannot be read: no such file or directory"),
		c("database.password: ${vault:x:y}", "database.password: ${vault:x:y}: there is no "+
			"provider of this name: use env or file"),
		c("plugin.name: decoderbufs", `plugin.name: found "decoderbufs"; refused: pgoutput is in `+
			"every server: set pgoutput or remove the key"),
		c("snapshot.mode: when_needed", `snapshot.mode: found "when_needed"; refused: not in this `+
			"version: set initial; when history is missing the connector stops and says so"),
		c("snapshot.mode: sometimes", `snapshot.mode: found "sometimes", wanted initial, no_data, `+
			"never or initial_only"),
		c("exactly.once.support: always", `exactly.once.support: found "always", wanted disabled, `+
			"requested or required"),
		c("on.slot.gap: repair", `on.slot.gap: found "repair", wanted fail or resnapshot`),
		c("value.converter: org.apache.kafka.connect.json.JsonConverter", "value.converter: found "+
			`"org.apache.kafka.connect.json.JsonConverter"; refused: `+converterFix),
		c("errors.tolerance: all", `errors.tolerance: found "all"; refused: leaving out an event `+
			"is losing it: set none or remove the key"),
		c("producer.override.acks: 1", `producer.override.acks: found "1"; refused: only all is `+
			"safe: less would acknowledge to PostgreSQL what a broker can lose"),
		c("producer.override.sasl.jaas.config: x", "producer.override.sasl.jaas.config: found "+
			"****; refused: "+oneIdentity),
		c("producer.override.delivery.timeout.ms: 30000", "producer.override.delivery.timeout.ms: "+
			"found 30000, wanted at least linger.ms and request.timeout.ms together, 30005"),
		c("topic.creation.default.partitions: 0",
			`topic.creation.default.partitions: found "0", wanted -1 or a number from 1`),
		w("producer.enable.idempotence: false", `producer.enable.idempotence: found "false"; `+
			"refused: order per key rests on it: remove the key"),
		w("http.listen: everywhere", `http.listen: found "everywhere", wanted host:port`),
		w("ssl.truststore.type: JKS", `ssl.truststore.type: found "JKS", wanted PEM`),
		w("ssl.truststore.location: /no/such", `ssl.truststore.location: found "/no/such", wanted `+
			"a file of certificates; the file cannot be read: no such file or directory"),
		w("sasl.mechanism: GSSAPI",
			`sasl.mechanism: found "GSSAPI", wanted PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512`),
		w("basic.auth.user.info: '${env:EMPTY_PORT}'",
			"basic.auth.user.info: found ****, wanted user:password"),
	} {
		_, _, got := loadText(t, tc[0])
		if diff := cmp.Diff([]string{tc[1]}, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}

func TestBrokenFiles(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "connectors: there is no connector",
		"worker: [":                     "not YAML: ",
		"worker: 1":                     "worker: wanted a map of keys and values",
		"- a":                           "wanted a map with the keys worker and connectors",
		"a: 1\n---\nb: 2\n":             "a second document in one file",
		"connectors: {a: 1}":            "connectors: a: wanted a map of keys and values",
		"slot.name: x":                  "stand in connectors, under the connector's name",
		"bootstrap.servers: x":          "a worker's keys stand in worker",
		"wroker: {}":                    "unknown: the file holds worker and connectors",
		strings.Repeat("[", 200):        "too deeply nested",
		strings.Repeat("- ", 200) + "a": "too deeply nested",
		"a: *b":                         "alias of an anchor",
		strings.Repeat("x", 1<<20+1):    "larger than 1048576 bytes",
	} {
		_, _, got := loadText(t, text)
		if !strings.Contains(strings.Join(got, "\n"), want) {
			t.Errorf("%.20q: %q, want %q", text, got, want)
		}
	}
	_, _, err := Load("/no/such/file.yaml", nil)
	if fault.CodeOf(err) != fault.ConfigInvalid ||
		!strings.Contains(err.Error(), "/no/such/file.yaml: the file cannot be read") {
		t.Errorf("a missing file: %v", err)
	}
}

func TestAllViolationsAtOnce(t *testing.T) {
	// What is wrong in several files and sections comes in one error; the order is the files'.
	dir := write(t, map[string]string{"x.json": `{"name": "x", "config": {
  "topic.prefix": "shop",
  "slot.nmae": 1}}`})
	text, err := os.ReadFile("testdata/wrong.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir2 := write(t, map[string]string{"wrong.yaml": string(text)})
	_, warnings, err := Load(filepath.Join(dir2, "wrong.yaml"), []string{filepath.Join(dir, "x.json")})
	got := err.Error() + "\n\nwarnings:\n" + strings.Join(lines(dir2, warnings), "\n") + "\n"
	for _, d := range []string{dir, dir2} {
		got = strings.ReplaceAll(got, d+string(filepath.Separator), "")
	}
	golden(t, "testdata/wrong.golden", got)
}

func TestDebeziumsJSONIsTakenAsItIs(t *testing.T) {
	t.Setenv("PG_PASSWORD", "pw")
	dir := write(t, map[string]string{"w.yaml": "worker:\n  bootstrap.servers: b:9092\n"})
	f, warnings, err := Load(filepath.Join(dir, "w.yaml"), []string{"testdata/debezium.json"})
	if err != nil {
		t.Fatal(err)
	}
	c := f.Connectors[0]
	if c.Name != "inventory" || c.SlotName != "debezium" || c.Publication != "dbz_publication" ||
		c.Database.Password.Reveal() != "pw" || c.Database.SSLMode != "verify-full" ||
		f.Worker.Registry.URLs[0] != "http://registry:8081" || c.TopicCreation.Partitions != 6 ||
		c.TopicCreation.Configs["cleanup.policy"] != "compact" ||
		c.Producer.Compression != "lz4" || !c.SkippedOperations['t'] {
		t.Errorf("settings: %+v %+v", f.Worker.Registry, *c)
	}
	golden(t, "testdata/debezium.golden", strings.Join(lines(dir, warnings), "\n")+"\n")
}

func TestJSONFiles(t *testing.T) {
	connector := `"topic.prefix": "%s", "database.hostname": "db", "database.user": "u",
		"database.dbname": "d", "slot.name": "%s", "publication.name": "%s"`
	fill := func(name string) string { return strings.ReplaceAll(connector, "%s", name) }
	dir := write(t, map[string]string{
		"w.yaml":    "worker: {bootstrap.servers: 'b:1', schema.registry.url: 'http://r:1'}",
		"flat.json": `{"name": "flat", "database.port": 5433, ` + fill("flat") + `}`,
		"nest.json": `{"name": "nest", "config": {"name": "nest", ` + fill("nest") +
			`, "slot.adopt": true, "database.password": "\ud83d\ude00\/"}, "tasks": [], "type": "source"}`,
		"none.json": `{"config": {}}`,
		"dup.json":  `{"name": "dup", "slot.adopt": true, "slot.adopt": true, ` + fill("dup") + `}`,
		"two.json":  `{"name": "flat", ` + fill("two") + `}`,
	})
	load := func(names ...string) (*File, []string) {
		for i := range names {
			names[i] = filepath.Join(dir, names[i])
		}
		f, _, err := Load(filepath.Join(dir, "w.yaml"), names)
		return f, violations(dir, err)
	}
	f, bad := load("nest.json", "flat.json")
	if bad != nil {
		t.Fatal(bad)
	}
	if f.Connectors[0].Name != "flat" || f.Connectors[0].Database.Port != 5433 ||
		f.Connectors[1].Name != "nest" || !f.Connectors[1].SlotAdopt ||
		f.Connectors[1].Database.Password.Reveal() != "😀/" {
		t.Errorf("%+v %+v", *f.Connectors[0], *f.Connectors[1])
	}
	if _, bad = load("none.json"); !slices.Contains(bad, `none.json:1: the connector has no "name"`) {
		t.Errorf("without name: %q", bad)
	}
	if _, bad = load("dup.json"); !slices.Contains(bad, "dup.json:1: connectors.dup: slot.adopt: "+
		"given twice, first in line 1: remove one") {
		t.Errorf("duplicate key: %q", bad)
	}
	if _, bad = load("flat.json", "two.json"); !slices.Contains(bad, "two.json:1: connectors.flat: "+
		"a connector of this name is there already ("+filepath.Join(dir, "flat.json")+
		":1): rename one") && !strings.Contains(strings.Join(bad, ""), "is there already") {
		t.Errorf("two of one name: %q", bad)
	}
	if _, bad = load("w.yaml"); !strings.Contains(strings.Join(bad, ""), "is given with -c") {
		t.Errorf("a YAML file as connector: %q", bad)
	}
}

func TestTwoConnectorsMustNotShare(t *testing.T) {
	worker, a := base()
	_, b := base()
	b["database.dbname"] = "other" // slots belong to the server, not to a database
	_, _, err := FromMaps(worker, map[string]map[string]string{"a": a, "b": b})
	want := []string{
		`connectors.b: topic.prefix: found topic prefix shop, wanted one of its own; connector a ` +
			`has the same: set another topic.prefix in one of them`,
		`connectors.b: slot.name: found slot tidemark on localhost:5432, wanted one of its own; ` +
			`connector a has the same: set another slot.name in one of them`,
	}
	if diff := cmp.Diff(want, violations("", err)); diff != "" {
		t.Error(diff)
	}
	b["topic.prefix"], b["slot.name"], b["database.dbname"] = "b", "b", "shop"
	_, _, err = FromMaps(worker, map[string]map[string]string{"a": a, "b": b})
	want = []string{`connectors.b: publication.name: found publication tidemark on ` +
		`localhost:5432/shop, wanted one of its own; connector a has the same: set another ` +
		`publication.name in one of them`}
	if diff := cmp.Diff(want, violations("", err)); diff != "" {
		t.Error(diff)
	}
	b["publication.name"] = "b"
	if _, _, err = FromMaps(worker, map[string]map[string]string{"a": a, "b": b}); err != nil {
		t.Error(err)
	}
}

func TestAnchorsAndMergesOfYAML(t *testing.T) {
	f, _, bad := loadText(t, `worker:
  {bootstrap.servers: ['a:1', 'b:2'], schema.registry.url: "http://r:1"}
connectors:
  one: &one
    topic.prefix: one
    database.hostname: &host db
    database.user: u
    database.dbname: d
    table.include.list:
      - public.t{1,3}
      - public.b
  two:
    <<: *one
    topic.prefix: two
    database.hostname: *host
    slot.name: two
    publication.name: two
`)
	if bad != nil {
		t.Fatal(bad)
	}
	if got := f.Worker.Kafka.Bootstrap; !slices.Equal(got, []string{"a:1", "b:2"}) {
		t.Errorf("brokers %q", got)
	}
	two := f.Connectors[1]
	if two.TopicPrefix != "two" || two.Database.Host != "db" || two.Database.User != "u" {
		t.Errorf("merged: %+v", two)
	}
	want := []string{"public.t{1,3}", "public.b"}
	if got := texts(two.Tables.TableInclude); !slices.Equal(got, want) {
		t.Errorf("tables %q", got)
	}
}

func TestNothingMakesLoadPanic(t *testing.T) {
	dir := t.TempDir()
	yaml, json := filepath.Join(dir, "a.yaml"), filepath.Join(dir, "a.json")
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
		if rapid.Bool().Draw(t, "shaped") {
			text = []byte(shapes().Draw(t, "yaml"))
		}
		for _, file := range []string{yaml, json} {
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, _, err := Load(yaml, []string{json})
		if err != nil && fault.CodeOf(err) != fault.ConfigInvalid {
			t.Fatalf("an error without the code: %v", err)
		}
	})
}

// shapes draws texts that are nearly YAML configurations.
func shapes() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		parts := []string{
			"worker:", "connectors:", "\n", "\n  ", "\n    ", "a: ", "shop:", "slot.name: ", "&x ",
			"*x", "<<: ", "- ", "[", "]", "{", "}", "\"", "'", "|", ">", "${env:X}", "${", "null",
			"1e9", "0x1", "? ", ": ", "!!str ", "---", "#", ",", "name", "config", "é", "\x00",
			"table.include.list: ", "(", "\\", "transforms: ", "topic.prefix: ",
		}
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 40).Draw(t, "parts"), "")
	})
}

func TestGeneratedDocuments(t *testing.T) {
	golden(t, "../docs/configuration.md", Reference())
	schema, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/schema.json", string(schema)+"\n")
	keys, err := json.MarshalIndent(Keys(), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/keys.json", string(keys)+"\n")
}
