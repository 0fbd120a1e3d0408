package config

// filterKeys choose tables, columns and messages.
var filterKeys = []Key{
	{
		Name: "schema.include.list", Scope: InConnector, Class: Supported, Type: Regexes,
		Meaning: "Schemas to capture; all but the system's without it. Like all expressions " +
			"here it must match the whole name, without regard to case. Not with " +
			"schema.exclude.list.",
	},
	{
		Name: "schema.exclude.list", Scope: InConnector, Class: Supported, Type: Regexes,
		Meaning: "Schemas not to capture.",
	},
	{
		Name: "table.include.list", Scope: InConnector, Class: Supported, Type: Regexes,
		Meaning: "Tables to capture, as schema.table; all without it. Not with " +
			"table.exclude.list.",
	},
	{
		Name: "table.exclude.list", Scope: InConnector, Class: Supported, Type: Regexes,
		Meaning: "Tables not to capture, as schema.table.",
	},
	{
		Name: "column.include.list", Scope: InConnector, Class: Supported, Type: Regexes,
		Meaning: "Columns to send, as schema.table.column; all without it. It counts for every " +
			"captured table, and must hold the columns of each key. Not with column.exclude.list.",
	},
	{
		Name: "column.exclude.list", Scope: InConnector, Class: Supported, Type: Regexes,
		Meaning: "Columns not to send, as schema.table.column: they are in no event and no " +
			"schema, and the snapshot does not read them. A column of the key cannot be left out.",
	},
	{
		Name: "column.truncate.to.*.chars", Scope: InConnector, Class: Supported, Type: Regexes,
		Meaning: "Columns, as schema.table.column, of which the star's number of characters is " +
			"sent, in UTF-16 code units as Java counts, and that number of bytes of a bytea column. " +
			"Columns of other types whose field is not a string stay as they are.",
	},
	{
		Name: "column.mask.with.*.chars", Scope: InConnector, Class: Supported, Type: Regexes,
		Meaning: "Columns, as schema.table.column, whose every value, null too, is sent as the " +
			"star's number of asterisks. Only columns whose field is a string, and none of a key. " +
			"Of the keys that change a column, this one wins, then the hashes, then " +
			"column.truncate.to.",
	},
	{
		Name: "column.mask.hash.v2.*.with.salt.*", Scope: InConnector, Class: Supported,
		Type: Regexes,
		Meaning: "Columns, as schema.table.column, whose values are sent as the hexadecimal " +
			"digits of a hash of salt and value, in key fields too; null stays null. The first " +
			"star is MD5, SHA-1, SHA-224, SHA-256, SHA-384, SHA-512, SHA-512/224, SHA-512/256, " +
			"SHA3-224, SHA3-256, SHA3-384 or SHA3-512; the second the salt, which may be a " +
			"reference, ${env:NAME}. Only columns whose field is a string; char(n) and varchar(n) " +
			"columns get n digits at most.",
	},
	{
		Name: "column.mask.hash.*.with.salt.*", Scope: InConnector, Class: Supported, Type: Regexes,
		Meaning: "The same with version 1 of Debezium's hashes, of the value as Java serializes " +
			"it: only for topics that hold such hashes already.",
	},
	notYet("column.propagate.source.type", "", "Columns whose type is told in the schema.",
		"every field has the property pg_type: remove the key, and read that"),
	notYet("datatype.propagate.source.type", "", "Types to tell in the schema.",
		"every field has the property pg_type: remove the key, and read that"),
	{
		Name: "message.key.columns", Scope: InConnector, Class: Supported, Type: Text,
		Meaning: "Other key columns: TABLE:COLUMN,COLUMN, entries separated by ;, TABLE an " +
			"expression for schema.table. The columns must be NOT NULL and in the replica " +
			"identity.",
	},
	{
		Name: "key.text.columns", Scope: InConnector, Class: Supported, Type: Regexes,
		Meaning: "Key columns, as schema.table.column, whose Key field is a string with " +
			"PostgreSQL's text.",
	},
	{
		Name: "before.image.required", Scope: InConnector, Class: Supported, Type: Regexes,
		Meaning: "Tables, as schema.table, of which an UPDATE or DELETE without the full old " +
			"row stops the connector.",
	},
	notYet("skip.messages.without.change", "false", "Whether to drop updates that change nothing.",
		"every update is sent in this version: compare before and after", "false"),
	{
		Name: "skipped.operations", Scope: InConnector, Class: Supported, Type: List,
		Default: "none", Theirs: "t",
		Meaning: "Operations not to send: c, u, d, t; or none.",
		Why:     "a consumer that cannot take a TRUNCATE should fail, not drift",
	},
	{
		Name: "message.prefix.include.list", Scope: InConnector, Class: Supported, Type: Regexes,
		Theirs: "all",
		Meaning: "Prefixes of logical messages (pg_logical_emit_message) to send, as op m, to " +
			"PREFIX.message; none without it and without message.prefix.exclude.list.",
		Why: "other applications' messages are theirs until somebody asks for them",
	},
	{
		Name: "message.prefix.exclude.list", Scope: InConnector, Class: Supported, Type: Regexes,
		Meaning: "Prefixes of logical messages not to send; all others are sent. Not with " +
			"message.prefix.include.list. Tidemark's own messages are never sent.",
	},
}

// snapshotKeys are about the first snapshot.
var snapshotKeys = []Key{
	{
		Name: "snapshot.mode", Scope: InConnector, Class: Supported, Type: Enum,
		Default: "initial", Theirs: "initial",
		Enum: []string{"initial", "no_data", "never", "initial_only"},
		Instead: map[string]string{
			"always": "not in this version: set initial, and reset the offsets before a start " +
				"that shall read all rows again",
			"when_needed": "not in this version: set initial; when history is missing the " +
				"connector stops and says so",
			"configuration_based": "set initial, no_data or initial_only",
			"custom":              "no Java class can be loaded: set initial, no_data or initial_only",
			"schema_only":         "Debezium's old name: set no_data",
			"initial_schema_only": "set no_data",
			"exported":            "Debezium's old name: set initial",
		},
		Meaning: "initial: rows that exist, then changes; no_data (once: never): changes only; " +
			"initial_only: rows only, then stop.",
	},
	ignored(InConnector, "snapshot.mode.custom.name", "", "Java class for mode custom.",
		"mode custom does not exist"),
	ignored(InConnector, "snapshot.mode.configuration.based.*", "false",
		"Switches for mode configuration_based.", "mode configuration_based does not exist"),
	accepted(InConnector, "snapshot.isolation.mode", "serializable", "Isolation of the snapshot.",
		"all tables are read in one exported snapshot, which none of the modes can better",
		"serializable", "repeatable_read"),
	refused("snapshot.locking.mode", "none", "Locks while reading.",
		"no Java class can be loaded: remove the key", "none", "shared"),
	ignored(InConnector, "snapshot.locking.mode.custom.name", "", "Java class.",
		"mode custom does not exist"),
	{
		Name: "snapshot.lock.timeout.ms", Scope: InConnector, Class: Supported, Type: Duration,
		Default: "10000", Theirs: "10000", Bounds: &Bounds{0, 86_400_000},
		Meaning: "How long to wait for a table's lock before the snapshot is tried again; 0 is " +
			"for ever.",
	},
	ignored(InConnector, "snapshot.fetch.size", "10240", "Rows a fetch.",
		"COPY streams rows without fetches"),
	ignored(InConnector, "snapshot.delay.ms", "0", "Pause before the snapshot.",
		"start the connector later"),
	ignored(InConnector, "streaming.delay.ms", "0", "Pause before streaming.",
		"a pause only retains WAL"),
	notYet("snapshot.include.collection.list", "", "Tables to read in the snapshot.",
		"every captured table is read in this version: use two connectors, one with no_data"),
	notYet("snapshot.select.statement.overrides", "", "Tables with a SELECT of their own.",
		"whole tables are read in this version: remove the key"),
	notYet("snapshot.select.statement.overrides.*", "", "SELECT of one table.",
		"whole tables are read in this version: remove the key"),
	refused("snapshot.query.mode", "select_all", "How rows are selected.",
		"no Java class can be loaded: remove the key", "select_all"),
	ignored(InConnector, "snapshot.query.mode.custom.name", "", "Java class.",
		"mode custom does not exist"),
	accepted(InConnector, "snapshot.tables.order.by.row.count", "disabled",
		"Order in which tables are read.", "the order of tables changes no event", "disabled"),
	accepted(InConnector, "snapshot.max.threads", "1", "Tables read at once.",
		"tables are read one after another in this version, each as one COPY", "1"),
	ignored(InConnector, "snapshot.max.threads.multiplier", "1", "Chunks a table.",
		"a table is read as one COPY"),
	ignored(InConnector, "snapshot.max.threads.multiplier.*", "", "Chunks of one table.",
		"a table is read as one COPY"),
	ignored(InConnector, "legacy.snapshot.max.threads", "false", "One thread a table.",
		"a table is read as one COPY"),
	accepted(InConnector, "snapshot.new.tables", "off", "Snapshot of tables added later.",
		"a table that is added later is streamed from then on", "off"),
}

const (
	noSignals = "signals are not in this version: remove the key"
	noWindows = "there are no incremental snapshots in this version"
)

// signalKeys are about ad-hoc snapshots.
var signalKeys = []Key{
	notYet("signal.data.collection", "", "Table whose rows are commands.", noSignals),
	notYet("signal.enabled.channels", "source", "Where commands come from.", noSignals, "source"),
	later("signal.poll.interval.ms", "5000", "How often channels are read.", "no channel is read"),
	later("signal.kafka.*", "", "The Kafka channel.", "no channel is read"),
	later("signal.consumer.*", "", "The Kafka channel.", "no channel is read"),
	later("signal.file", "file-signals.txt", "The file channel.", "no channel is read"),
	later("signal.emit.failure.max.retries", "0", "Watermarks.", noWindows),
	later("signal.emit.failure.backoff.ms", "10000", "Watermarks.", noWindows),
	later("signal.emit.failure.retry.backoff.ms", "10000", "Watermarks.", noWindows),
	later("incremental.snapshot.chunk.size", "1024", "Rows a chunk.", noWindows),
	later("incremental.snapshot.watermarking.strategy", "insert_insert", "Watermarks.", noWindows),
	later("incremental.snapshot.allow.schema.changes", "false", "DDL in a window.", noWindows),
	accepted(InConnector, "read.only", "false", "Whether watermarks may be written.",
		"tidemark writes no row; its heartbeat is a logical message, and heartbeat.interval.ms: 0 "+
			"switches that off", "false"),
}

// later is ignored, in this version only.
func later(name, theirs, meaning, why string) Key {
	k := ignored(InConnector, name, theirs, meaning, why)
	k.Later = true
	return k
}
