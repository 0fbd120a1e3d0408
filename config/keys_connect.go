package config

const (
	noReshape = "no Java class can be loaded: reshape events downstream, and remove the keys"
	metrics   = "/metrics has them, for Prometheus"
	lineage   = "no lineage is reported, and no event depends on it"
)

// extensionKeys are about notifications, metrics and plug-ins.
var extensionKeys = []Key{
	notYet("notification.enabled.channels", "", "Where progress is told.",
		"there is no notification topic in this version: remove the key; /readyz and /metrics "+
			"tell the progress", "log", "jmx", "log,jmx", "jmx,log"),
	ignored(InConnector, "notification.sink.topic.name", "", "Topic for progress.",
		"there is no notification topic"),
	ignored(InConnector, "openlineage.integration.*", "", "OpenLineage.", lineage),
	ignored(InConnector, "custom.metric.tags", "", "Tags of JMX metrics.", metrics),
	ignored(InConnector, "statistics.metrics.enabled", "true", "Quantiles of the lag.",
		"tidemark_commit_to_ack_seconds is a histogram"),
	refused("post.processors", "", "Java classes that change events.", noReshape),
}

const avroConverter = "io.confluent.connect.avro.AvroConverter"

const converterFix = "keys and values are Avro in Confluent's wire format: set " + avroConverter +
	" with its schema.registry.url, or remove the key"

// connectKeys are Connect's keys of a connector's configuration.
var connectKeys = append([]Key{
	accepted(InConnector, "tasks.max", "1", "Tasks of the connector.",
		"one connector reads one slot in one task", "1"),
	accepted(InConnector, "tasks.max.enforce", "true", "Tasks of the connector.",
		"one connector reads one slot in one task", "true"),
	converterClass("key.converter"),
	converterClass("value.converter"),
	accepted(Both, "header.converter", "org.apache.kafka.connect.storage.SimpleHeaderConverter",
		"Java class for headers.", "headers are plain text",
		"org.apache.kafka.connect.storage.SimpleHeaderConverter",
		"org.apache.kafka.connect.storage.StringConverter"),
	ignored(Both, "header.converter.*", "", "Options of it.", "headers are plain text"),
	refused("transforms", "", "Java classes that change records.", noReshape),
	refused("predicates", "", "Java classes that choose records.", noReshape),
	ignored(InConnector, "predicates.*", "", "Options of a predicate.",
		"predicates only serve transforms"),
	ignored(InConnector, "transforms.*", "", "Options of a transform.",
		"without transforms they have no effect"),
	ignored(InConnector, "config.action.reload", "restart", "Restart when a secret changes.",
		"secrets are read at start"),
	{
		Name: "offsets.storage.topic", Scope: InConnector, Class: Refused, Type: Text,
		Later: true, Meaning: "Offsets topic of one connector.",
		Why: "all connectors share the worker's offset.storage.topic in this version: set it there",
	},
	ignored(InConnector, "auto.create.topics.enable", "", "A broker's key.",
		"topics are made by topic.creation.default.*"),
}, append(converterKeys("key.converter"), converterKeys("value.converter")...)...)

// converterClass is the row of key.converter or value.converter.
func converterClass(name string) Key {
	return Key{
		Name: name, Scope: Both, Class: Refused, Type: Text,
		Same: []string{avroConverter}, Meaning: "Java class that writes records.",
		Why: converterFix,
	}
}

// converterKeys are the options of Confluent's Avro converter under a prefix. The supported ones
// stand in for worker's keys of the registry that are not given.
func converterKeys(prefix string) []Key {
	onlyOne := "Stands in for worker's key of that name when it is not given. All connectors " +
		"share one registry."
	in := func(name string, t Type) Key {
		return Key{
			Name: prefix + "." + name, Scope: Both, Class: Supported, Type: t, Meaning: onlyOne,
		}
	}
	no := func(name, theirs, meaning, why string, same ...string) Key {
		k := refused(prefix+"."+name, theirs, meaning, why, same...)
		k.Scope = Both
		return k
	}
	return []Key{
		in("schema.registry.url", List),
		in("basic.auth.credentials.source", Text),
		in("basic.auth.user.info", SecretText),
		in("schema.registry.basic.auth.user.info", SecretText),
		in("bearer.auth.token", SecretText),
		in("schema.registry.ssl.truststore.location", Path),
		in("auto.register.schemas", Boolean),
		in("use.latest.version", Boolean),
		in("normalize.schemas", Boolean),
		in("key.subject.name.strategy", Text),
		in("value.subject.name.strategy", Text),
		no("use.schema.id", "-1", "Whether to write with another schema.", "a schema's id follows "+
			"from the table: remove the key, or set use.latest.version", "-1"),
		ignored(Both, prefix+".*", "", "Any other option of a converter.",
			"the envelope's schemas are fixed by contract"),
	}
}

// formerKeys are names that Debezium had once, or that other connectors of it have.
var formerKeys = []Key{
	former("database.server.name", "topic.prefix"),
	former("schema.whitelist", "schema.include.list"),
	former("schema.blacklist", "schema.exclude.list"),
	former("table.whitelist", "table.include.list"),
	former("table.blacklist", "table.exclude.list"),
	former("column.whitelist", "column.include.list"),
	former("column.blacklist", "column.exclude.list"),
	former("slot.drop_on_stop", "slot.drop.on.stop"),
	former("toasted.value.placeholder", "unavailable.value.placeholder"),
	former("sanitize.field.names", "field.name.adjustment.mode"),
	ignored(InConnector, "database.history.*", "", "DDL history of other databases.",
		"the stream announces each table's shape"),
	ignored(InConnector, "schema.history.internal.*", "", "DDL history of other databases.",
		"the stream announces each table's shape"),
}

func former(name, now string) Key {
	return refused(name, "", "Former name of "+now+".", "it is called "+now+" now: rename the key")
}
