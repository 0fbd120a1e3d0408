package config

// registryKeys say how the schema registry is reached. A connector may carry them as Connect's
// converters do; see connectKeys.
var registryKeys = []Key{
	{
		Name: "schema.registry.url", Scope: InWorker, Class: Supported, Type: List, Required: true,
		Meaning: "Addresses of one schema registry with Confluent's API, tried in turn; a path " +
			"is kept. Taken from value.converter.schema.registry.url of the connectors when " +
			"worker has none.",
	},
	{
		Name: "basic.auth.credentials.source", Scope: InWorker, Class: Supported, Type: Enum,
		Default: "USER_INFO", Theirs: "URL", Enum: []string{"USER_INFO", "URL", "SASL_INHERIT"},
		Meaning: "Where the registry's user and password come from.",
		Why:     "URL works too when the address holds them; USER_INFO keeps them out of it",
	},
	{
		Name: "basic.auth.user.info", Scope: InWorker, Class: Supported, Type: SecretText,
		Meaning: "user:password for the registry.",
	},
	{
		Name: "schema.registry.basic.auth.user.info", Scope: InWorker, Class: Supported,
		Type: SecretText, Meaning: "The same under Confluent's longer name.",
	},
	{
		Name: "bearer.auth.token", Scope: InWorker, Class: Supported, Type: SecretText,
		Meaning: "Bearer token for the registry, in place of user and password.",
	},
	accepted(InWorker, "bearer.auth.credentials.source", "STATIC_TOKEN",
		"Where the token comes from.", "bearer.auth.token is the only source", "STATIC_TOKEN"),
	{
		Name: "schema.registry.ssl.truststore.location", Scope: InWorker, Class: Supported,
		Type: Path,
		Meaning: "File of the certificate authorities (PEM) that vouch for the registry; " +
			"without it the system's.",
	},
	{
		Name: "schema.registry.ssl.truststore.type", Scope: InWorker, Class: Supported,
		Type: Enum, Default: "PEM", Theirs: "JKS", Enum: []string{"PEM"},
		Meaning: "Format of that file.", Why: "Java's own formats need Java",
	},
	ignored(InWorker, "schema.registry.ssl.truststore.password", "", "Its password.",
		"a PEM file of certificates has none"),
	{
		Name: "schema.registry.ssl.keystore.*", Scope: InWorker, Class: Refused,
		Type: SecretText, Later: true, Meaning: "Client certificate for the registry.",
		Why: "client certificates are not in this version: use basic.auth.user.info",
	},
	{
		Name: "auto.register.schemas", Scope: InWorker, Class: Supported, Type: Boolean,
		Default: "true", Theirs: "true",
		Meaning: "Whether schemas are registered. With false each subject must have them, those of " +
			"the topics of transactions and of Tidemark's own events too; else schema_rejected.",
	},
	{
		Name: "use.latest.version", Scope: InWorker, Class: Supported, Type: Boolean,
		Default: "false", Theirs: "false",
		Meaning: "Without auto.register.schemas: name a subject's latest version in the records, " +
			"when it differs from the events' schema in defaults, documentation and properties " +
			"only; else schema_rejected with the difference.",
	},
	{
		Name: "normalize.schemas", Scope: InWorker, Class: Supported, Type: Boolean,
		Default: "false", Theirs: "false",
		Meaning: "Have the registry compare and store schemas in their normal form.",
	},
	strategyKey("key"),
	strategyKey("value"),
	{
		Name: "schema.registry.timeout.ms", Scope: InWorker, Class: Supported, Type: Duration,
		Default: "10000", Bounds: &Bounds{100, 600_000},
		Meaning: "How long one request to the registry may take.",
	},
}

const strategyPackage = "io.confluent.kafka.serializers.subject."

func strategyKey(what string) Key {
	return Key{
		Name: what + ".subject.name.strategy", Scope: InWorker, Class: Supported, Type: Enum,
		Default: topicNameStrategy, Theirs: topicNameStrategy,
		Enum: []string{
			topicNameStrategy, recordNameStrategy, topicRecordNameStrategy,
			strategyPackage + topicNameStrategy, strategyPackage + recordNameStrategy,
			strategyPackage + topicRecordNameStrategy,
		},
		Meaning: "Subjects of " + what + " schemas: TOPIC-" + what + ", the record's full name, or " +
			"both joined by a hyphen.",
	}
}

// workerKeys are tidemark's own settings of the process.
var workerKeys = []Key{
	{
		Name: "http.listen", Scope: InWorker, Class: Supported, Type: Text,
		Default: "127.0.0.1:8083",
		Meaning: "Where /healthz, /readyz and /metrics answer, host:port; empty: nowhere. " +
			"There is no login: other hosts than loopback only behind something that has one.",
	},
	{
		Name: "offset.storage.topic", Scope: InWorker, Class: Supported, Type: Text,
		Default: "tidemark-offsets", Theirs: "connect-offsets",
		Meaning: "Compacted topic that holds each connector's position, in Connect's format.",
		Why:     "sharing a topic with a Connect cluster must be somebody's decision",
	},
	{
		Name: "offset.storage.replication.factor", Scope: InWorker, Class: Supported,
		Type: Integer, Default: "-1", Theirs: "3", Bounds: &Bounds{-1, 32767},
		Meaning: "Replicas of the offsets topic when tidemark makes it; -1 is the broker's default.",
		Why:     "a broker's default fits its number of brokers, 3 fails on one",
	},
	{
		Name: "offset.storage.partitions", Scope: InWorker, Class: Supported, Type: Integer,
		Default: "1", Theirs: "25", Bounds: &Bounds{1, 10_000},
		Meaning: "Partitions of the offsets topic when tidemark makes it.",
		Why:     "a position is a small record a second; one partition is read fastest at start",
	},
	{
		Name: "offset.flush.interval.ms", Scope: Both, Class: Supported, Type: Duration,
		Default: "1000", Theirs: "60000", Bounds: &Bounds{1, 3_600_000},
		Meaning: "At most one stored position per interval, and one at once when the stream " +
			"goes quiet. In worker: the connectors' default.",
		Why: "after a crash this much is sent again, and the server keeps its WAL that long",
	},
}

const (
	noCluster = "the process is no member of a Connect cluster"
	noREST    = "connectors are defined by the file; http.listen is the listener"
)

// connectWorkerKeys are keys that stand in a Kafka Connect worker's properties.
var connectWorkerKeys = []Key{
	ignored(InWorker, "group.id", "", "Group of Connect workers.", noCluster),
	ignored(InWorker, "config.storage.*", "", "Topic of connector configurations.", noCluster),
	ignored(InWorker, "status.storage.*", "", "Topic of connector states.", noCluster),
	ignored(InWorker, "offset.storage.file.filename", "", "Offsets file of a standalone worker.",
		"positions are in offset.storage.topic, where they outlive the machine"),
	ignored(InWorker, "offset.storage.*", "", "Settings of the offsets topic.",
		"it is made with cleanup.policy=compact, which is all that it needs"),
	ignored(InWorker, "offset.flush.timeout.ms", "5000", "Limit of one flush.",
		"a position is stored by a producer, with its delivery timeout"),
	ignored(InWorker, "plugin.path", "", "Java plug-ins.", "there are none"),
	ignored(InWorker, "plugin.discovery", "hybrid_warn", "Java plug-ins.", "there are none"),
	ignored(InWorker, "listeners", "http://:8083", "REST listeners.", noREST),
	ignored(InWorker, "listeners.*", "", "TLS of REST listeners.", noREST),
	ignored(InWorker, "rest.*", "", "REST settings.", noREST),
	ignored(InWorker, "admin.listeners", "", "REST listeners.", noREST),
	ignored(InWorker, "admin.listeners.*", "", "REST listeners.", noREST),
	ignored(InWorker, "access.control.*", "", "Cross-origin requests.", noREST),
	ignored(InWorker, "response.http.headers.config", "", "REST answers.", noREST),
	ignored(InWorker, "session.timeout.ms", "10000", "Group membership.", noCluster),
	ignored(InWorker, "heartbeat.interval.ms", "3000", "Group membership.",
		noCluster+"; a connector's heartbeat.interval.ms belongs into the connector"),
	ignored(InWorker, "rebalance.timeout.ms", "60000", "Group membership.", noCluster),
	ignored(InWorker, "worker.*", "", "Group membership.", noCluster),
	ignored(InWorker, "inter.worker.*", "", "Group membership.", noCluster),
	ignored(InWorker, "connect.protocol", "sessioned", "Group membership.", noCluster),
	ignored(InWorker, "scheduled.rebalance.max.delay.ms", "300000", "Group membership.",
		noCluster),
	ignored(InWorker, "task.shutdown.graceful.timeout.ms", "5000", "Limit of shutting down.",
		"a stop ends when what is confirmed is stored, or the process is killed"),
	ignored(InWorker, "connector.client.config.override.policy", "All",
		"Which overrides a connector may have.", "producer.override.* names what can be set"),
	ignored(InWorker, "topic.tracking.*", "", "Which topics a connector used.", noREST),
	ignored(InWorker, "config.providers", "", "Names of Java secret providers.",
		"${env:...} and ${file:...} are built in"),
	ignored(InWorker, "config.providers.*", "", "Java secret providers.",
		"${env:...} and ${file:...} are built in"),
	ignored(InWorker, "metric.reporters", "", "Java metrics.", "/metrics has them"),
	ignored(InWorker, "metrics.*", "", "Java metrics.", "/metrics has them"),
	ignored(InWorker, "auto.include.jmx.reporter", "true", "Java metrics.", "/metrics has them"),
	ignored(InWorker, "internal.*", "", "Connect's internals.", "there is no Connect here"),
	ignored(InWorker, "consumer.*", "", "Consumers of sink connectors.",
		"there are no sinks, and the offsets topic needs no tuning"),
	ignored(InWorker, "admin.*", "", "Admin clients.",
		"all clients are set up by the keys without prefix"),
	accepted(InWorker, "exactly.once.source.support", "disabled",
		"Whether the worker allows exactly-once sources.",
		"a connector's exactly.once.support decides alone", "disabled"),
	{
		Name: "topic.creation.enable", Scope: InWorker, Class: Refused, Type: Boolean,
		Theirs: "true", Same: []string{"true"}, Later: true,
		Meaning: "Whether missing topics are made.",
		Why: "missing topics are always made in this version: make them beforehand, " +
			"and forbid the user CREATE on the brokers",
	},
}
