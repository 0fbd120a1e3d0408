// Package preflight holds the checks behind `tidemark check`: what server, role, publication,
// tables, brokers and registry must be before a connector starts, and what somebody would be sorry
// for later. One table has them all (checks.go); each says what it found, what was wanted and the
// SQL or command that mends it.
//
// Nothing is changed anywhere: statements only read, topics are only validated, no transactional
// id is initialised. A server that cannot be reached is a finding, and what needs it is reported as
// not checked.
//
//	run.go, report.go, text.go      one run, its findings, their two forms
//	server*.go, slot*.go            PostgreSQL: server, role, slot
//	publication.go, relation_facts.go, tables.go, identity.go, names.go
//	                                what is captured, and whether its old rows can be told
//	broker.go, policy.go, registry.go, position.go
//	                                Kafka, the registry, and the stored position beside the slot's
package preflight

import "github.com/tidemark-cdc/tidemark/internal/fault"

// The areas, in the order of the report.
const (
	areaServer   = "server"
	areaCatalog  = "publication and tables"
	areaSlot     = "slot"
	areaBroker   = "kafka"
	areaRegistry = "schema registry"
	areaStored   = "stored position"
	noCode       = fault.Code("")
)

// checks is the table: every check once, in the order in which they are made and reported. A check
// that finds out what others need stands before them.
var checks = []check{
	{
		"postgres_connection", areaServer, Error, fault.PostgresUnreachable,
		"PostgreSQL lets the connector's user in", nil, checkConnection,
	},
	{
		"server_version", areaServer, Error, fault.ServerTooOld,
		"PostgreSQL 14 or later; a standby needs 16", pg, checkVersion,
	},
	{
		"server_kind", areaServer, Warning, noCode,
		"PostgreSQL itself, not a server that only speaks its protocol", pg, checkFork,
	},
	{
		"server_minor", areaServer, Warning, noCode,
		"a minor version without the known faults", pg, checkMinor,
	},
	{
		"standby", areaServer, Warning, noCode,
		"on a standby: hot_standby_feedback, and its primary known", pg, checkStandby,
	},
	{
		"wal_level", areaServer, Error, fault.WALLevel,
		"wal_level is logical", pg, checkWALLevel,
	},
	{
		"replication_role", areaServer, Error, fault.NotAReplicationRole,
		"the role may use replication", pg, checkReplicationRole,
	},
	{
		"replication_session", areaServer, Error, fault.NotAReplicationRole,
		"the server lets a replication session in", pg, checkReplicationSession,
	},
	{
		"output_plugin", areaServer, Error, fault.PrivilegeMissing,
		"output_plugin_libraries, where it exists, has pgoutput", pg, checkPluginAllowed,
	},
	{
		"heartbeat_message", areaServer, Warning, noCode,
		"EXECUTE on pg_logical_emit_message, for heartbeats", pg, checkEmitMessage,
	},
	{
		"connections_left", areaServer, Warning, noCode,
		"connections are left for the connector", pg, checkConnectionsLeft,
	},
	{
		"encoding", areaServer, Warning, noCode,
		"the database's encoding says what its bytes mean", pg, checkEncoding,
	},

	{
		"slot", areaSlot, Error, fault.SlotForeign,
		"slot.name is free, or a logical pgoutput slot of this database", pg, checkSlot,
	},
	{
		"slot_lost", areaSlot, Error, fault.SlotLost,
		"the server has not invalidated the slot", slot, checkSlotLost,
	},
	{
		"slot_runs_out", areaSlot, Warning, noCode,
		"the slot's WAL is not about to be removed", slot, checkSlotRunsOut,
	},
	{
		"slot_active", areaSlot, Warning, noCode,
		"nobody else uses the slot", slot, checkSlotActive,
	},
	{
		"slots_left", areaSlot, Error, fault.SlotsExhausted,
		"max_replication_slots leaves room for the slot", slot, checkSlotsLeft,
	},
	{
		"walsenders_left", areaSlot, Error, fault.SlotsExhausted,
		"max_wal_senders leaves room for the stream", slot, checkSendersLeft,
	},
	{
		"slot_bound", areaSlot, Warning, noCode,
		"a bound on the WAL that a slot may keep", pg, checkSlotGuards,
	},
	{
		"open_transactions", areaSlot, Warning, noCode,
		"no transaction is open that making the slot would wait for", slot, checkOpenTransactions,
	},
	{
		"catalog_xmin", areaSlot, Warning, noCode,
		"no slot holds catalogs back for too long", pg, checkXminAge,
	},

	{
		"catalog", areaCatalog, Error, fault.Internal,
		"the catalogs can be read", pg, checkCatalog,
	},
	{
		"tables", areaCatalog, Error, fault.NoTables,
		"at least one table is captured", catalog, checkTables,
	},
	{
		"include_entries", areaCatalog, Warning, noCode,
		"every entry of the include lists matches a table", catalog, checkIncludeEntries,
	},
	{
		"root_and_leaf", areaCatalog, Error, fault.TopicsCollide,
		"no partition is captured beside its root, nor dropped for its name", catalog,
		checkRootAndLeaf,
	},
	{
		"not_carried", areaCatalog, Warning, noCode,
		"nothing is named that logical replication cannot carry", catalog, checkNotCarried,
	},
	{
		"table_select", areaCatalog, Error, fault.PrivilegeMissing,
		"USAGE and SELECT for the snapshot", catalog, checkSelect,
	},
	{
		"row_security", areaCatalog, Error, fault.PrivilegeMissing,
		"no policy hides rows from the snapshot", catalog, checkRowSecurity,
	},
	{
		"replica_identity", areaCatalog, Error, fault.ReplicaIdentityUnusable,
		"every captured table and partition has a usable replica identity", catalog, checkIdentity,
	},
	{
		"leaf_key", areaCatalog, Error, fault.ReplicaIdentityUnusable,
		"every partition's identity has the columns of its root's key", catalog, checkLeafKey,
	},
	{
		"message_key_columns", areaCatalog, Error, fault.ReplicaIdentityUnusable,
		"message.key.columns names columns that every delete has", catalog, checkKeyOverrides,
	},
	{
		"before_image_required", areaCatalog, Error, fault.BeforeImageMissing,
		"tables of before.image.required have identity FULL", catalog, checkBeforeImage,
	},
	{
		"publication", areaCatalog, Error, fault.PublicationMissing,
		"the publication exists, or the connector makes it", catalog, checkPublication,
	},
	{
		"publication_right", areaCatalog, Error, fault.PrivilegeMissing,
		"the role may make or extend the publication, where it has to", catalog,
		checkPublicationRight,
	},
	{
		"publication_tables", areaCatalog, Error, fault.PublicationMissing,
		"the publication has every captured table", slotCatalog, checkPublicationTables,
	},
	{
		"publication_operations", areaCatalog, Error, fault.PublicationMissing,
		"the publication sends every operation that is not skipped", catalog,
		checkPublicationOperations,
	},
	{
		"publication_root", areaCatalog, Error, fault.PublicationChanged,
		"publish_via_partition_root is as configured", catalog, checkPublicationRoot,
	},
	{
		"publication_extra", areaCatalog, Warning, noCode,
		"the publication has no table that is not captured", catalog, checkPublicationExtra,
	},
	{
		"publication_filters", areaCatalog, Info, noCode,
		"row filters and column lists", catalog, checkPublicationFilters,
	},
	{
		"publication_age", areaCatalog, Warning, noCode,
		"the publication is older than the slot", slotCatalog, checkPublicationAge,
	},
	{
		"columns", areaCatalog, Error, fault.ConfigInvalid,
		"columns can be left out and masked as configured", catalog, checkColumns,
	},
	{
		"table_key", areaCatalog, Warning, noCode,
		"every captured table has a key", catalog, checkKeys,
	},
	{
		"leaf_identity", areaCatalog, Warning, noCode,
		"every partition of a root with identity FULL has it too", catalog, checkLeafIdentity,
	},
	{
		"large_objects", areaCatalog, Warning, noCode,
		"no column names a large object", catalog, checkLargeObjects,
	},
	{
		"toast", areaCatalog, Info, noCode,
		"columns whose unchanged value an UPDATE may leave out", catalog, checkToast,
	},
	{
		"generated_columns", areaCatalog, Info, noCode,
		"columns that are not sent", catalog, checkGenerated,
	},
	{
		"sequences", areaCatalog, Info, noCode,
		"sequences, whose position is never sent", catalog, checkSequences,
	},
	{
		"topic_names", areaCatalog, Error, fault.TopicsCollide,
		"every topic has a legal name of its own", catalog, checkTopicNames,
	},

	{
		"broker_connection", areaBroker, Error, fault.BrokerUnreachable,
		"a Kafka broker answers", nil, checkBroker,
	},
	{
		"topic_rights", areaBroker, Error, fault.BrokerForbids,
		"topics may be written, and made where they are missing", broker, checkTopicRights,
	},
	{
		"transactions", areaBroker, Error, fault.BrokerForbids,
		"the broker has transactions, and the connector may use its id", broker, checkTransactions,
	},
	{
		"offsets_topic", areaBroker, Error, fault.OffsetsTopicNotCompact,
		"the offsets topic is compacted only", broker, checkOffsetsTopic,
	},
	{
		"compacted_without_key", areaBroker, Error, fault.TopicCompactedNoKey,
		"no table without a key goes to a compacted topic", brokerCatalog, checkCompactedWithoutKey,
	},
	{
		"truncate", areaBroker, Warning, noCode,
		"no TRUNCATE goes to a compacted topic", brokerCatalog, checkTruncate,
	},
	{
		"message_size", areaBroker, Warning, noCode,
		"topics take what the producer may send", brokerCatalog, checkMessageSize,
	},

	{
		"registry_connection", areaRegistry, Error, fault.RegistryUnreachable,
		"the schema registry answers", nil, checkRegistry,
	},
	{
		"registry_compatibility", areaRegistry, Warning, noCode,
		"the registry refuses schemas that break consumers", registryCatalog, checkCompatibility,
	},

	{
		"position", areaStored, Error, fault.SlotMissing,
		"slot and stored position are of one history", everything, checkPosition,
	},
}

// What the checks of the table need.
var (
	pg              = []need{needPostgres}
	slot            = []need{needPostgres, needSlot}
	slotCatalog     = []need{needPostgres, needSlot, needCatalog}
	catalog         = []need{needPostgres, needCatalog}
	broker          = []need{needBroker}
	brokerCatalog   = []need{needPostgres, needCatalog, needBroker}
	registryCatalog = []need{needPostgres, needCatalog, needRegistry}
	everything      = []need{
		needPostgres, needCatalog, needReplication, needSlot, needBroker, needOffsets,
	}
)
