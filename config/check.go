package config

import (
	"crypto/x509"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// check holds a supported key's value against its row.
func (s *section) check(name string, k Key, v value) {
	if v.isList && k.Type != List && k.Type != Regexes {
		s.violate(name, v.line, v.found(k), "one plain value", "")
		return
	}
	text := s.text(name)
	switch k.Type {
	case Boolean:
		if !strings.EqualFold(text, "true") && !strings.EqualFold(text, "false") {
			s.violate(name, v.line, v.found(k), "true or false", "")
		}
	case Integer, Bytes, Duration:
		s.checkInteger(name, k, v, text)
	case Enum:
		s.checkEnum(name, k, v, text)
	case Regexes:
		s.checkRegexes(name, v)
	case Path:
		s.checkPEM(name, v, text)
	case Text, List, SecretText:
		if k.Required && text == "" {
			s.violate(name, v.line, v.found(k), "a value", "")
		}
	}
}

func (s *section) checkInteger(name string, k Key, v value, text string) {
	n, err := strconv.ParseInt(text, 10, 64)
	low, high := int64(math.MinInt64), int64(math.MaxInt64)
	if k.Bounds != nil {
		low, high = k.Bounds.Min, k.Bounds.Max
	}
	if err == nil && n >= low && n <= high {
		return
	}
	wanted := "an integer"
	if unit := k.Type.Unit(); unit != "" {
		wanted += " of " + unit
	}
	if k.Bounds != nil {
		wanted += fmt.Sprintf(" from %d to %d", low, high)
	}
	s.violate(name, v.line, v.found(k), wanted, "")
}

func (s *section) checkEnum(name string, k Key, v value, text string) {
	for _, e := range k.Enum {
		if strings.EqualFold(e, text) {
			return
		}
	}
	if fix, ok := k.Instead[strings.ToLower(text)]; ok {
		s.violate(name, v.line, v.found(k), "", "refused: "+fix)
		return
	}
	s.violate(name, v.line, v.found(k), oneOf(k.Enum), "")
}

// oneOf renders "a, b or c".
func oneOf(values []string) string {
	shown := make([]string, len(values))
	for i, v := range values {
		if shown[i] = v; v == "" {
			shown[i] = "nothing"
		}
	}
	last := len(shown) - 1
	if last == 0 {
		return shown[0]
	}
	return strings.Join(shown[:last], ", ") + " or " + shown[last]
}

// nameParts is how many parts, separated by dots, the names have that a list is matched with.
func nameParts(key string) int {
	switch {
	case strings.HasPrefix(key, "schema."):
		return 1
	case key == "key.text.columns", strings.HasPrefix(key, "column."):
		return 3
	default:
		return 2
	}
}

func (s *section) checkRegexes(name string, v value) {
	entries := v.entries()
	message := strings.HasPrefix(name, "message.") // a prefix is no name of PostgreSQL's
	if len(entries) == 0 && strings.HasSuffix(name, "include.list") && !message {
		// Debezium takes it for "all", which nobody who wrote the key can have meant.
		s.violate(name, v.line, "an empty list", "at least one expression",
			"remove the key to capture everything")
	}
	for _, entry := range entries {
		if _, err := compile(entry); err != nil {
			text := strings.TrimPrefix(err.Error(), "error parsing regexp: ")
			if v.referenced {
				text = "it does not compile"
			}
			s.violate(name, v.line, s.shown(name, entry), "a regular expression (RE2 syntax)", text)
			continue
		}
		if v.referenced || message {
			continue
		}
		want := nameParts(name)
		parts, plain := plainParts(entry)
		if plain && len(parts) < want {
			s.warn(name, v.line, fmt.Sprintf("%s matches nothing: a name here has %d parts, %s",
				show(entry), want, [...]string{
					1: "schema", 2: "schema.table",
					3: "schema.table.column",
				}[want]))
		}
		if cut, long := cutNames(entry); long {
			s.warn(name, v.line, fmt.Sprintf(
				"%s is longer than PostgreSQL's names of %d bytes and is read as %s, as the "+
					"server cuts it", show(entry), maxIdentifier, unescapeDots(cut)))
		}
	}
}

func unescapeDots(entry string) string { return strings.ReplaceAll(entry, `\.`, ".") }

// regexes compiles the entries of a list that compile.
func (s *section) regexes(name string) []*regexp.Regexp {
	var compiled []*regexp.Regexp
	for _, entry := range s.list(name) {
		if !strings.HasPrefix(name, "message.") {
			entry, _ = cutNames(entry)
		}
		if re, err := compile(entry); err == nil {
			compiled = append(compiled, re)
		}
	}
	return compiled
}

// checkPEM checks that a file holds a certificate in PEM.
func (s *section) checkPEM(name string, v value, path string) {
	if path == "" {
		return
	}
	const fix = "a Java truststore is turned into PEM by: keytool -list -rfc -keystore FILE"
	data, err := readSmall(path)
	if err != nil {
		s.violate(name, v.line, s.shown(name, path), "a file of certificates", "the file "+err.Error())
		return
	}
	if !x509.NewCertPool().AppendCertsFromPEM(data) {
		s.violate(name, v.line, s.shown(name, path), "a file of certificates in PEM", fix)
	}
}

// crossCheck looks for connectors that would disturb each other.
func crossCheck(sections []*section, connectors []*Connector) {
	type claim struct {
		what string // what two connectors must not share
		key  string // the key that tells it
	}
	owner := map[claim]string{}
	for i, c := range connectors {
		s := sections[i]
		server := strings.ToLower(c.Database.Host) + ":" + strconv.Itoa(int(c.Database.Port))
		claims := []claim{
			{"topic prefix " + c.TopicPrefix, "topic.prefix"},
			{"slot " + c.SlotName + " on " + server, "slot.name"},
		}
		if c.PublicationAutocreate == "filtered" {
			claims = append(claims, claim{
				"publication " + c.Publication + " on " + server + "/" + c.Database.Name,
				"publication.name",
			})
		}
		for _, cl := range claims {
			if c.Database.Host == "" || c.TopicPrefix == "" {
				break // missing, and told already
			}
			other, taken := owner[cl]
			if !taken {
				owner[cl] = c.Name
				continue
			}
			line, found := s.line, cl.what
			if v, ok := s.raw(cl.key); ok {
				line = v.line
			}
			if s.values[cl.key].referenced {
				found = "****"
			}
			s.violate(cl.key, line, found, "one of its own",
				"connector "+other+" has the same: set another "+cl.key+" in one of them")
		}
	}
}
