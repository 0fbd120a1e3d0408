// Package config reads tidemark's one YAML file (and Kafka Connect-style JSON files) into typed
// settings. The keys are rows of one table (keys.go); the reference in the documentation, `tidemark
// config keys` and the JSON Schema are generated from it. It is a leaf: it imports no package of
// ours but internal/fault.
package config

import (
	"regexp"
	"slices"
	"time"
)

// File is a loaded and valid configuration.
type File struct {
	Worker     Worker
	Connectors []*Connector // sorted by name
}

// Worker holds the settings that all connectors of a process share.
type Worker struct {
	Kafka             Kafka
	Registry          Registry
	HTTPListen        string // host:port; empty: no HTTP
	OffsetTopic       string
	OffsetReplication int // replication factor when the offsets topic is created; -1 is the broker's
	OffsetPartitions  int
}

// Kafka is how brokers are reached: worker keys for all clients.
type Kafka struct {
	Bootstrap        []string
	ClientID         string
	SecurityProtocol string // PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL
	SASLMechanism    string // PLAIN, SCRAM-SHA-256, SCRAM-SHA-512
	SASLUser         string
	SASLPassword     Secret
	TLSCAFile        string // PEM; ssl.truststore.location with type PEM
	TLSEndpointCheck bool   // ssl.endpoint.identification.algorithm is not empty
	Producer         Producer

	relogin func() (user string, password Secret, err error) // nil: the login cannot change
}

// Login returns user and password of the brokers as they are now: a file that sasl.jaas.config
// refers to is read again. Its error says what could not be read, never content.
func (k *Kafka) Login() (user string, password Secret, err error) {
	if k.relogin == nil {
		return k.SASLUser, k.SASLPassword, nil
	}
	return k.relogin()
}

// Producer holds Kafka's producer keys: `producer.` in worker, `producer.override.` in a connector.
type Producer struct {
	Compression        string // none, gzip, snappy, lz4, zstd
	Linger             time.Duration
	MaxRequestBytes    int // max.request.size: the largest record
	DeliveryTimeout    time.Duration
	RequestTimeout     time.Duration
	TransactionTimeout time.Duration
}

// Registry is how the schema registry is reached.
type Registry struct {
	URLs      []string // with a path where the registry has one
	User      string   // basic.auth.user.info before the colon
	Password  Secret
	Bearer    Secret
	TLSCAFile string
	Timeout   time.Duration // one request

	AutoRegister  bool // auto.register.schemas; else subjects must have the schemas
	UseLatest     bool // without AutoRegister: a subject's latest version that means the same will do
	Normalize     bool
	KeySubjects   string // TopicNameStrategy, RecordNameStrategy, TopicRecordNameStrategy
	ValueSubjects string
}

// Names of Confluent's subject name strategies.
const (
	topicNameStrategy       = "TopicNameStrategy"
	recordNameStrategy      = "RecordNameStrategy"
	topicRecordNameStrategy = "TopicRecordNameStrategy"
)

// Subject returns the subject of a topic's key or value schema, whose record has that full name.
func (r *Registry) Subject(topic, record string, key bool) string {
	strategy, suffix := r.ValueSubjects, "-value"
	if key {
		strategy, suffix = r.KeySubjects, "-key"
	}
	switch strategy {
	case recordNameStrategy:
		return record
	case topicRecordNameStrategy:
		return topic + "-" + record
	}
	return topic + suffix
}

// Connector is one connector's settings.
type Connector struct {
	Name                  string
	TopicPrefix           string
	Database              Database
	Primary               *Database // of the standby that Database is; nil: not given
	SlotName              string
	SlotAdopt             bool
	SlotTakeover          time.Duration
	SlotDropOnStop        bool
	SlotFailover          bool
	OnSlotGap             string // fail or resnapshot
	Publication           string
	PublicationAutocreate string // filtered, disabled, all_tables, no_tables
	PublishViaRoot        bool

	Tables  Filter  // schema.include.list and the like; see Captured
	Columns Columns // column.include.list and the like; see Rule

	SnapshotMode        string // initial, no_data, initial_only
	SnapshotLockTimeout time.Duration

	ExactlyOnce          bool  // exactly.once.support: required
	ExactlyOnceBytes     int64 // a Kafka transaction's size, at most MaxQueueBytes
	ExactlyOnceEvery     time.Duration
	OffsetFlush          time.Duration
	HeartbeatInterval    time.Duration // 0: off
	HeartbeatVerify      time.Duration // 0: off
	HeartbeatTimeout     time.Duration
	IdleAdvanceAfter     time.Duration // negative: off
	CatalogCheck         time.Duration
	StatusInterval       time.Duration
	MaxQueueBytes        int64
	ReselectUnavailable  bool
	BeforeImageRequired  []*regexp.Regexp
	ValueUnrepresentable string // flag, fail
	SchemaLogicalChange  string // warn, fail
	RecordTooLarge       string // fail, truncate
	TombstonesOnDelete   bool
	SkippedOperations    map[byte]bool // 'c','u','d','t'
	HeadersEnable        bool
	PartitionBy          string           // key, serialized_key
	DecimalMode          string           // precise, string, double
	MoneyDigits          int              // -1: ask the server
	KeyTextColumns       []*regexp.Regexp // schema.table.column
	MessageKeyColumns    []KeyColumns
	Messages             MessageFilter
	TransactionMetadata  bool
	TransactionTopic     string // topic.transaction: what follows the prefix
	TopicCreation        TopicCreation
	Producer             Producer // worker's, overridden by producer.override.*
	MaxRetries           int      // errors.max.retries; -1: for ever
	RetryDelayMax        time.Duration
}

// Names of topics of the connector's own, behind topic.prefix and a dot.
const (
	messageTopic = "message" // envelope.CompileMessages makes it
	eventTopic   = "tidemark-events"
)

// EventTopic is the topic that says what a person or a consumer should know and that is no row.
func (c *Connector) EventTopic() string { return c.TopicPrefix + "." + eventTopic }

// MessageTopicName is the topic of logical messages, "" when none are sent.
func (c *Connector) MessageTopicName() string {
	if len(c.Messages.Include)+len(c.Messages.Exclude) == 0 {
		return ""
	}
	return c.TopicPrefix + "." + messageTopic
}

// TransactionTopicName is the topic of transactions, "" when they are not told.
func (c *Connector) TransactionTopicName() string {
	if !c.TransactionMetadata {
		return ""
	}
	return c.TopicPrefix + "." + c.TransactionTopic
}

// OwnTopics are the topics that are no table's and that events may go to.
func (c *Connector) OwnTopics() []string {
	names := []string{c.EventTopic(), c.MessageTopicName(), c.TransactionTopicName()}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// MessageFilter says which logical messages are sent, by their prefixes: none where both lists are
// empty.
type MessageFilter struct{ Include, Exclude []*regexp.Regexp }

// Wants reports whether a message with this prefix is sent.
func (f *MessageFilter) Wants(prefix string) bool {
	if len(f.Exclude) > 0 {
		return !matchesAny(f.Exclude, prefix)
	}
	return matchesAny(f.Include, prefix)
}

// KeyColumns is one entry of message.key.columns.
type KeyColumns struct {
	Table   *regexp.Regexp // schema.table, anchored
	Columns []string
}

// TopicCreation holds topic.creation.default.*.
type TopicCreation struct {
	Partitions  int
	Replication int // -1: the broker's default
	Configs     map[string]string
}

// Database is how PostgreSQL is reached.
type Database struct {
	Host              string // several hosts, comma-separated, are tried in turn
	Port              uint16
	User              string
	Password          Secret
	Name              string
	SSLMode           string // disable, allow, prefer, require, verify-ca, verify-full
	SSLRootCert       string
	ConnectTimeout    time.Duration
	QueryTimeout      time.Duration
	TCPKeepAlive      bool
	InitialStatements []string
}
