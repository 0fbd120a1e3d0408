package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// buildWorker makes the worker's settings. The registry's can come from the connectors.
func buildWorker(s *section, connectors []*section) Worker {
	w := Worker{
		HTTPListen:        s.text("http.listen"),
		OffsetTopic:       s.text("offset.storage.topic"),
		OffsetReplication: int(s.integer("offset.storage.replication.factor")),
		OffsetPartitions:  int(s.integer("offset.storage.partitions")),
	}
	if w.HTTPListen != "" {
		s.checkHostPort("http.listen", w.HTTPListen, true)
	}
	if !topicName.MatchString(w.OffsetTopic) || len(w.OffsetTopic) > maxTopicName {
		v, _ := s.raw("offset.storage.topic")
		s.violate("offset.storage.topic", v.line, s.shown("offset.storage.topic", w.OffsetTopic),
			"letters, digits, dot, underscore, hyphen, up to 249", "")
	}
	if s.integer("offset.storage.replication.factor") == 0 {
		v, _ := s.raw("offset.storage.replication.factor")
		s.violate("offset.storage.replication.factor", v.line, `"0"`, "-1 or a number from 1", "")
	}
	w.Kafka = s.kafka()
	w.Registry = buildRegistry(s, connectors, &w.Kafka)
	return w
}

func (s *section) kafka() Kafka {
	k := Kafka{
		Bootstrap:        s.list("bootstrap.servers"),
		ClientID:         s.text("client.id"),
		SecurityProtocol: s.enum("security.protocol"),
		SASLMechanism:    s.enum("sasl.mechanism"),
		TLSCAFile:        s.text("ssl.truststore.location"),
		TLSEndpointCheck: s.text("ssl.endpoint.identification.algorithm") != "",
		Producer:         s.producer(Producer{}, "producer."),
	}
	for _, broker := range k.Bootstrap {
		s.checkHostPort("bootstrap.servers", broker, false)
	}
	v, hasLogin := s.raw("sasl.jaas.config")
	if !strings.HasPrefix(k.SecurityProtocol, "SASL_") {
		if hasLogin {
			s.warn("sasl.jaas.config", v.line,
				"without effect: security.protocol is "+k.SecurityProtocol)
		}
		return k
	}
	line := s.values["security.protocol"].line
	if !s.has("sasl.mechanism") {
		s.violate("sasl.mechanism", line, "", "",
			"missing: security.protocol "+k.SecurityProtocol+" logs in")
	}
	if !hasLogin {
		if !s.tree.has("sasl.jaas.config") {
			s.violate("sasl.jaas.config", line, "", "",
				"missing: security.protocol "+k.SecurityProtocol+" logs in")
		}
		return k
	}
	user, password, ok := parseJAAS(v.text)
	if !ok {
		s.violate("sasl.jaas.config", v.line, "****",
			`... required username="USER" password="PASSWORD";`, "")
	}
	k.SASLUser, k.SASLPassword = user, NewSecret(password)
	if v.again != nil {
		k.relogin = func() (string, Secret, error) { return loginAgain(v) }
	}
	return k
}

// loginAgain reads the login line's references anew.
func loginAgain(v value) (string, Secret, error) {
	text, err := v.again()
	if err != nil {
		return "", Secret{}, fmt.Errorf("sasl.jaas.config: %w", err)
	}
	user, password, ok := parseJAAS(text)
	if !ok {
		return "", Secret{}, errors.New("sasl.jaas.config: what its references bring in now has " +
			"no username and password")
	}
	return user, NewSecret(password), nil
}

// jaasOption is one option of a login line: name="value", with Java's backslash escapes.
var jaasOption = regexp.MustCompile(
	`(username|password)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s"';]+))`)

// parseJAAS takes user and password out of Java's login line: a module's class, a flag, options
// as name="value", a semicolon.
func parseJAAS(line string) (user, password string, ok bool) {
	found := map[string]string{}
	for _, m := range jaasOption.FindAllStringSubmatch(line, -1) {
		found[m[1]] = unescape(m[2] + m[3] + m[4])
	}
	user, hasUser := found["username"]
	password, hasPassword := found["password"]
	return user, password, hasUser && hasPassword && user != ""
}

// producer reads Kafka's producer keys behind a prefix; base has what is not given.
func (s *section) producer(base Producer, prefix string) Producer {
	worker := prefix == "producer."
	given := func(name string) bool { return worker || s.has(prefix+name) }
	if given("compression.type") {
		base.Compression = s.enum(prefix + "compression.type")
	}
	if given("linger.ms") {
		base.Linger = s.duration(prefix + "linger.ms")
	}
	if given("max.request.size") {
		base.MaxRequestBytes = int(s.integer(prefix + "max.request.size"))
	}
	if given("delivery.timeout.ms") {
		base.DeliveryTimeout = s.duration(prefix + "delivery.timeout.ms")
	}
	if given("request.timeout.ms") {
		base.RequestTimeout = s.duration(prefix + "request.timeout.ms")
	}
	if given("transaction.timeout.ms") {
		base.TransactionTimeout = s.duration(prefix + "transaction.timeout.ms")
	}
	overridden := given("linger.ms") || given("request.timeout.ms") || given("delivery.timeout.ms")
	if !overridden {
		return base
	}
	if least := base.Linger + base.RequestTimeout; base.DeliveryTimeout != 0 &&
		base.DeliveryTimeout < least {
		v := s.values[prefix+"delivery.timeout.ms"]
		s.violate(prefix+"delivery.timeout.ms", v.line,
			strconv.FormatInt(base.DeliveryTimeout.Milliseconds(), 10),
			"at least linger.ms and request.timeout.ms together, "+
				strconv.FormatInt(least.Milliseconds(), 10), "")
	}
	return base
}

// checkHostPort checks host:port; the host may be missing where any is meant.
func (s *section) checkHostPort(key, text string, anyHost bool) {
	host, port, err := net.SplitHostPort(text)
	n, portErr := strconv.ParseUint(port, 10, 16)
	if err == nil && portErr == nil && (n > 0 || anyHost) && (host != "" || anyHost) &&
		!strings.ContainsAny(host, "/@ \t") {
		return
	}
	s.violate(key, s.values[key].line, s.shown(key, text), "host:port", "")
}

// buildRegistry makes the registry's settings from worker, or from converters' options.
func buildRegistry(worker *section, connectors []*section, kafka *Kafka) Registry {
	r := registrySettings{worker: worker, connectors: connectors}
	out := Registry{
		TLSCAFile: r.text("schema.registry.ssl.truststore.location"),
		Timeout:   worker.duration("schema.registry.timeout.ms"),
	}
	r.schemas(&out)
	urls, from, ok := r.find("schema.registry.url")
	if !ok || len(urls.entries()) == 0 {
		if !worker.tree.has("schema.registry.url") || ok {
			worker.violate("schema.registry.url", worker.line, "", "",
				"missing: address of the schema registry")
		}
	}
	for _, text := range urls.entries() {
		out.addURL(from, urls, text)
	}
	source := strings.ToUpper(r.text("basic.auth.credentials.source"))
	info, from, ok := r.find("basic.auth.user.info")
	if !ok {
		info, from, ok = r.find("schema.registry.basic.auth.user.info")
	}
	switch {
	case source == "SASL_INHERIT":
		out.User, out.Password = kafka.SASLUser, kafka.SASLPassword
	case ok && info.text != "":
		user, password, colon := strings.Cut(info.text, ":")
		if !colon {
			from.violate("basic.auth.user.info", info.line, "****", "user:password", "")
		}
		out.User, out.Password = user, NewSecret(password)
	}
	if token, from, ok := r.find("bearer.auth.token"); ok && token.text != "" {
		out.Bearer = NewSecret(token.text)
		if out.User != "" {
			from.violate("bearer.auth.token", token.line, "", "",
				"given beside user and password: remove one of them")
		}
	}
	return out
}

// addURL checks one address and moves user and password out of it.
func (r *Registry) addURL(from *section, v value, text string) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" ||
		u.RawQuery != "" || u.Fragment != "" {
		found := show(text)
		if v.referenced || strings.Contains(text, "@") {
			found = "****"
		}
		from.violate("schema.registry.url", v.line, found, "http://host:port or https://host:port", "")
		return
	}
	if u.User != nil {
		password, _ := u.User.Password()
		r.User, r.Password = u.User.Username(), NewSecret(password)
		if !v.referenced && password != "" && from.file != "" {
			from.warn("schema.registry.url", v.line,
				"the address holds a password: write it as ${env:...} in basic.auth.user.info")
		}
		u.User = nil
	}
	r.URLs = append(r.URLs, strings.TrimSuffix(u.String(), "/"))
}

// registrySettings looks for a key of the registry in worker, then in the options of worker's
// converters, then in those of the connectors'.
type registrySettings struct {
	worker     *section
	connectors []*section
}

func (r registrySettings) text(name string) string {
	if v, _, ok := r.find(name); ok {
		return strings.TrimSpace(v.text)
	}
	return ""
}

// find returns the first value and the section it is in. Another place that says something else is
// an error, or a warning where worker's own key decides.
func (r registrySettings) find(name string) (value, *section, bool) {
	first, owner := value{}, (*section)(nil)
	visit := func(s *section, key string) {
		v, ok := s.raw(key)
		if !ok {
			return
		}
		if owner == nil {
			first, owner = v, s
			return
		}
		if strings.Join(v.entries(), ",") == strings.Join(first.entries(), ",") {
			return
		}
		if r.worker.has(name) {
			s.warn(key, v.line, "without effect: worker's "+name+" is another, and decides")
			return
		}
		s.violate(key, v.line, "", "", "all connectors share one registry, and "+owner.where+
			" says something else: set "+name+" in worker")
	}
	visit(r.worker, name)
	for _, s := range append([]*section{r.worker}, r.connectors...) {
		visit(s, "value.converter."+name)
		visit(s, "key.converter."+name)
	}
	return first, owner, owner != nil
}

// schemas reads how schemas come to the registry and what their subjects are called.
func (r registrySettings) schemas(out *Registry) {
	out.AutoRegister = !strings.EqualFold(r.text("auto.register.schemas"), "false")
	out.UseLatest = strings.EqualFold(r.text("use.latest.version"), "true")
	out.Normalize = strings.EqualFold(r.text("normalize.schemas"), "true")
	out.KeySubjects = r.strategy("key.subject.name.strategy")
	out.ValueSubjects = r.strategy("value.subject.name.strategy")
	if v, from, _ := r.find("use.latest.version"); out.UseLatest && out.AutoRegister {
		from.violate("use.latest.version", v.line, "", "",
			"without effect while schemas are registered: set auto.register.schemas: false beside it")
	}
}

func (r registrySettings) strategy(name string) string {
	v, from, ok := r.find(name)
	if !ok {
		return topicNameStrategy
	}
	for _, s := range []string{topicNameStrategy, recordNameStrategy, topicRecordNameStrategy} {
		if text := strings.TrimSpace(v.text); strings.EqualFold(text, s) ||
			strings.EqualFold(text, strategyPackage+s) {
			return s
		}
	}
	if from != r.worker || !r.worker.has(name) { // else its row has said so
		from.violate(name, v.line, v.found(Key{}), oneOf([]string{
			topicNameStrategy, recordNameStrategy, topicRecordNameStrategy,
		}), "no Java class can be loaded")
	}
	return topicNameStrategy
}
