package connector

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/connector/deliver"
	"github.com/tidemark-cdc/tidemark/connector/metrics"
	"github.com/tidemark-cdc/tidemark/envelope"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/internal/pgdial"
	"github.com/tidemark-cdc/tidemark/schema"
	"github.com/tidemark-cdc/tidemark/schema/catalog"
	"github.com/tidemark-cdc/tidemark/schema/registry"
)

// tables turns relation versions into tables that are ready to encode: types asked of the
// catalog, schemas compiled, registered and given their ids, the topic made. It belongs to the
// pump and is not safe for concurrent use.
type tables struct {
	cfg      *config.Connector
	log      *slog.Logger
	metrics  *metrics.Connector
	enc      *envelope.Encoder
	catalog  *catalog.Catalog
	registry *registry.Client
	schemas  *config.Registry
	producer *deliver.Producer

	byOID   map[uint32]*table
	viaRoot bool
	// A leaf is announced right behind its root; rows name the root only.
	lastAnnounced uint32
	leafNotFull   map[uint32]bool // by root
	unmatched     map[string]int64
	messages      *envelope.Table
	transactions  *envelope.Table
	written       map[string]string // the value schema that each topic's events have, by topic
	announce      announcer

	sent    func(*schema.Relation) bool // whether rows of it were sent before
	finding func(key, text string)
	ids     map[[sha256.Size]byte]int // of schemas by subject, as an earlier session got them

	wait atomic.Pointer[string] // what the pump waits for, for Status
}

// table is one relation of the stream. compiled is nil for one that no rule captures.
type table struct {
	relation *schema.Relation
	compiled *envelope.Table
	counters *metrics.TableCounters
	stale    bool // announced again: what the catalog was asked for may have changed
}

// count counts events, not their tombstones.
func (t *table) count(records []envelope.Record) {
	for i := range records {
		if r := &records[i]; r.Value != nil {
			t.counters.Event(r.Op)
		}
	}
}

func (ts *tables) captured(rel *schema.Relation) bool {
	return ts.cfg.Tables.Captured(rel.Namespace, rel.Name)
}

// announced takes note of a Relation message: nothing is compiled before the first row.
func (ts *tables) announced(ctx context.Context, rel *schema.Relation) error {
	if ts.viaRoot {
		leaf, err := ts.announcedLeaf(ctx, rel)
		if err != nil || leaf {
			return err
		}
	}
	ts.lastAnnounced = rel.OID
	switch t := ts.byOID[rel.OID]; {
	case t == nil:
	case t.relation != rel:
		delete(ts.byOID, rel.OID)
	case rel.Identity == schema.IdentityFull:
		t.stale = true // the primary key is not in the message
	}
	return nil
}

// announcedLeaf says whether a relation is a leaf of a root that rows come under. A leaf whose
// identity is not FULL makes every old row of its root doubtful, since rows do not name their
// leaf. One that the catalog has lost may be a leaf or a table of its own: the relation announced
// just before, which would be its root, is doubted, and its own rows are taken as they come.
func (ts *tables) announcedLeaf(ctx context.Context, rel *schema.Relation) (bool, error) {
	root, err := ts.catalog.RootOf(ctx, rel.OID)
	gone := errors.Is(err, catalog.ErrNoRelation)
	switch {
	case gone:
		root = ts.lastAnnounced
	case err != nil:
		return false, pgdial.Wrap(err)
	case root == rel.OID:
		return false, nil
	}
	if rel.Identity != schema.IdentityFull && root != 0 {
		ts.leafNotFull[root] = true
		if t := ts.byOID[root]; t != nil && t.compiled != nil {
			t.compiled.LeafNotFull()
		}
	}
	return !gone, nil
}

// lookup returns the table of a row's relation, made ready at its first row.
func (ts *tables) lookup(ctx context.Context, rel *schema.Relation) (*table, error) {
	if t := ts.byOID[rel.OID]; t != nil && t.relation == rel && !t.stale {
		return t, nil
	}
	t := &table{relation: rel}
	if ts.captured(rel) {
		if err := ts.prepare(ctx, t); err != nil {
			return nil, err
		}
	}
	ts.byOID[rel.OID] = t
	return t, nil
}

// prepare compiles a captured table and makes its topic and subjects ready.
func (ts *tables) prepare(ctx context.Context, t *table) error {
	ts.producer.Push() // catalog and registry may be slow
	info, err := ts.catalog.Table(ctx, t.relation)
	if err != nil {
		return pgdial.Wrap(err)
	}
	if t.compiled, err = ts.enc.Compile(t.relation, info); err != nil {
		return err
	}
	if ts.leafNotFull[t.relation.OID] {
		t.compiled.LeafNotFull()
	}
	t.counters = ts.metrics.Table(t.relation.Namespace + "." + t.relation.Name)
	if err := ts.schemaChange(ctx, t); err != nil {
		return err
	}
	topic := t.compiled.Topic
	known := ts.producer.Prepared(topic) // what this session made is no loss
	if err := ts.ready(ctx, t.compiled); err != nil {
		return err
	}
	ts.written[topic] = t.compiled.ValueSchema
	if !known && ts.producer.Made(topic) && ts.sent(t.relation) {
		ts.finding("topic/"+topic, "topic "+topic+" was missing and has been made again: it holds "+
			"nothing of what was sent before; tidemark offsets reset and a new start send all rows again")
	}
	return nil
}

// ready makes the topic and registers the schemas of a compiled table.
func (ts *tables) ready(ctx context.Context, c *envelope.Table) error {
	if err := ts.producer.EnsureTopic(ctx, c.Topic, c.HasKey()); err != nil {
		return err
	}
	if ts.cfg.RecordTooLarge == "truncate" {
		c.SetLimit(ts.producer.MaxBytes(c.Topic))
	}
	keyID := 0
	if c.HasKey() {
		id, err := ts.register(ctx, c.Topic, true, c.KeySchema)
		if err != nil {
			return err
		}
		keyID = id
	}
	valueID, err := ts.register(ctx, c.Topic, false, c.ValueSchema)
	if err != nil {
		return err
	}
	c.SetIDs(keyID, valueID)
	return nil
}

// subject is the subject of a topic's key or value schema.
func (ts *tables) subject(topic string, key bool, text string) string {
	return ts.schemas.Subject(topic, registry.RecordName(text), key)
}

// register asks the registry until it answers: to register a schema, or for the id of what is
// registered.
func (ts *tables) register(
	ctx context.Context, topic string, key bool, text string,
) (id int, err error) {
	subject, request := ts.subject(topic, key, text), ts.registry.Register
	switch {
	case ts.schemas.AutoRegister:
	case ts.schemas.UseLatest:
		request = ts.registry.UsableLatest
	default:
		request = ts.registry.Registered
	}
	err = ts.ask(ctx, "register", subject, func() error {
		var err error
		id, err = request(ctx, subject, text)
		switch {
		case err == nil:
			ts.metrics.SchemaRegistration(metrics.RegistrationOK)
			ts.compareID(subject, text, id)
		case fault.Has(err, fault.RegistryUnreachable):
			ts.metrics.SchemaRegistration(metrics.RegistrationFailed)
		default:
			ts.metrics.SchemaRegistration(metrics.RegistrationRefused)
		}
		return err
	})
	return id, err
}

// ask repeats a request to the registry until it is answered. A registry that is down holds this
// table up, and with it the stream; the status updates go on meanwhile.
func (ts *tables) ask(ctx context.Context, verb, subject string, request func() error) error {
	wait := newBackoff(ts.cfg.RetryDelayMax)
	defer ts.wait.Store(nil)
	for said := false; ; said = true {
		err := request()
		if err == nil || !fault.Has(err, fault.RegistryUnreachable) {
			return err
		}
		text := "the registry does not answer; the stream waits to " + verb + " subject " + subject
		ts.wait.Store(&text)
		if !said {
			ts.log.Warn("the registry does not answer; the stream waits", "subject", subject, "error", err)
		}
		if !sleep(ctx, wait.delay()) {
			return err
		}
	}
}

// compareID notices a registry that gives a schema another id than before: it was restored from a
// backup, or is another one, and what the topic has may no longer be readable.
func (ts *tables) compareID(subject, text string, id int) {
	key := sha256.Sum256([]byte(subject + "\x00" + text))
	if before, ok := ts.ids[key]; ok && before != id {
		ts.finding("registry/"+subject, fmt.Sprintf("the registry gives the schema of subject %s id %d, "+
			"and gave %d before: it was restored or replaced; events that are there name id %d", subject,
			id, before, before))
	}
	ts.ids[key] = id
}

// waiting says what keeps the pump, "" when nothing does. Any goroutine may ask.
func (ts *tables) waiting() string {
	if p := ts.wait.Load(); p != nil {
		return *p
	}
	return ""
}

// skipUnmatched counts a row of a published relation that no rule captures: it is named once,
// not dropped in silence.
func (ts *tables) skipUnmatched(rel *schema.Relation) {
	name := rel.Namespace + "." + rel.Name
	if ts.unmatched[name]++; ts.unmatched[name] == 1 {
		ts.log.Warn("rows of a published table that no rule captures are not sent", "table", name)
	}
	ts.metrics.UnmatchedRelation()
}

// messageTable returns the compiled table of logical messages, made ready at the first one.
func (ts *tables) messageTable(ctx context.Context) (*envelope.Table, error) {
	if ts.messages != nil {
		return ts.messages, nil
	}
	m, err := ts.enc.CompileMessages()
	if err != nil {
		return nil, err
	}
	if err := ts.ready(ctx, m); err != nil {
		return nil, err
	}
	ts.messages = m
	return m, nil
}

// transactionTable returns the compiled table of the topic of transactions, made ready at the first
// one that has events.
func (ts *tables) transactionTable(ctx context.Context) (*envelope.Table, error) {
	if ts.transactions != nil {
		return ts.transactions, nil
	}
	t, err := ts.enc.CompileTransactions(ts.cfg.TransactionTopic)
	if err != nil {
		return nil, err
	}
	if err := ts.ready(ctx, t); err != nil {
		return nil, err
	}
	ts.transactions = t
	return t, nil
}
