package config

// valueKeys are about types and schemas.
var valueKeys = []Key{
	{
		Name: "decimal.handling.mode", Scope: InConnector, Class: Supported, Type: Enum,
		Default: "precise", Theirs: "precise", Enum: []string{"precise", "string", "double"},
		Meaning: "numeric(p,s) as Avro decimal, text or double. numeric without (p,s) is text " +
			"under precise.",
	},
	{
		Name: "money.fraction.digits", Scope: InConnector, Class: Supported, Type: Integer,
		Theirs: "2", Bounds: &Bounds{0, 18},
		Meaning: "Digits after the point of money; without it the database's own number " +
			"(lc_monetary) is asked for.",
		Why: "2 is wrong by powers of ten where the currency has another number",
	},
	{
		Name: "value.unrepresentable", Scope: InConnector, Class: Supported, Type: Enum,
		Default: "flag", Enum: []string{"flag", "fail"},
		Meaning: "A value that its Avro type cannot hold: null and a column state with the " +
			"text, or stop.",
	},
	{
		Name: "record.too.large", Scope: InConnector, Class: Supported, Type: Enum,
		Default: "fail", Enum: []string{"fail", "truncate"},
		Meaning: "An event larger than max.request.size or the topic's max.message.bytes: stop with " +
			"record_too_large, or leave out the old row as a whole (before_image is then KEY), and then " +
			"the longest values of the new row, never those of the key: null, with the column state " +
			"UNAVAILABLE and the text \"left out: N bytes\". An event that is still too large stops.",
	},
	{
		Name: "schema.logical.change", Scope: InConnector, Class: Supported, Type: Enum,
		Default: "warn", Enum: []string{"warn", "fail"},
		Meaning: "A column's Avro type, logical type, precision or scale is not what the subject's " +
			"version before says, though the registry may take it: warn tells it in the log, in a " +
			"metric and on the topic PREFIX.tidemark-events; fail stops before the first such event.",
	},
	{
		Name: "reselect.unavailable.values", Scope: InConnector, Class: Supported, Type: Boolean,
		Theirs: "true", Default: "true",
		Meaning: "Whether to re-read a row whose unchanged TOAST values the log did not carry; " +
			"without it, and where a row cannot be had any more, they are null with the column state " +
			"UNAVAILABLE.",
	},
	ignored(InConnector, "reselect.*", "", "Other options of re-reading.",
		"rows are re-read by the replica identity, for values that the log did not carry only"),
	refused("time.precision.mode", "adaptive", "Units of date and time types.",
		"every time is in microseconds with an Avro logical type: set microseconds or remove "+
			"the key, and look at consumers of timestamp(0) to timestamp(3)", "microseconds"),
	refused("binary.handling.mode", "bytes", "How bytea is written.",
		"bytea is Avro bytes: set bytes or remove the key", "bytes"),
	refused("hstore.handling.mode", "json", "How hstore is written.",
		"hstore is an Avro map: set map or remove the key", "map"),
	refused("interval.handling.mode", "numeric", "How interval is written.",
		"an interval is ISO 8601 text, months, days and time each kept: set string or remove "+
			"the key", "string"),
	refused("include.unknown.datatypes", "false", "Columns of unknown types, as bytes.",
		"they are always there, as PostgreSQL's text: set false or remove the key", "false"),
	refused("unavailable.value.placeholder", "__debezium_unavailable_value",
		"Text in place of a TOAST value that the log did not carry.",
		"such a value is null with the column state UNAVAILABLE: remove the key, and read "+
			"column_states"),
	ignored(InConnector, "schema.refresh.mode", "columns_diff", "When to ask for schemas again.",
		"the stream announces each table's shape before it is used"),
	accepted(InConnector, "schema.name.adjustment.mode", "none", "Illegal characters in the "+
		"names of schemas.",
		"names that Avro allows stay as they are in every mode; others are escaped as _xHHHH_",
		"none"),
	refused("field.name.adjustment.mode", "none", "Illegal characters in the names of columns.",
		"they are escaped as _xHHHH_, so that two columns never share a field: remove the key",
		"none"),
	accepted(InConnector, "include.schema.comments", "false", "Comments in schemas.",
		"schemas carry no comments, so that a comment makes no new version", "false"),
	accepted(InConnector, "include.schema.changes", "", "Events for DDL.",
		"PostgreSQL's stream carries no DDL, and Debezium sends none for it either", "false"),
	refused("converters", "", "Java classes that convert columns.",
		"no Java class can be loaded: convert downstream"),
	refused("sourceinfo.struct.maker", "", "Java class that makes the source block.",
		"no Java class can be loaded: remove the key"),
}

// topicKeys are about events, headers and topics.
var topicKeys = []Key{
	{
		Name: "tombstones.on.delete", Scope: InConnector, Class: Supported, Type: Boolean,
		Default: "true", Theirs: "true",
		Meaning: "A record with the key and a null value after each delete.",
	},
	{
		Name: "headers.enable", Scope: InConnector, Class: Supported, Type: Boolean,
		Default: "true", Meaning: "Headers tidemark.* on every record.",
	},
	{
		Name: "partition.by", Scope: InConnector, Class: Supported, Type: Enum, Default: "key",
		Enum: []string{"key", "serialized_key"},
		Meaning: "What is hashed for the partition: the key's Avro body, or all bytes with the " +
			"schema id, for topics shared with other producers.",
	},
	{
		Name: "topic.creation.default.partitions", Scope: InConnector, Class: Supported,
		Type: Integer, Default: "-1", Bounds: &Bounds{-1, 100_000},
		Meaning: "Partitions of a topic that is made; -1 is the broker's default.",
	},
	{
		Name: "topic.creation.default.replication.factor", Scope: InConnector, Class: Supported,
		Type: Integer, Default: "-1", Bounds: &Bounds{-1, 32767},
		Meaning: "Replicas of a topic that is made; -1 is the broker's default.",
	},
	{
		Name: "topic.creation.default.*", Scope: InConnector, Class: Supported, Type: Text,
		Meaning: "Any other setting of a topic that is made, such as cleanup.policy. Topics " +
			"that exist are never altered.",
	},
	notYet("topic.creation.groups", "", "Groups of topics with other settings.",
		"all topics are made alike in this version: make those of the groups beforehand"),
	notYet("topic.creation.*", "", "Settings of a group of topics.",
		"all topics are made alike in this version: make those of the groups beforehand"),
	{
		Name: "provide.transaction.metadata", Scope: InConnector, Class: Supported, Type: Boolean,
		Default: "false", Theirs: "false",
		Meaning: "Fill the field transaction of each event (id, total_order, " +
			"data_collection_order), and tell on a topic of their own where transactions with " +
			"events begin and end, with the numbers of their events.",
	},
	{
		Name: "topic.transaction", Scope: InConnector, Class: Supported, Type: Text,
		Default: "transaction", Theirs: "transaction",
		Meaning: "Name of that topic, behind topic.prefix and a dot.",
	},
	refused("transaction.metadata.factory", "", "Java class.",
		"no Java class can be loaded: remove the key",
		"io.debezium.pipeline.txmetadata.DefaultTransactionMetadataFactory"),
	refused("topic.naming.strategy", "io.debezium.schema.SchemaTopicNamingStrategy",
		"Java class that names topics.",
		"a topic is named PREFIX.SCHEMA.TABLE: remove the key, and rename downstream",
		"io.debezium.schema.SchemaTopicNamingStrategy"),
	refused("topic.delimiter", ".", "What stands between the parts of a topic's name.",
		"it is a dot: remove the key", "."),
	ignored(InConnector, "topic.cache.size", "10000", "Names kept.", "names are made once a table"),
	{
		Name: "exactly.once.support", Scope: InConnector, Class: Supported, Type: Enum,
		Default: "disabled", Theirs: "requested",
		Enum: []string{"disabled", "requested", "required"},
		Meaning: "required: events and position in one Kafka transaction, so that a read_committed " +
			"consumer sees each event once. requested counts as disabled.",
		Why: "at least once, with the pair to drop repeats by, is faster and enough for most",
	},
	{
		Name: "exactly.once.batch.bytes", Scope: InConnector, Class: Supported, Type: Bytes,
		Default: "4194304", Bounds: &Bounds{1024, 1 << 30},
		Meaning: "A Kafka transaction is committed when its events reach this size, at the end of a " +
			"source transaction; one that is larger itself is split. At most max.queue.bytes.",
	},
	{
		Name: "exactly.once.batch.ms", Scope: InConnector, Class: Supported, Type: Duration,
		Default: "500", Bounds: &Bounds{1, 60_000},
		Meaning: "A Kafka transaction is committed when it is this old, and at once when the stream " +
			"goes quiet. At most a fourth of transaction.timeout.ms.",
	},
	ignored(InConnector, "transaction.boundary", "poll", "Where Kafka transactions end.",
		"exactly.once.batch.bytes and exactly.once.batch.ms say it"),
	ignored(InConnector, "transaction.boundary.interval.ms", "", "Length of transactions.",
		"exactly.once.batch.ms says it"),
	accepted(InConnector, "extended.headers.enabled", "true", "Headers __debezium.context.*.",
		"headers.enable switches tidemark's own headers, which tell the position", "false"),
}

// failureKeys are about errors and what is held in memory.
var failureKeys = []Key{
	{
		Name: "errors.max.retries", Scope: InConnector, Class: Supported, Type: Integer,
		Default: "-1", Theirs: "-1", Bounds: &Bounds{-1, 1_000_000_000},
		Meaning: "Restarts after errors that may pass; -1 is for ever.",
	},
	{
		Name: "errors.retry.delay.max.ms", Scope: InConnector, Class: Supported, Type: Duration,
		Default: "10000", Theirs: "60000", Bounds: &Bounds{1, 3_600_000},
		Meaning: "Longest pause between restarts; they begin short and grow.",
		Why:     "WAL is retained while a connector waits",
	},
	{
		Name: "max.queue.bytes", Scope: InConnector, Class: Supported, Type: Bytes,
		Default: "67108864", Bounds: &Bounds{1 << 20, 1 << 40},
		Meaning: "Everything that is read and not yet confirmed; reading waits beyond it. `run` sets " +
			"Go's soft memory limit from it (96 MiB and one and a half queues, more where more " +
			"lives), unless GOMEMLIMIT is set.",
	},
	refused("event.processing.failure.handling.mode", "fail", "Events that cannot be processed.",
		"leaving out an event is losing it: set fail or remove the key", "fail"),
	refused("event.converting.failure.handling.mode", "warn", "Values that cannot be converted.",
		"set value.unrepresentable: fail", "warn", "skip"),
	ignored(InConnector, "retriable.restart.connector.wait.ms", "10000", "Pause before a restart.",
		"pauses grow up to errors.retry.delay.max.ms"),
	ignored(InConnector, "executor.shutdown.timeout.ms", "4000", "Limit of shutting down.",
		"a stop ends when what is confirmed is stored, or the process is killed"),
	ignored(InConnector, "guardrail.collections.max", "0", "Most tables to capture.",
		"the number of tables costs next to nothing here"),
	ignored(InConnector, "guardrail.collections.limit.action", "warn", "What beyond that.",
		"the number of tables costs next to nothing here"),
	queueKey("max.batch.size", "2048", "Records a batch."),
	queueKey("max.queue.size", "8192", "Records in memory."),
	queueKey("max.queue.size.in.bytes", "0", "Bytes in memory."),
	queueKey("queue.provider.type", "memory", "Where the queue is kept."),
	queueKey("queue.provider.*", "", "Where the queue is kept."),
	queueKey("queue.*", "", "The queue."),
	ignored(InConnector, "poll.interval.ms", "500", "How long a batch may wait.",
		"nothing waits for a batch to be full; see producer.linger.ms"),
	ignored(InConnector, "poll.dispatch.interval.ms", "0", "Pause between batches.",
		"there are no batches"),
	ignored(InConnector, "query.fetch.size", "0", "Rows a fetch.", "COPY streams rows"),
	refused("errors.tolerance", "none", "Whether bad records are left out.",
		"leaving out an event is losing it: set none or remove the key", "none"),
	ignored(InConnector, "errors.retry.timeout", "0", "How long to retry an operation.",
		"errors.max.retries bounds restarts"),
	ignored(InConnector, "errors.log.*", "false", "What is logged of errors.",
		"every error is logged, and never with a row's values"),
	ignored(InConnector, "errors.deadletterqueue.*", "", "Topic for bad records of sinks.",
		"there are no sinks"),
}

func queueKey(name, theirs, meaning string) Key {
	return ignored(InConnector, name, theirs, meaning,
		"max.queue.bytes bounds everything that is read and not confirmed")
}
