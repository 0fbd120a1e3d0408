package config

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// debeziumKeys are the keys of Debezium's PostgreSQL connector 3.6/3.7, by hand from its
// documentation, with stars filled in.
const debeziumKeys = `
database.hostname database.user database.password database.dbname database.port topic.prefix
tasks.max database.sslmode database.sslcert database.sslkey database.sslpassword
database.sslrootcert database.sslfactory database.tcpKeepAlive database.initial.statements
database.query.timeout.ms connection.validation.timeout.ms database.connection.factory.class
driver.socketTimeout custom.sanitize.pattern
plugin.name slot.name slot.drop.on.stop slot.failover slot.stream.params slot.max.retries
slot.retry.delay.ms publication.name publication.autocreate.mode publish.via.partition.root
replica.identity.autoset.values status.update.interval.ms xmin.fetch.interval.ms
lsn.flush.mode flush.lsn.source lsn.flush.timeout.ms lsn.flush.timeout.action
offset.mismatch.strategy internal.slot.seek.to.known.offset.on.start
internal.log.position.check.enable internal.offset.activity.monitor.interval.ms
snapshot.mode snapshot.mode.custom.name
snapshot.mode.configuration.based.snapshot.data
snapshot.mode.configuration.based.snapshot.schema
snapshot.mode.configuration.based.start.stream
snapshot.mode.configuration.based.snapshot.on.schema.error
snapshot.mode.configuration.based.snapshot.on.data.error
snapshot.isolation.mode snapshot.locking.mode snapshot.locking.mode.custom.name
snapshot.lock.timeout.ms snapshot.fetch.size snapshot.delay.ms streaming.delay.ms
snapshot.include.collection.list snapshot.select.statement.overrides
snapshot.select.statement.overrides.public.orders snapshot.query.mode
snapshot.query.mode.custom.name snapshot.tables.order.by.row.count snapshot.max.threads
snapshot.max.threads.multiplier snapshot.max.threads.multiplier.public.orders
legacy.snapshot.max.threads signal.data.collection signal.enabled.channels
signal.poll.interval.ms signal.kafka.topic signal.kafka.bootstrap.servers signal.kafka.groupId
signal.consumer.security.protocol signal.file signal.emit.failure.max.retries
signal.emit.failure.backoff.ms incremental.snapshot.chunk.size
incremental.snapshot.watermarking.strategy incremental.snapshot.allow.schema.changes read.only
heartbeat.interval.ms heartbeat.action.query topic.heartbeat.prefix topic.heartbeat.name
schema.include.list schema.exclude.list table.include.list table.exclude.list
column.include.list column.exclude.list message.key.columns column.truncate.to.20.chars
column.mask.with.12.chars column.mask.hash.SHA-256.with.salt.CzQMA0cB5K
column.mask.hash.v2.SHA-256.with.salt.CzQMA0cB5K column.propagate.source.type
datatype.propagate.source.type skip.messages.without.change skipped.operations
message.prefix.include.list message.prefix.exclude.list tombstones.on.delete
decimal.handling.mode money.fraction.digits time.precision.mode binary.handling.mode
hstore.handling.mode interval.handling.mode include.unknown.datatypes
unavailable.value.placeholder schema.refresh.mode schema.name.adjustment.mode
field.name.adjustment.mode include.schema.comments converters sourceinfo.struct.maker
provide.transaction.metadata topic.transaction transaction.metadata.factory
topic.naming.strategy topic.delimiter topic.cache.size topic.creation.default.partitions
topic.creation.default.replication.factor topic.creation.default.cleanup.policy
topic.creation.groups topic.creation.big.include
event.processing.failure.handling.mode event.converting.failure.handling.mode
errors.max.retries retriable.restart.connector.wait.ms executor.shutdown.timeout.ms
guardrail.collections.max guardrail.collections.limit.action max.batch.size max.queue.size
max.queue.size.in.bytes poll.interval.ms poll.dispatch.interval.ms queue.provider.type
query.fetch.size exactly.once.support transaction.boundary transaction.boundary.interval.ms
notification.enabled.channels notification.sink.topic.name openlineage.integration.enabled
openlineage.integration.config.file.path openlineage.integration.job.namespace
openlineage.integration.job.description openlineage.integration.job.tags
openlineage.integration.job.owners openlineage.integration.dataset.kafka.bootstrap.servers
extended.headers.enabled custom.metric.tags statistics.metrics.enabled post.processors
reselect.unavailable.values reselect.null.values reselect.use.event.key
reselect.error.handling.mode reselect.columns.include.list
name connector.class key.converter value.converter key.converter.schema.registry.url
value.converter.schema.registry.url header.converter transforms transforms.unwrap.type
predicates predicates.p.type config.action.reload errors.tolerance errors.retry.timeout
errors.retry.delay.max.ms errors.log.enable errors.log.include.messages offsets.storage.topic
producer.override.linger.ms producer.override.acks`

func TestEveryKeyOfDebeziumIsKnown(t *testing.T) {
	for _, name := range strings.Fields(debeziumKeys) {
		if _, ok := lookup(name, InConnector); !ok {
			t.Errorf("%s is not in the table", name)
		}
	}
}

func TestRowsAreWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Keys() {
		for _, scope := range []Scope{InWorker, InConnector} {
			if k.Scope&scope == 0 {
				continue
			}
			id := scope.String() + " " + k.Name
			if seen[id] {
				t.Errorf("%s has two rows", id)
			}
			seen[id] = true
		}
		if k.Scope == 0 || k.Class == 0 || k.Type == 0 {
			t.Errorf("%s has no scope, class or type", k.Name)
		}
		if !strings.HasSuffix(k.Meaning, ".") {
			t.Errorf("%s: the meaning is no sentence: %q", k.Name, k.Meaning)
		}
		if strings.HasSuffix(k.Why, ".") {
			t.Errorf("%s: the reason ends with a full stop", k.Name)
		}
		if k.Class != Supported && k.Why == "" {
			t.Errorf("%s is %s without a reason", k.Name, k.Class)
		}
		if k.Class == Supported && k.Theirs != "" && k.Theirs != k.Default && k.Why == "" &&
			!strings.HasPrefix(k.Name, "producer.override.") {
			t.Errorf("%s has another default than Debezium and does not say why", k.Name)
		}
		if k.Class == Supported && k.Type == Enum && k.Default != "" &&
			!slices.Contains(k.Enum, k.Default) {
			t.Errorf("%s: the default is none of its values", k.Name)
		}
	}
}

func TestLookupPrefersTheExactRowThenTheLongestPattern(t *testing.T) {
	for name, want := range map[string]string{
		"topic.creation.default.partitions":                "topic.creation.default.partitions",
		"topic.creation.default.cleanup.policy":            "topic.creation.default.*",
		"topic.creation.big.partitions":                    "topic.creation.*",
		"column.mask.with.3.chars":                         "column.mask.with.*.chars",
		"column.mask.hash.v2.SHA-1.with.salt.x":            "column.mask.hash.v2.*.with.salt.*",
		"producer.override.linger.ms":                      "producer.override.linger.ms",
		"producer.override.send.buffer.bytes":              "producer.override.*",
		"value.converter.schema.registry.url":              "value.converter.schema.registry.url",
		"value.converter.connect.meta.data":                "value.converter.*",
		"snapshot.select.statement.overrides.public.order": "snapshot.select.statement.overrides.*",
	} {
		if k, _ := lookup(name, InConnector); k.Name != want {
			t.Errorf("lookup(%s) = %s, want %s", name, k.Name, want)
		}
	}
	if _, ok := lookup("topic.prefix", InWorker); ok {
		t.Error("topic.prefix is known in worker")
	}
	if _, ok := lookup("column.mask.with..chars", InConnector); ok {
		t.Error("a star stands for nothing")
	}
}

func TestNearest(t *testing.T) {
	for name, want := range map[string]string{
		"table.includ.list":   "table.include.list",
		"tabel.include.list":  "table.include.list",
		"slot.nam":            "slot.name",
		"Slot.Name":           "slot.name",
		"database.pasword":    "database.password",
		"heartbeat.intervall": "",
		"xyz":                 "",
	} {
		if want == "" {
			continue
		}
		if got := nearest(name, InConnector); got != want {
			t.Errorf("nearest(%s) = %q, want %q", name, got, want)
		}
	}
	if got := nearest("qqqqqqqqqq", InConnector); got != "" {
		t.Errorf("nearest of nonsense is %q", got)
	}
}

// base is the least that a configuration needs.
func base() (worker, connector map[string]string) {
	worker = map[string]string{
		"bootstrap.servers":   "localhost:9092",
		"schema.registry.url": "http://localhost:8081",
	}
	connector = map[string]string{
		"topic.prefix":      "shop",
		"database.hostname": "localhost",
		"database.user":     "tidemark",
		"database.dbname":   "shop",
	}
	return worker, connector
}

// notDefault has a legal value that is not the default for every supported key.
var notDefault = map[string]string{
	"bootstrap.servers": "b:1", "client.id": "me", "security.protocol": "SSL",
	"ssl.endpoint.identification.algorithm": "",
	"schema.registry.url":                   "http://r:1", "basic.auth.user.info": "u:p",
	"schema.registry.basic.auth.user.info": "u:p", "bearer.auth.token": "t",
	"auto.register.schemas": "false", "normalize.schemas": "true",
	"key.subject.name.strategy":   "RecordNameStrategy",
	"value.subject.name.strategy": "RecordNameStrategy",
	"schema.registry.timeout.ms":  "700", "http.listen": "127.0.0.1:1",
	"offset.storage.topic": "o", "offset.storage.replication.factor": "2",
	"offset.storage.partitions": "3", "offset.flush.interval.ms": "17",
	"topic.prefix": "other", "database.hostname": "db", "database.port": "1",
	"database.user": "u", "database.password": "p", "database.dbname": "d",
	"database.sslmode": "require", "database.tcpKeepAlive": "false",
	"database.initial.statements": "SELECT 1", "database.query.timeout.ms": "0",
	"database.connect.timeout.ms": "101", "slot.name": "s", "slot.adopt": "true",
	"slot.takeover.timeout.ms": "1", "slot.drop.on.stop": "true", "slot.failover": "true",
	"publication.name": "p", "publication.autocreate.mode": "disabled",
	"publish.via.partition.root": "false", "status.update.interval.ms": "101",
	"heartbeat.interval.ms": "0", "heartbeat.verify.interval.ms": "0",
	"heartbeat.timeout.ms": "1001", "idle.advance.after.ms": "-1",
	"catalog.check.interval.ms": "101", "schema.include.list": "a", "schema.exclude.list": "a",
	"table.include.list": "a.b", "table.exclude.list": "a.b", "message.key.columns": "a.b:c",
	"key.text.columns": "a.b.c", "before.image.required": "a.b", "skipped.operations": "t",
	"message.prefix.include.list": "p", "message.prefix.exclude.list": "p",
	"snapshot.mode": "no_data", "primary.hostname": "primary",
	"snapshot.lock.timeout.ms": "1", "decimal.handling.mode": "string",
	"money.fraction.digits": "2", "value.unrepresentable": "fail", "schema.logical.change": "fail",
	"reselect.unavailable.values": "false", "record.too.large": "truncate",
	"tombstones.on.delete": "false", "headers.enable": "false",
	"partition.by": "serialized_key", "topic.creation.default.partitions": "3",
	"topic.creation.default.replication.factor": "3",
	"topic.creation.default.*":                  "x", "errors.max.retries": "1",
	"errors.retry.delay.max.ms": "1", "max.queue.bytes": "1048577",
	"compression.type": "zstd", "linger.ms": "6", "max.request.size": "2000000",
	"delivery.timeout.ms": "130000", "request.timeout.ms": "31000",
	"transaction.timeout.ms": "61000", "exactly.once.support": "required",
	"exactly.once.batch.bytes": "1025", "exactly.once.batch.ms": "501",
	"provide.transaction.metadata": "true", "topic.transaction": "tx",
	"column.include.list": "a.b.c", "column.exclude.list": "a.b.c",
	"column.truncate.to.*.chars": "a.b.c", "column.mask.with.*.chars": "a.b.c",
	"column.mask.hash.v2.*.with.salt.*": "a.b.c", "column.mask.hash.*.with.salt.*": "a.b.c",
}

// starred has a legal name for each key with stars.
var starred = map[string]string{
	"topic.creation.default.*":          "topic.creation.default.cleanup.policy",
	"column.truncate.to.*.chars":        "column.truncate.to.5.chars",
	"column.mask.with.*.chars":          "column.mask.with.5.chars",
	"column.mask.hash.v2.*.with.salt.*": "column.mask.hash.v2.SHA-1.with.salt.x",
	"column.mask.hash.*.with.salt.*":    "column.mask.hash.SHA-1.with.salt.x",
}

// noEffectAlone are supported keys that do nothing without others, or have one legal value; tests
// of their own hold them.
var noEffectAlone = []string{
	"sasl.mechanism", "sasl.jaas.config", "ssl.truststore.location", "ssl.truststore.type",
	"use.latest.version", "basic.auth.credentials.source", "schema.registry.ssl.truststore.location",
	"schema.registry.ssl.truststore.type", "name", "database.sslrootcert", "on.slot.gap",
	"primary.port", "primary.user", "primary.password",
}

func TestEverySupportedKeyChangesTheSettings(t *testing.T) {
	load := func(scope Scope, key, value string) *File {
		worker, connector := base()
		switch {
		case key == "":
		case scope == InWorker:
			worker[key] = value
		default:
			connector[key] = value
		}
		f, _, err := FromMaps(worker, map[string]map[string]string{"c": connector})
		if err != nil {
			t.Fatalf("%s: %s: %v", scope, key, err)
		}
		return f
	}
	plain := dump(load(InWorker, "", ""))
	used := maps.Clone(notDefault)
	for _, k := range Keys() {
		short := strings.TrimPrefix(strings.TrimPrefix(k.Name, "producer."), "override.")
		if k.Class != Supported || slices.Contains(noEffectAlone, k.Name) ||
			strings.Contains(k.Name, ".converter.") {
			continue
		}
		value, ok := notDefault[short]
		if !ok {
			t.Errorf("the test has no value for %s", k.Name)
			continue
		}
		delete(used, short)
		for _, scope := range []Scope{InWorker, InConnector} {
			if k.Scope&scope == 0 {
				continue
			}
			name := k.Name
			if n, ok := starred[name]; ok {
				name = n
			}
			if got := dump(load(scope, name, value)); cmp.Equal(got, plain) {
				t.Errorf("%s: %s: %s changes nothing", scope, k.Name, value)
			}
		}
	}
	if len(used) > 0 {
		t.Errorf("values for keys that are not supported: %v", slices.Collect(maps.Keys(used)))
	}
}
