package config

import (
	"slices"
	"strings"
	"sync"
)

// Scope says in which maps of a file a key may stand.
type Scope uint8

// The scopes. Both means that the worker's value is the connectors' default.
const (
	InWorker Scope = 1 << iota
	InConnector
	Both = InWorker | InConnector
)

// String returns "worker", "connector" or "both".
func (s Scope) String() string {
	switch s {
	case InWorker:
		return "worker"
	case InConnector:
		return "connector"
	default:
		return "both"
	}
}

// Class says what tidemark does with a key.
type Class uint8

// The classes. Ignored keys warn and never stop anybody; Refused ones would change what comes out
// of the topics, so that ignoring them is no option. Values in Key.Same are accepted silently.
const (
	Supported Class = iota + 1
	Ignored
	Refused
)

// String returns the class's name.
func (c Class) String() string {
	return [...]string{"", "supported", "ignored", "refused"}[c]
}

// Type is what a supported key's value is parsed as.
type Type uint8

// The types. Duration is an integer of milliseconds. A list is separated by commas or is a YAML
// sequence; a comma that belongs to an expression is written \, or stands inside brackets.
const (
	Text Type = iota + 1
	Boolean
	Integer
	Bytes
	Duration
	List
	Regexes
	Enum
	SecretText
	Path
)

// String returns the type's name as the reference prints it.
func (t Type) String() string {
	return [...]string{
		"", "string", "boolean", "integer", "bytes", "duration", "list", "regex list", "enum",
		"secret", "file",
	}[t]
}

// Unit returns the unit that the value is written in, or "".
func (t Type) Unit() string {
	switch t {
	case Duration:
		return "ms"
	case Bytes:
		return "bytes"
	default:
		return ""
	}
}

// Bounds are the least and the greatest legal value, both included.
type Bounds struct{ Min, Max int64 }

// Key is a row of the table of keys. A * in Name stands for one or more characters.
type Key struct {
	Name     string
	Area     string // heading in the reference
	Scope    Scope
	Class    Class
	Type     Type
	Default  string // empty: none, or derived as Meaning says
	Theirs   string // default in Debezium, Connect or Kafka; empty: none, or no such key there
	Bounds   *Bounds
	Enum     []string
	Required bool
	Same     []string // ignored, refused: values that are what tidemark does; no word about them
	Later    bool     // ignored, refused: only in this version

	// Instead has known values of a supported key that are refused, and what to do instead.
	Instead map[string]string

	Meaning string
	Why     string // ignored: why it is not needed; refused: what to do; else: why our default
}

// table holds every key, in the order of the reference.
var table = sync.OnceValue(func() []Key {
	var all []Key
	for _, area := range []struct {
		name string
		keys []Key
	}{
		{"Worker: Kafka", kafkaKeys},
		{"Worker: schema registry", registryKeys},
		{"Worker: process", workerKeys},
		{"Worker: keys of Kafka Connect", connectWorkerKeys},
		{"Producers", producerKeys},
		{"Connector: identity", identityKeys},
		{"Connector: database", databaseKeys},
		{"Connector: slot and publication", slotKeys},
		{"Connector: position and heartbeat", positionKeys},
		{"Connector: what is captured", filterKeys},
		{"Connector: snapshot", snapshotKeys},
		{"Connector: signals and incremental snapshots", signalKeys},
		{"Connector: values and schemas", valueKeys},
		{"Connector: events and topics", topicKeys},
		{"Connector: failures and queue", failureKeys},
		{"Connector: observability and extensions", extensionKeys},
		{"Connector: keys of Kafka Connect", connectKeys},
		{"Connector: former names", formerKeys},
	} {
		for _, k := range area.keys {
			k.Area = area.name
			all = append(all, k)
		}
	}
	return all
})

// Keys returns the table of keys, in the order of the reference.
func Keys() []Key { return slices.Clone(table()) }

// lookup finds the row of a key in a scope: the one of exactly this name, else the pattern with
// the longest text around its stars.
func lookup(name string, scope Scope) (Key, bool) {
	var best Key
	for _, k := range table() {
		if k.Scope&scope == 0 {
			continue
		}
		if k.Name == name {
			return k, true
		}
		if strings.Contains(k.Name, "*") && matchStars(k.Name, name) &&
			len(k.Name) > len(best.Name) {
			best = k
		}
	}
	return best, best.Name != ""
}

// matchStars reports whether name is pattern with one or more characters for each star.
func matchStars(pattern, name string) bool {
	head, tail, found := strings.Cut(pattern, "*")
	if !found {
		return pattern == name
	}
	rest, ok := strings.CutPrefix(name, head)
	if !ok {
		return false
	}
	for i := 1; i <= len(rest); i++ {
		if matchStars(tail, rest[i:]) {
			return true
		}
	}
	return false
}

// nearest returns the known key of the scope that a misspelt one most resembles, or "" when none
// is near. "Near" is at most a third of the name, so that no nonsense is proposed.
func nearest(name string, scope Scope) string {
	best, bestDistance := "", len(name)/3+1
	for _, k := range table() {
		if k.Scope&scope == 0 || strings.Contains(k.Name, "*") {
			continue
		}
		d := editDistance(strings.ToLower(name), k.Name)
		if d < bestDistance || d == bestDistance && best != "" && k.Class < classOf(best, scope) {
			best, bestDistance = k.Name, d
		}
	}
	return best
}

func classOf(name string, scope Scope) Class {
	k, _ := lookup(name, scope)
	return k.Class
}

// editDistance counts the insertions, deletions, replacements and swaps of neighbours that lead
// from a to b (optimal string alignment).
func editDistance(a, b string) int {
	prev2, prev := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], prev2[j-2]+1)
			}
		}
		prev2, prev = prev, row
	}
	return prev[len(b)]
}
