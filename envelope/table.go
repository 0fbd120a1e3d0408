package envelope

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/schema"
)

// Table is one relation version, compiled: its topic, its schemas, and the list of columns with
// the function that encodes each. All but LeafNotFull and the counters is fixed once SetIDs was
// called; from then on several Encoders may use it at once.
type Table struct {
	Relation    *schema.Relation // nil for the message topic
	Topic       string
	KeySchema   string // empty: the table has no usable key
	ValueSchema string
	// KeyColumns are the columns that the Key is made of, by PostgreSQL's names and in its order.
	KeyColumns []string
	// KeyReason says in words for a person why the key is what it is.
	KeyReason string
	// Out and Masked are the columns that are left out, and those whose values are changed.
	Out    []string
	Masked []MaskedColumn
	// IdentityColumns are the indices of the columns by which the server finds a row: those of the
	// replica identity, or, where that is FULL, of the key.
	IdentityColumns []int

	columns []column
	key     []keyColumn
	shape   *KeyShape // of KeySchema; nil without a key
	ownKey  bool      // KeySchema is not made of columns: the topic of transactions
	// collection is the table's name in what is said of a transaction.
	collection string
	// keyHead and valueHead are the wire format's five bytes: zero, schema id in big endian.
	keyHead, valueHead [5]byte
	registered         bool
	source             sourceText

	full           bool // the relation and every leaf the catalog knows have identity FULL
	leafNotFull    atomic.Bool
	beforeRequired bool
	limit          int // SetLimit's; 0: none
	counters       *counters
}

// column is a column of Value.
type column struct {
	name     string // PostgreSQL's
	field    string // Avro's
	label    []byte // field as an encoded string, for ColumnState
	pgType   string
	avro     any
	append   func(dst, text []byte) ([]byte, error)
	identity bool              // the old tuple of a change carries it also when that is tagged K
	plain    schema.AppendFunc // append without a mask
	rule     ColumnRule
	fixed    []byte // branch and body that stand in every value's place; nil: none
}

// keyColumn is a column of Key and BeforeKey.
type keyColumn struct {
	column int // index in the relation
	name   string
	field  string
	avro   any
	append func(dst, text []byte) ([]byte, error)
}

// Kafka takes topic names of at most 249 characters.
const maxTopicLength = 249

// Compile makes the Table of a relation version. It does no I/O. It fails with a fault:
// topics_collide for a topic name that Kafka does not take, replica_identity_unusable when
// message.key.columns cannot be had from every change, config_invalid when a column cannot be left
// out or masked.
func (e *Encoder) Compile(rel *schema.Relation, info schema.TableInfo) (*Table, error) {
	t := &Table{
		Relation:       rel,
		Topic:          schema.TopicName(e.o.Prefix, rel.Namespace, rel.Name),
		source:         newSourceText(&e.o, rel.Namespace, rel.Name),
		full:           rel.Identity == schema.IdentityFull && (!info.IsRoot || info.LeavesFull),
		beforeRequired: e.o.BeforeRequired(rel.Namespace, rel.Name),
		counters:       e.counters.of(rel.Namespace, rel.Name),
		collection:     tableName(rel),
	}
	if len(t.Topic) > maxTopicLength {
		return nil, fault.New(fault.TopicsCollide, "the topic's name of table "+tableName(rel)+
			" is too long for Kafka").With(
			fmt.Sprintf("%d characters", len(t.Topic)), fmt.Sprintf("at most %d", maxTopicLength),
			"choose a shorter topic.prefix or exclude the table")
	}
	for _, c := range rel.Columns {
		made, err := e.column(t, c, info.Types)
		if err != nil {
			return nil, err
		}
		t.columns = append(t.columns, made)
	}
	if err := e.decideKey(t, info); err != nil {
		return nil, err
	}
	for i := range t.key {
		if err := t.maskKey(&t.key[i], info.Types); err != nil {
			return nil, err
		}
	}
	t.decideIdentity()
	return t, t.buildSchemas()
}

func (t *Table) buildSchemas(extra ...avroField) error {
	namespace := schema.AvroNamespace(t.Topic)
	var err error
	if len(t.key) > 0 {
		if t.KeySchema, err = keySchema(namespace, t.key); err != nil {
			return fault.Wrap(fault.Internal, "the key's schema of topic "+t.Topic, err)
		}
		if t.shape, err = ParseKeyShape(t.KeySchema); err != nil {
			return fault.Wrap(fault.Internal, "the key's schema of topic "+t.Topic, err)
		}
	}
	t.ValueSchema, err = valueSchema(namespace, t.columns, t.key, extra...)
	if err != nil {
		return fault.Wrap(fault.Internal, "the value's schema of topic "+t.Topic, err)
	}
	return nil
}

// HasKey reports whether records of rows have a key. Without one they have a null key, all go to
// one partition, and a delete has no tombstone.
func (t *Table) HasKey() bool { return len(t.key) > 0 || t.ownKey }

// SetIDs stores the ids that the registry gave the two schemas; key is ignored when the table has
// no key. No row can be encoded before.
func (t *Table) SetIDs(key, value int) {
	binary.BigEndian.PutUint32(t.keyHead[1:], uint32(key))
	binary.BigEndian.PutUint32(t.valueHead[1:], uint32(value))
	t.registered = value > 0 && (key > 0 || !t.HasKey())
}

// LeafNotFull tells that the stream announced a leaf of this root whose identity is not FULL: rows
// do not say which leaf they come from, so from now on old rows are KEY. It counts for this Table:
// one that is compiled anew must be told again.
func (t *Table) LeafNotFull() { t.leafNotFull.Store(true) }

// ready is the guard in front of every event.
func (t *Table) ready() error {
	if !t.registered {
		return fault.New(fault.Internal, "a row of topic "+t.Topic+" came before its schemas had ids")
	}
	return nil
}

func tableName(rel *schema.Relation) string { return rel.Namespace + "." + rel.Name }
