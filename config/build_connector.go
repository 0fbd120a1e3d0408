package config

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const maxTopicName = 249 // Kafka's limit of a topic's name

var (
	topicName = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)
	slotName  = regexp.MustCompile(`^[a-z0-9_]{1,63}$`)

	transactionTopic = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
)

// buildConnector makes one connector's settings; worker's are the defaults of some.
func buildConnector(s, worker *section, w *Worker) *Connector {
	flush := worker
	if s.has("offset.flush.interval.ms") {
		flush = s
	}
	c := &Connector{
		Name:        s.name,
		TopicPrefix: s.text("topic.prefix"),
		Database:    s.database(),

		SlotName:              s.text("slot.name"),
		SlotAdopt:             s.boolean("slot.adopt"),
		SlotTakeover:          s.duration("slot.takeover.timeout.ms"),
		SlotDropOnStop:        s.boolean("slot.drop.on.stop"),
		SlotFailover:          s.boolean("slot.failover"),
		OnSlotGap:             s.enum("on.slot.gap"),
		Publication:           s.text("publication.name"),
		PublicationAutocreate: s.enum("publication.autocreate.mode"),
		PublishViaRoot:        s.boolean("publish.via.partition.root"),

		Tables:  s.filter(),
		Columns: s.columns(),

		SnapshotMode:        s.enum("snapshot.mode"),
		SnapshotLockTimeout: s.duration("snapshot.lock.timeout.ms"),

		OffsetFlush:          flush.duration("offset.flush.interval.ms"),
		HeartbeatInterval:    s.duration("heartbeat.interval.ms"),
		HeartbeatVerify:      s.duration("heartbeat.verify.interval.ms"),
		HeartbeatTimeout:     s.duration("heartbeat.timeout.ms"),
		IdleAdvanceAfter:     s.duration("idle.advance.after.ms"),
		CatalogCheck:         s.duration("catalog.check.interval.ms"),
		StatusInterval:       s.duration("status.update.interval.ms"),
		MaxQueueBytes:        s.integer("max.queue.bytes"),
		BeforeImageRequired:  s.regexes("before.image.required"),
		ReselectUnavailable:  s.boolean("reselect.unavailable.values"),
		ValueUnrepresentable: s.enum("value.unrepresentable"),
		SchemaLogicalChange:  s.enum("schema.logical.change"),
		RecordTooLarge:       s.enum("record.too.large"),
		TombstonesOnDelete:   s.boolean("tombstones.on.delete"),
		SkippedOperations:    s.skipped(),
		HeadersEnable:        s.boolean("headers.enable"),
		PartitionBy:          s.enum("partition.by"),
		DecimalMode:          s.enum("decimal.handling.mode"),
		MoneyDigits:          s.moneyDigits(),
		KeyTextColumns:       s.regexes("key.text.columns"),
		MessageKeyColumns:    s.keyColumns(),
		Messages: MessageFilter{
			Include: s.regexes("message.prefix.include.list"),
			Exclude: s.regexes("message.prefix.exclude.list"),
		},
		TransactionMetadata: s.boolean("provide.transaction.metadata"),
		TransactionTopic:    s.text("topic.transaction"),
		TopicCreation:       s.topicCreation(),
		Producer:            s.producer(w.Kafka.Producer, "producer.override."),
		MaxRetries:          int(s.integer("errors.max.retries")),
		RetryDelayMax:       s.duration("errors.retry.delay.max.ms"),
	}
	if c.SnapshotMode == "never" {
		c.SnapshotMode = "no_data"
	}
	c.Primary = s.primary(c.Database)
	s.exactlyOnce(c)
	s.checkNames(c)
	return c
}

// exactlyOnce reads the keys of exactly.once. A Kafka transaction must be over long before the
// broker gives it up.
func (s *section) exactlyOnce(c *Connector) {
	switch s.enum("exactly.once.support") {
	case "requested":
		s.warn("exactly.once.support", s.values["exactly.once.support"].line,
			"counts as disabled: events come at least once, with a position to drop repeats by")
	case "required":
		c.ExactlyOnce = true
	}
	c.ExactlyOnceBytes = min(s.integer("exactly.once.batch.bytes"), c.MaxQueueBytes)
	c.ExactlyOnceEvery = s.duration("exactly.once.batch.ms")
	if most := c.Producer.TransactionTimeout / 4; c.ExactlyOnce && c.ExactlyOnceEvery > most {
		v := s.values["exactly.once.batch.ms"]
		s.violate("exactly.once.batch.ms", v.line,
			strconv.FormatInt(c.ExactlyOnceEvery.Milliseconds(), 10),
			"at most a fourth of producer.override.transaction.timeout.ms, "+
				strconv.FormatInt(most.Milliseconds(), 10), "")
	}
}

// checkNames checks the names that other systems have rules for.
func (s *section) checkNames(c *Connector) {
	bad := func(key, found, wanted string) {
		v, ok := s.raw(key)
		if !ok {
			v.line = s.line
		}
		if v.referenced {
			found = "****"
		}
		s.violate(key, v.line, found, wanted, "")
	}
	if c.Name == "" || len(c.Name) > 200 || !utf8.ValidString(c.Name) ||
		strings.ContainsFunc(c.Name, unicode.IsControl) {
		bad("name", show(c.Name), "1 to 200 bytes without control characters")
	}
	if v, ok := s.raw("name"); ok && v.text != c.Name {
		bad("name", v.found(Key{}), "the connector's name, "+show(c.Name))
	}
	// What stands behind the prefix takes at least four characters, ".s.t".
	if c.TopicPrefix != "" &&
		(!topicName.MatchString(c.TopicPrefix) || len(c.TopicPrefix) > maxTopicName-4) {
		bad("topic.prefix", show(c.TopicPrefix),
			"letters, digits, dot, underscore, hyphen, up to 245")
	}
	if t := c.TransactionTopic; !transactionTopic.MatchString(t) || t == messageTopic ||
		t == eventTopic || len(c.TopicPrefix)+1+len(t) > maxTopicName {
		bad("topic.transaction", show(t), "letters, digits, underscore, hyphen, and the name of no "+
			"other topic of the connector")
	}
	if !slotName.MatchString(c.SlotName) {
		bad("slot.name", show(c.SlotName), "1 to 63 of a-z, 0-9 and underscore")
	}
	if n := len(c.Publication); n < 1 || n > maxIdentifier {
		bad("publication.name", show(c.Publication), "1 to 63 bytes")
	}
}

func (s *section) database() Database {
	d := Database{
		Host:              s.text("database.hostname"),
		Port:              uint16(s.integer("database.port")), //nolint:gosec // bounded by its row
		User:              s.text("database.user"),
		Password:          s.secret("database.password"),
		Name:              s.text("database.dbname"),
		SSLMode:           s.enum("database.sslmode"),
		SSLRootCert:       s.text("database.sslrootcert"),
		ConnectTimeout:    s.duration("database.connect.timeout.ms"),
		QueryTimeout:      s.duration("database.query.timeout.ms"),
		TCPKeepAlive:      s.boolean("database.tcpKeepAlive"),
		InitialStatements: splitStatements(s.text("database.initial.statements")),
	}
	s.checkHosts("database.hostname", d.Host)
	if d.SSLMode == "" {
		d.SSLMode = defaultSSLMode(d.Host)
	}
	return d
}

// primary reads primary.*: what is not given there is as for the database, which is a standby then.
func (s *section) primary(standby Database) *Database {
	if !s.has("primary.hostname") {
		for _, key := range []string{"primary.port", "primary.user", "primary.password"} {
			if v, ok := s.raw(key); ok {
				s.violate(key, v.line, "no primary.hostname", "primary.hostname beside it", "")
			}
		}
		return nil
	}
	d := standby
	d.Host = s.text("primary.hostname")
	s.checkHosts("primary.hostname", d.Host)
	if s.has("primary.port") {
		d.Port = uint16(s.integer("primary.port")) //nolint:gosec // bounded by its row
	}
	if s.has("primary.user") {
		d.User = s.text("primary.user")
	}
	if s.has("primary.password") {
		d.Password = s.secret("primary.password")
	}
	if !s.has("database.sslmode") {
		d.SSLMode = defaultSSLMode(d.Host)
	}
	return &d
}

func (s *section) checkHosts(key, hosts string) {
	v, ok := s.raw(key)
	if !ok {
		return
	}
	for _, host := range strings.Split(hosts, ",") {
		if !isHost(strings.TrimSpace(host)) {
			s.violate(key, v.line, s.shown(key, host),
				"a host name, an IP address, or the directory of a Unix socket",
				"the port stands in "+strings.TrimSuffix(key, "hostname")+"port")
		}
	}
}

// defaultSSLMode is what database.sslmode is when it is not given.
func defaultSSLMode(hosts string) string {
	mode := "disable"
	for _, host := range strings.Split(hosts, ",") {
		host = strings.ToLower(strings.TrimSpace(host))
		address, err := netip.ParseAddr(host)
		switch {
		case strings.HasPrefix(host, "/"):
		case host == "localhost" || err == nil && address.Unmap().IsLoopback():
			mode = "prefer"
		default:
			return "verify-full"
		}
	}
	return mode
}

func isHost(host string) bool {
	if host == "" || strings.ContainsFunc(host, unicode.IsSpace) {
		return false
	}
	if host[0] == '/' {
		return true
	}
	if strings.Contains(host, ":") {
		_, err := netip.ParseAddr(host)
		return err == nil
	}
	return !strings.ContainsAny(host, "/@?&='\"\\")
}

// splitStatements splits at single semicolons; two stand for one that belongs to the statement.
func splitStatements(text string) []string {
	const mark = "\x00"
	var statements []string
	for _, part := range strings.Split(strings.ReplaceAll(text, ";;", mark), ";") {
		part = strings.TrimSpace(strings.ReplaceAll(part, mark, ";"))
		if part != "" {
			statements = append(statements, part)
		}
	}
	return statements
}

func (s *section) filter() Filter {
	for _, level := range []string{"schema", "table", "column", "message.prefix"} {
		v, exclude := s.raw(level + ".exclude.list")
		if exclude && s.has(level+".include.list") {
			s.violate(level+".exclude.list", v.line, "", "",
				"given beside "+level+".include.list: remove one of them")
		}
	}
	return Filter{
		SchemaInclude: s.regexes("schema.include.list"),
		SchemaExclude: s.regexes("schema.exclude.list"),
		TableInclude:  s.regexes("table.include.list"),
		TableExclude:  s.regexes("table.exclude.list"),
	}
}

func (s *section) skipped() map[byte]bool {
	skipped := map[byte]bool{}
	ops := s.list("skipped.operations")
	for _, op := range ops {
		switch {
		case op == "none" && len(ops) == 1:
		case len(op) == 1 && strings.Contains("cudt", op):
			skipped[op[0]] = true
		default:
			v := s.values["skipped.operations"]
			s.violate("skipped.operations", v.line, s.shown("skipped.operations", op),
				"some of c, u, d and t; or none alone", "")
		}
	}
	return skipped
}

// moneyDigits returns -1 when the database shall be asked.
func (s *section) moneyDigits() int {
	if !s.has("money.fraction.digits") {
		return -1
	}
	return int(s.integer("money.fraction.digits"))
}

// keyColumns reads message.key.columns: TABLE:COLUMN,COLUMN;TABLE:COLUMN.
func (s *section) keyColumns() []KeyColumns {
	v, ok := s.raw("message.key.columns")
	if !ok {
		return nil
	}
	entries := v.items
	if !v.isList {
		entries = strings.Split(v.text, ";")
	}
	var keys []KeyColumns
	for _, entry := range entries {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		key, err := parseKeyColumns(entry)
		if err != nil {
			s.violate("message.key.columns", v.line, s.shown("message.key.columns", entry),
				"TABLE:COLUMN,COLUMN;...", err.Error())
			continue
		}
		keys = append(keys, key)
	}
	return keys
}

func parseKeyColumns(entry string) (KeyColumns, error) {
	i := strings.LastIndexByte(entry, ':')
	if i < 1 {
		return KeyColumns{}, fmt.Errorf("there is no colon behind the table")
	}
	table, _ := cutNames(strings.TrimSpace(entry[:i]))
	re, err := compile(table)
	if err != nil {
		return KeyColumns{}, fmt.Errorf("the table's expression does not compile")
	}
	key := KeyColumns{Table: re}
	for _, column := range strings.Split(entry[i+1:], ",") {
		column = strings.TrimSpace(column)
		if column == "" || slices.Contains(key.Columns, column) {
			return KeyColumns{}, fmt.Errorf("a column is empty or comes twice")
		}
		key.Columns = append(key.Columns, column)
	}
	return key, nil
}

func (s *section) topicCreation() TopicCreation {
	const prefix = "topic.creation.default."
	t := TopicCreation{
		Partitions:  int(s.integer(prefix + "partitions")),
		Replication: int(s.integer(prefix + "replication.factor")),
		Configs:     map[string]string{},
	}
	for _, name := range []string{"partitions", "replication.factor"} {
		if v, ok := s.raw(prefix + name); ok && strings.TrimSpace(v.text) == "0" {
			s.violate(prefix+name, v.line, `"0"`, "-1 or a number from 1", "")
		}
	}
	for name := range s.values {
		if k, _ := lookup(name, s.scope); k.Name == prefix+"*" {
			t.Configs[strings.TrimPrefix(name, prefix)] = s.text(name)
		}
	}
	return t
}
