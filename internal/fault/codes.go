package fault

// Code is a stable snake_case name of a reason to stop: the same in log, metric, /readyz and on
// standard error.
type Code string

// The codes, by exit status (see Exit).
const (
	PostgresUnreachable Code = "postgres_unreachable"
	BrokerUnreachable   Code = "broker_unreachable"
	RegistryUnreachable Code = "registry_unreachable"
	RecordTooLarge      Code = "record_too_large"
	SchemaRejected      Code = "schema_rejected"
	SchemaChanged       Code = "schema_logical_change"
	BeforeImageMissing  Code = "before_image_missing"
	KeyUnrepresentable  Code = "key_unrepresentable"
	ValueUnrepresented  Code = "value_unrepresentable"
	ProtocolError       Code = "protocol_error"
	Fenced              Code = "fenced"
	Internal            Code = "internal"

	ConfigInvalid Code = "config_invalid"

	WALLevel                Code = "wal_level"
	NotAReplicationRole     Code = "not_a_replication_role"
	PublicationMissing      Code = "publication_missing"
	ReplicaIdentityUnusable Code = "replica_identity_unusable"
	NoTables                Code = "no_tables"
	PrivilegeMissing        Code = "privilege_missing"
	ServerTooOld            Code = "server_too_old"
	SlotsExhausted          Code = "slots_exhausted"
	SlotInUse               Code = "slot_in_use"
	SnapshotBlocked         Code = "snapshot_blocked"
	TopicsCollide           Code = "topics_collide"
	SlotForeign             Code = "slot_foreign"
	OffsetsTopicNotCompact  Code = "offsets_topic_not_compacted"
	OffsetsUnreadable       Code = "offsets_unreadable"
	TopicMissing            Code = "topic_missing"
	TopicCompactedNoKey     Code = "topic_compacted_without_key"
	BrokerForbids           Code = "broker_forbids"
	AuthenticationFailed    Code = "authentication_failed"

	SlotMissing        Code = "slot_missing"
	SlotLost           Code = "slot_lost"
	SlotAhead          Code = "slot_ahead_of_offset"
	SlotWithoutOffset  Code = "slot_without_offset"
	PublicationChanged Code = "publication_changed"
	HistoryRewound     Code = "history_rewound"
	ClusterChanged     Code = "cluster_changed"
	TimelineDiverged   Code = "timeline_diverged"
	TruncateOnCompact  Code = "truncate_on_compacted_topic"
	TransactionChanged Code = "transaction_changed"
	BrokerDataLost     Code = "broker_data_lost"
)

// Row is a line of the table of codes.
type Row struct {
	Code    Code
	Exit    int
	Meaning string
}

// Table lists every code once, with the process's exit status and what it means.
var Table = []Row{
	{PostgresUnreachable, 1, "PostgreSQL could not be reached or ended the session, after every retry"},
	{BrokerUnreachable, 1, "the Kafka brokers could not be reached, after every retry"},
	{RegistryUnreachable, 1, "the schema registry could not be reached, after every retry"},
	{RecordTooLarge, 1, "an event is larger than the broker, the topic or the producer takes"},
	{SchemaRejected, 1, "the registry refuses a table's new schema under the subject's level"},
	{SchemaChanged, 1, "a column's Avro type changed in a way that readers may not notice, and " +
		"schema.logical.change is fail"},
	{BeforeImageMissing, 1, "an old row is not full though before.image.required names its table"},
	{KeyUnrepresentable, 1, "a key column holds a value that its Key type cannot hold"},
	{ValueUnrepresented, 1, "a value does not fit its type and value.unrepresentable is fail"},
	{ProtocolError, 1, "PostgreSQL sent bytes that are not the protocol"},
	{Fenced, 1, "another process took the connector over"},
	{Internal, 1, "a fault that has no code of its own"},
	{ConfigInvalid, 2, "wrong usage or configuration"},
	{WALLevel, 3, "wal_level is not logical"},
	{NotAReplicationRole, 3, "the role may not use replication"},
	{PublicationMissing, 3, "the publication does not exist, and none may be made"},
	{ReplicaIdentityUnusable, 3, "a table's replica identity makes UPDATE or DELETE fail or gives no key"},
	{NoTables, 3, "no table matches the configuration and none made later could"},
	{PrivilegeMissing, 3, "a right on a schema, table or function is missing"},
	{ServerTooOld, 3, "the server is older than PostgreSQL 14 or not PostgreSQL"},
	{SlotsExhausted, 3, "no replication slot or walsender is left"},
	{SlotInUse, 3, "the slot is active for another process"},
	{SnapshotBlocked, 3, "an open transaction keeps a slot or a snapshot from being made"},
	{TopicsCollide, 3, "two tables would share a topic, or a topic's name is too long"},
	{SlotForeign, 3, "the slot belongs to another plugin or database, or is physical"},
	{OffsetsTopicNotCompact, 3, "the offsets topic's cleanup.policy is not compact"},
	{OffsetsUnreadable, 3, "the connector's record in the offsets topic cannot be read"},
	{TopicMissing, 3, "a topic does not exist and could not be made, or went away"},
	{TopicCompactedNoKey, 3, "a compacted topic would receive records without a key"},
	{BrokerForbids, 3, "the broker's ACLs forbid an operation"},
	{AuthenticationFailed, 3, "a server refuses the user, the password or the certificate"},
	{SlotMissing, 4, "a position is stored, but the slot is gone"},
	{SlotLost, 4, "the server invalidated the slot"},
	{SlotAhead, 4, "the slot was moved past the stored position"},
	{SlotWithoutOffset, 4, "the slot exists, but no position is stored for it"},
	{PublicationChanged, 4, "the publication is not what it was; rows may be missing"},
	{HistoryRewound, 4, "the stored position lies beyond the server's WAL"},
	{ClusterChanged, 4, "the server is another cluster than the stored one"},
	{TimelineDiverged, 4, "the server's timeline left the stored one before the stored position"},
	{TruncateOnCompact, 4, "a TRUNCATE cannot be written to a compacted topic"},
	{TransactionChanged, 4, "a source transaction that was sent in part does not come again as it was"},
	{BrokerDataLost, 4, "a Kafka broker no longer has records that it had confirmed"},
}

// Exit returns the exit status of a code: 1 for one that the table does not have.
func Exit(code Code) int {
	for _, r := range Table {
		if r.Code == code {
			return r.Exit
		}
	}
	return 1
}
