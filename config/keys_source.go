package config

// identityKeys name a connector.
var identityKeys = []Key{
	{
		Name: "name", Scope: InConnector, Class: Supported, Type: Text,
		Meaning: "Name of the connector; in YAML the name above the map, and this key, if " +
			"there, must be the same.",
	},
	refused("connector.class", "", "Java class of the connector.",
		"tidemark reads PostgreSQL only: other databases need another tool",
		"io.debezium.connector.postgresql.PostgresConnector", "PostgresConnector",
		"PostgresSource", "Postgres"),
	{
		Name: "topic.prefix", Scope: InConnector, Class: Supported, Type: Text, Required: true,
		Meaning: "First part of every topic's name; letters, digits, dot, underscore, hyphen. " +
			"Another prefix starts from zero.",
	},
}

const javaTLS = "client certificates are not in this version: log in with a password (SCRAM)"

// databaseKeys say how PostgreSQL is reached.
var databaseKeys = []Key{
	{
		Name: "database.hostname", Scope: InConnector, Class: Supported, Type: Text,
		Required: true,
		Meaning: "Host, several separated by commas (tried in turn), or the directory of a " +
			"Unix socket.",
	},
	{
		Name: "database.port", Scope: InConnector, Class: Supported, Type: Integer,
		Default: "5432", Theirs: "5432", Bounds: &Bounds{1, 65535}, Meaning: "TCP port.",
	},
	{
		Name: "database.user", Scope: InConnector, Class: Supported, Type: Text, Required: true,
		Meaning: "Role with LOGIN and REPLICATION, and SELECT on the captured tables.",
	},
	{
		Name: "database.password", Scope: InConnector, Class: Supported, Type: SecretText,
		Meaning: "Its password; write ${env:NAME} or ${file:PATH:KEY}.",
	},
	{
		Name: "database.dbname", Scope: InConnector, Class: Supported, Type: Text, Required: true,
		Meaning: "Database; a slot, and so a connector, reads one.",
	},
	{
		Name: "database.sslmode", Scope: InConnector, Class: Supported, Type: Enum,
		Theirs: "prefer",
		Enum:   []string{"disable", "allow", "prefer", "require", "verify-ca", "verify-full"},
		Meaning: "TLS to PostgreSQL. Without it: verify-full; prefer when every host is " +
			"loopback; a Unix socket has none.",
		Why: "prefer talks in the clear to anybody who answers in the server's place",
	},
	{
		Name: "database.sslrootcert", Scope: InConnector, Class: Supported, Type: Path,
		Meaning: "File of the certificate authorities (PEM) that vouch for the server; " +
			"without it the system's.",
	},
	notYet("database.sslcert", "", "Client certificate.", javaTLS),
	notYet("database.sslkey", "", "Client key.", javaTLS),
	{
		Name: "database.sslpassword", Scope: InConnector, Class: Refused, Type: SecretText,
		Later: true, Meaning: "Password of the client key.", Why: javaTLS,
	},
	refused("database.sslfactory", "", "Java socket factory.",
		"no Java class can be loaded: set database.sslmode and database.sslrootcert"),
	refused("database.connection.factory.class", "", "Java class that makes connections.",
		"no Java class can be loaded: give database.password"),
	{
		Name: "database.tcpKeepAlive", Scope: InConnector, Class: Supported, Type: Boolean,
		Default: "true", Theirs: "true", Meaning: "TCP keepalive.",
	},
	{
		Name: "database.initial.statements", Scope: InConnector, Class: Supported, Type: Text,
		Meaning: "SQL statements for each ordinary connection, separated by ;. Write ;; for a " +
			"semicolon inside one.",
	},
	{
		Name: "database.query.timeout.ms", Scope: InConnector, Class: Supported, Type: Duration,
		Default: "600000", Theirs: "600000", Bounds: &Bounds{0, 86_400_000},
		Meaning: "Limit of one statement, copying a table in a snapshot excepted; 0 is none.",
	},
	{
		Name: "database.connect.timeout.ms", Scope: InConnector, Class: Supported,
		Type: Duration, Default: "10000", Bounds: &Bounds{100, 600_000},
		Meaning: "Limit of making one connection.",
	},
	{
		Name: "primary.hostname", Scope: InConnector, Class: Supported, Type: Text,
		Meaning: "Host of the primary, when database.hostname is a standby (16 and later): " +
			"heartbeats go there, and it is asked for what making a slot on an idle standby needs. " +
			"TLS and timeouts as for the database.",
	},
	{
		Name: "primary.port", Scope: InConnector, Class: Supported, Type: Integer,
		Bounds: &Bounds{1, 65535}, Meaning: "Its port; without it database.port.",
	},
	{
		Name: "primary.user", Scope: InConnector, Class: Supported, Type: Text,
		Meaning: "Role there; without it database.user.",
	},
	{
		Name: "primary.password", Scope: InConnector, Class: Supported, Type: SecretText,
		Meaning: "Its password; without it database.password.",
	},
	ignored(InConnector, "connection.validation.timeout.ms", "60000",
		"Limit of the connection test.", "database.connect.timeout.ms bounds each connection"),
	ignored(InConnector, "driver.*", "", "Options of the JDBC driver.",
		"there is no JDBC driver; timeouts and TLS have keys of their own"),
	ignored(InConnector, "custom.sanitize.pattern", "", "Keys to hide in logs.",
		"a secret has a type that is never printed, whatever its key"),
}

// slotKeys are about the replication slot and the publication.
var slotKeys = []Key{
	refused("plugin.name", "decoderbufs", "Output plug-in of the server.",
		"pgoutput is in every server: set pgoutput or remove the key", "pgoutput"),
	{
		Name: "slot.name", Scope: InConnector, Class: Supported, Type: Text,
		Default: "tidemark", Theirs: "debezium",
		Meaning: "Replication slot: up to 63 of a-z, 0-9 and underscore.",
		Why:     "nobody's slot is taken over because a key was left out",
	},
	{
		Name: "slot.adopt", Scope: InConnector, Class: Supported, Type: Boolean,
		Default: "false",
		Meaning: "Take a slot that exists although no position is stored for it. What it had " +
			"confirmed to its former reader is not sent.",
	},
	{
		Name: "slot.takeover.timeout.ms", Scope: InConnector, Class: Supported, Type: Duration,
		Default: "90000", Bounds: &Bounds{0, 3_600_000},
		Meaning: "How long to wait for a slot that is active for another process.",
	},
	{
		Name: "slot.drop.on.stop", Scope: InConnector, Class: Supported, Type: Boolean,
		Default: "false", Theirs: "false",
		Meaning: "Drop the slot on an orderly stop. What changes until the next start is lost.",
	},
	{
		Name: "slot.failover", Scope: InConnector, Class: Supported, Type: Boolean,
		Default: "false", Theirs: "false",
		Meaning: "Make the slot with FAILOVER (PostgreSQL 17 and later).",
	},
	notYet("slot.stream.params", "", "More options for the output plug-in.",
		"remove it: changes of every origin are sent, and source.origin names it", "origin=any"),
	ignored(InConnector, "slot.max.retries", "6", "Attempts at opening the stream.",
		"errors.max.retries bounds attempts at everything"),
	ignored(InConnector, "slot.retry.delay.ms", "10000", "Pause between them.",
		"pauses grow up to errors.retry.delay.max.ms"),
	{
		Name: "on.slot.gap", Scope: InConnector, Class: Supported, Type: Enum, Default: "fail",
		Enum: []string{"fail", "resnapshot"},
		Meaning: "What to do when the slot no longer holds what follows the stored position, or the " +
			"publication left rows out: stop, or read the tables concerned again and delete the " +
			"keys that are gone from them. A slot that is lost is then dropped and made again.",
	},
	{
		Name: "publication.name", Scope: InConnector, Class: Supported, Type: Text,
		Default: "tidemark", Theirs: "dbz_publication",
		Meaning: "Publication that the slot reads.",
		Why: "filtered sets a publication's tables; a running Debezium must not lose its own " +
			"because a key was left out",
	},
	{
		Name: "publication.autocreate.mode", Scope: InConnector, Class: Supported, Type: Enum,
		Default: "filtered", Theirs: "all_tables",
		Enum: []string{"filtered", "disabled", "all_tables", "no_tables"},
		Meaning: "How a missing publication is made: for the captured tables, not at all, for " +
			"all tables (superuser), or empty.",
		Why: "all_tables makes UPDATE and DELETE fail on every table without an identity, " +
			"captured or not",
	},
	{
		Name: "publish.via.partition.root", Scope: InConnector, Class: Supported, Type: Boolean,
		Default: "true", Theirs: "false",
		Meaning: "Make the publication so that rows of partitions come under their root's name.",
		Why: "a partition that is made tomorrow goes to the topic that its root has today; with false " +
			"each partition has a topic of its own, and table.include.list must name partitions",
	},
	refused("replica.identity.autoset.values", "", "Identities to set by ALTER TABLE at start.",
		"tidemark alters no table: `tidemark check` prints the ALTER TABLE for you"),
	{
		Name: "status.update.interval.ms", Scope: InConnector, Class: Supported, Type: Duration,
		Default: "10000", Theirs: "10000", Bounds: &Bounds{100, 600_000},
		Meaning: "How often the server is told what is stored. Keep it under a third of " +
			"wal_sender_timeout.",
	},
	notYet("xmin.fetch.interval.ms", "0", "How often source.xmin is asked for.",
		"source.xmin is null in this version: remove the key", "0"),
}

// positionKeys are about acknowledgement, heartbeats and idle streams.
var positionKeys = []Key{
	{
		Name: "heartbeat.interval.ms", Scope: InConnector, Class: Supported, Type: Duration,
		Default: "10000", Theirs: "0", Bounds: &Bounds{0, 86_400_000},
		Meaning: "A logical message is written when no position could be stored for this " +
			"long; 0 is off.",
		Why: "without it a busy neighbour database fills the disk with WAL",
	},
	{
		Name: "heartbeat.verify.interval.ms", Scope: InConnector, Class: Supported,
		Type: Duration, Default: "300000", Bounds: &Bounds{0, 86_400_000},
		Meaning: "One also when no transaction came for this long, though idle advance works; " +
			"0 is off.",
	},
	{
		Name: "heartbeat.timeout.ms", Scope: InConnector, Class: Supported, Type: Duration,
		Default: "60000", Bounds: &Bounds{1000, 86_400_000},
		Meaning: "No echo of a heartbeat for this long with a silent stream: reconnect, unhealthy.",
	},
	{
		Name: "idle.advance.after.ms", Scope: InConnector, Class: Supported, Type: Duration,
		Default: "10000", Bounds: &Bounds{-1, 86_400_000},
		Meaning: "A keepalive may move the slot after this long without a change; -1 is off.",
	},
	{
		Name: "catalog.check.interval.ms", Scope: InConnector, Class: Supported, Type: Duration,
		Default: "30000", Bounds: &Bounds{100, 86_400_000},
		Meaning: "How often publication, tables, identities and slot are looked at on an " +
			"ordinary connection.",
	},
	ignored(InConnector, "heartbeat.action.query", "", "SQL run with each heartbeat.",
		"tidemark's heartbeat is a logical message, which needs no table"),
	ignored(InConnector, "topic.heartbeat.prefix", "__debezium-heartbeat", "Heartbeat topic.",
		"heartbeats go through PostgreSQL, not to a topic"),
	ignored(InConnector, "topic.heartbeat.name", "", "Heartbeat topic.",
		"heartbeats go through PostgreSQL, not to a topic"),
	refused("lsn.flush.mode", "connector", "Who acknowledges to the server.",
		"tidemark always acknowledges what is stored, and idle.advance.after.ms is its way "+
			"of moving a silent slot: remove the key", "connector", "connector_and_driver"),
	refused("flush.lsn.source", "true", "Whether to acknowledge to the server.",
		"without acknowledgement the server keeps all WAL: remove the key", "true"),
	ignored(InConnector, "lsn.flush.timeout.ms", "30000", "Limit of one acknowledgement.",
		"acknowledging is a status message that waits for nobody"),
	ignored(InConnector, "lsn.flush.timeout.action", "fail", "What then.",
		"acknowledging is a status message that waits for nobody"),
	refused("offset.mismatch.strategy", "no_validation",
		"What to do when slot and stored position differ.",
		"trusting a slot that is ahead skips changes silently; tidemark stops with "+
			"slot_ahead_of_offset: remove the key", "no_validation", "trust_offset"),
	ignored(InConnector, "internal.*", "", "Debezium's internals.", "they have no counterpart"),
}
