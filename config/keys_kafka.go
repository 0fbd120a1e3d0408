package config

import "slices"

const (
	oneIdentity = "the brokers are reached with one identity a process: give it in worker, " +
		"without prefix"
	clientTuning = "the Go client chooses this itself"
)

// kafkaKeys are the keys of all Kafka clients of the process.
var kafkaKeys = []Key{
	{
		Name: "bootstrap.servers", Scope: InWorker, Class: Supported, Type: List, Required: true,
		Meaning: "Brokers to ask first, each host:port.",
	},
	{
		Name: "client.id", Scope: InWorker, Class: Supported, Type: Text, Default: "tidemark",
		Meaning: "Name under which the brokers log us and keep quotas.",
		Why:     "an empty name cannot be found in the broker's logs",
	},
	{
		Name: "security.protocol", Scope: InWorker, Class: Supported, Type: Enum,
		Default: "PLAINTEXT", Theirs: "PLAINTEXT",
		Enum:    []string{"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"},
		Meaning: "Whether connections to brokers are encrypted (SSL) and log in (SASL).",
	},
	{
		Name: "sasl.mechanism", Scope: InWorker, Class: Supported, Type: Enum, Theirs: "GSSAPI",
		Enum:    []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"},
		Meaning: "How to log in; required with SASL_PLAINTEXT and SASL_SSL.",
		Why:     "Kerberos and OAUTHBEARER are not in this version, so that there is nothing to assume",
	},
	{
		Name: "sasl.jaas.config", Scope: InWorker, Class: Supported, Type: SecretText,
		Meaning: "Java's login line; username=\"...\" and password=\"...\" are taken from it.",
	},
	{
		Name: "ssl.truststore.location", Scope: InWorker, Class: Supported, Type: Path,
		Meaning: "File of the certificate authorities (PEM) that vouch for the brokers; " +
			"without it the system's.",
	},
	{
		Name: "ssl.truststore.type", Scope: InWorker, Class: Supported, Type: Enum,
		Default: "PEM", Theirs: "JKS", Enum: []string{"PEM"},
		Meaning: "Format of the truststore. A JKS or PKCS12 file is turned into PEM by " +
			"`keytool -list -rfc -keystore FILE`.",
		Why: "Java's own formats need Java",
	},
	{
		Name: "ssl.endpoint.identification.algorithm", Scope: InWorker, Class: Supported,
		Type: Enum, Default: "https", Theirs: "https", Enum: []string{"https", ""},
		Meaning: "Whether the broker's certificate must carry its host name; empty switches " +
			"that off.",
	},
	{
		Name: "ssl.truststore.password", Scope: InWorker, Class: Ignored, Type: SecretText,
		Meaning: "Password of a Java truststore.", Why: "a PEM file of certificates has none",
	},
	{
		Name: "ssl.truststore.certificates", Scope: InWorker, Class: Refused, Type: Text,
		Meaning: "Certificates written into the configuration.",
		Why:     "write them to a file and name it in ssl.truststore.location",
	},
	{
		Name: "ssl.keystore.*", Scope: InWorker, Class: Refused, Type: SecretText, Later: true,
		Meaning: "Client certificate for the brokers.",
		Why:     "client certificates are not in this version: log in with SASL_SSL",
	},
	{
		Name: "ssl.key.password", Scope: InWorker, Class: Refused, Type: SecretText, Later: true,
		Meaning: "Password of the client's key.",
		Why:     "client certificates are not in this version: log in with SASL_SSL",
	},
	ignored(InWorker, "ssl.protocol", "TLSv1.3", "TLS version.",
		"TLS 1.2 and later are negotiated"),
	ignored(InWorker, "ssl.enabled.protocols", "TLSv1.2,TLSv1.3", "TLS versions.",
		"TLS 1.2 and later are negotiated"),
	ignored(InWorker, "ssl.cipher.suites", "", "Cipher suites.", "Go's safe ones are used"),
	ignored(InWorker, "ssl.provider", "", "Java security provider.", "there is no Java here"),
	ignored(InWorker, "ssl.trustmanager.algorithm", "PKIX", "Java trust manager.",
		"there is no Java here"),
	ignored(InWorker, "ssl.keymanager.algorithm", "SunX509", "Java key manager.",
		"there is no Java here"),
	ignored(InWorker, "ssl.secure.random.implementation", "", "Java random source.",
		"there is no Java here"),
	{
		Name: "sasl.kerberos.*", Scope: InWorker, Class: Refused, Type: Text, Later: true,
		Meaning: "Kerberos login.", Why: "Kerberos is not in this version: use SCRAM-SHA-512",
	},
	{
		Name: "sasl.oauthbearer.*", Scope: InWorker, Class: Refused, Type: Text, Later: true,
		Meaning: "OAUTHBEARER login.",
		Why:     "OAUTHBEARER is not in this version: use SCRAM-SHA-512",
	},
	{
		Name: "sasl.*.class", Scope: InWorker, Class: Refused, Type: Text,
		Meaning: "Java class for logging in.", Why: "no Java class can be loaded: use PLAIN or SCRAM",
	},
	ignored(InWorker, "sasl.login.*", "", "Refresh of logins.", clientTuning),
	ignored(InWorker, "client.dns.lookup", "use_all_dns_ips", "DNS lookups.", clientTuning),
	ignored(InWorker, "client.rack", "", "Rack for reading from near replicas.", clientTuning),
	ignored(InWorker, "request.timeout.ms", "40000", "Limit of one request of the worker.",
		"producer.request.timeout.ms is what counts here"),
	ignored(InWorker, "retry.backoff.ms", "100", "Pause between retries.", clientTuning),
	ignored(InWorker, "retry.backoff.max.ms", "1000", "Longest pause.", clientTuning),
	ignored(InWorker, "reconnect.backoff.ms", "50", "Pause between reconnects.", clientTuning),
	ignored(InWorker, "reconnect.backoff.max.ms", "1000", "Longest pause.", clientTuning),
	ignored(InWorker, "metadata.max.age.ms", "300000", "Age of metadata.", clientTuning),
	ignored(InWorker, "metadata.recovery.*", "", "Metadata recovery.", clientTuning),
	ignored(InWorker, "connections.max.idle.ms", "540000", "Idle connections.", clientTuning),
	ignored(InWorker, "send.buffer.bytes", "131072", "Socket buffer.", clientTuning),
	ignored(InWorker, "receive.buffer.bytes", "32768", "Socket buffer.", clientTuning),
	ignored(InWorker, "socket.connection.setup.*", "", "Connecting.", clientTuning),
}

// producerKeys are Kafka's keys of producers: producer.* in worker, producer.override.* in a
// connector. The rows are written once and given both names.
var producerKeys = bothProducers(slices.Concat(securityRows(), []Key{
	{
		Name: "compression.type", Class: Supported, Type: Enum, Default: "lz4", Theirs: "none",
		Enum:    []string{"none", "gzip", "snappy", "lz4", "zstd"},
		Meaning: "Compression of batches.",
		Why:     "change events of one table compress to a fraction; lz4 costs about a microsecond a record",
	},
	{
		Name: "linger.ms", Class: Supported, Type: Duration, Default: "5", Theirs: "5",
		Bounds: &Bounds{0, 60_000},
		Meaning: "How long a batch waits for more records while more is being read; at the end of " +
			"what has come it is sent at once.",
	},
	ignoredProducer("batch.size", "16384", "Size of a batch.",
		"batches fill up to max.request.size and the topic's max.message.bytes by themselves"),
	{
		Name: "max.request.size", Class: Supported, Type: Bytes, Default: "1048576",
		Theirs: "1048576", Bounds: &Bounds{1024, 1 << 30},
		Meaning: "Largest record; a larger one stops the connector with record_too_large. " +
			"Raise message.max.bytes of broker or topic with it.",
	},
	{
		Name: "delivery.timeout.ms", Class: Supported, Type: Duration, Default: "0",
		Theirs: "120000", Bounds: &Bounds{0, 86_400_000},
		Meaning: "How long a record may wait for its confirmation before the connector starts " +
			"its session anew; 0 is for ever.",
		Why: "brokers that are away are waited for: reading stops at max.queue.bytes, the slot keeps " +
			"the WAL, /readyz is red, and it goes on by itself",
	},
	{
		Name: "request.timeout.ms", Class: Supported, Type: Duration, Default: "30000",
		Theirs: "30000", Bounds: &Bounds{100, 900_000},
		Meaning: "How long a broker may take over one request.",
	},
	{
		Name: "transaction.timeout.ms", Class: Supported, Type: Duration, Default: "60000",
		Theirs: "60000", Bounds: &Bounds{1000, 900_000},
		Meaning: "After how long the broker aborts a transaction of a process that died.",
	},
	{
		Name: "acks", Class: Refused, Type: Text, Theirs: "all", Same: []string{"all", "-1"},
		Meaning: "Whose confirmation counts.",
		Why:     "only all is safe: less would acknowledge to PostgreSQL what a broker can lose",
	},
	{
		Name: "enable.idempotence", Class: Refused, Type: Boolean, Theirs: "true",
		Same: []string{"true"}, Meaning: "Whether a retry may write a record twice.",
		Why: "order per key rests on it: remove the key",
	},
	{
		Name: "transactional.id", Class: Refused, Type: Text,
		Meaning: "Kafka's name of a transactional producer.",
		Why:     "it is derived from the connector's name; a shared one would fence others: remove it",
	},
	{
		Name: "partitioner.class", Class: Refused, Type: Text,
		Meaning: "Java class that chooses partitions.",
		Why:     "see partition.by",
	},
	{
		Name: "interceptor.classes", Class: Refused, Type: Text,
		Meaning: "Java classes that may change records.", Why: "no Java class can be loaded",
	},
	{
		Name: "bootstrap.servers", Class: Refused, Type: Text,
		Meaning: "Other brokers for producers.",
		Why:     "one process writes to one Kafka cluster: use bootstrap.servers of worker",
	},
	ignoredProducer("retries", "2147483647", "Retries.",
		"retries go on, in order, for as long as delivery.timeout.ms says"),
	ignoredProducer("max.in.flight.requests.per.connection", "5", "Requests under way.",
		"idempotent producers keep their order with any legal value"),
	ignoredProducer("buffer.memory", "33554432", "Producer memory.",
		"max.queue.bytes bounds everything that is read and not confirmed"),
	ignoredProducer("max.block.ms", "60000", "How long sending may block.",
		"sending waits for room; that is what slows the reader down"),
	ignoredProducer("key.serializer", "", "Java class.", "Avro is what is written"),
	ignoredProducer("value.serializer", "", "Java class.", "Avro is what is written"),
	ignoredProducer("client.id", "", "Name of the producer.", "client.id of worker names us"),
	ignoredProducer("*", "", "Any other key of Kafka's producers.", clientTuning),
}))

// securityRows are the producer's forms of keys that all clients share. In worker they may repeat
// what stands there without prefix, as Connect's own examples do.
func securityRows() []Key {
	names := []string{
		"security.protocol", "sasl.mechanism", "sasl.jaas.config", "ssl.*", "sasl.*",
	}
	rows := make([]Key, 0, len(names))
	for _, name := range names {
		rows = append(rows, Key{
			Name: name, Class: Refused, Type: SecretText,
			Meaning: "Security of producers. Accepted when it repeats the worker's.",
			Why:     oneIdentity,
		})
	}
	return rows
}

func bothProducers(keys []Key) []Key {
	all := make([]Key, 0, 2*len(keys))
	for _, k := range keys {
		name := k.Name
		k.Name, k.Scope = "producer."+name, InWorker
		all = append(all, k)
		k.Name, k.Scope = "producer.override."+name, InConnector
		if k.Class == Supported {
			k.Meaning = "The connector's own value of producer." + name + "."
			k.Default, k.Why = "", ""
		}
		all = append(all, k)
	}
	return all
}

// ignored makes the row of a key without effect.
func ignored(scope Scope, name, theirs, meaning, why string) Key {
	return Key{
		Name: name, Scope: scope, Class: Ignored, Type: Text, Theirs: theirs, Meaning: meaning,
		Why: why,
	}
}

// accepted is ignored, and silent about values that are what tidemark does anyway.
func accepted(scope Scope, name, theirs, meaning, why string, same ...string) Key {
	k := ignored(scope, name, theirs, meaning, why)
	k.Same = same
	return k
}

func ignoredProducer(name, theirs, meaning, why string) Key {
	return ignored(0, name, theirs, meaning, why)
}

// refused makes the row of a connector's key that would change what comes out.
func refused(name, theirs, meaning, why string, same ...string) Key {
	return Key{
		Name: name, Scope: InConnector, Class: Refused, Type: Text, Theirs: theirs, Same: same,
		Meaning: meaning, Why: why,
	}
}

// notYet is refused, in this version only.
func notYet(name, theirs, meaning, why string, same ...string) Key {
	k := refused(name, theirs, meaning, why, same...)
	k.Later = true
	return k
}
