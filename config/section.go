package config

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// section is a map of keys and values: worker's, or one connector's. settle fills values; the
// getters then parse what settle has found legal, and return the default for what is missing or
// wrong, so that building settings goes on to find the rest of what is wrong.
type section struct {
	report *report
	where  string // "worker" or "connectors.NAME"
	name   string // connector
	scope  Scope
	file   string
	line   int
	tree   node
	worker *section // of a connector
	values map[string]value
}

// value is what a file gives for a key, references resolved.
type value struct {
	text       string
	items      []string // of a YAML sequence
	isList     bool
	referenced bool                   // holds what a reference brought in, so it is never shown
	again      func() (string, error) // resolves the references anew; nil when there are none
	line       int
	name       string // the key's name, of a key that has a salt in it: references resolved
}

// entries returns the value as a list.
func (v value) entries() []string {
	if v.isList {
		return v.items
	}
	return splitList(v.text)
}

func (s *section) violate(key string, line int, found, wanted, fix string) {
	s.report.violate(Violation{
		File: s.file, Line: line, Where: s.where, Key: key, Found: found, Wanted: wanted, Fix: fix,
	})
}

func (s *section) warn(key string, line int, text string) {
	s.report.warn(Warning{File: s.file, Line: line, Where: s.where, Key: key, Text: text})
}

// found renders a value for a message.
func (v value) found(k Key) string {
	if v.referenced || k.Type == SecretText {
		return "****"
	}
	if v.isList {
		return show(strings.Join(v.items, ","))
	}
	if strings.Contains(v.text, "@") && strings.Contains(v.text, "://") {
		return "****" // an address with a password in it
	}
	return show(v.text)
}

// shown quotes a part of a key's value for a message, unless it may be secret: what a reference
// brought in, and what has the @ of an address with a password.
func (s *section) shown(key, text string) string {
	if s.values[key].referenced || strings.Contains(text, "@") {
		return "****"
	}
	return show(text)
}

// settle resolves and checks every key of the section.
func (s *section) settle(r resolver, worker *section) {
	s.worker = worker
	s.values = make(map[string]value, len(s.tree.pairs))
	pairs := s.report.unique(s.file, s.where, s.tree)
	for _, p := range pairs {
		s.take(r, p)
	}
	named := s.pluginNames()
	for _, p := range pairs {
		k, known := lookup(p.key, s.scope)
		if !known {
			if !hasNamePrefix(p.key, named) {
				s.violate(p.key, p.line, "", "", s.unknown(p.key))
			}
			continue
		}
		if v, ok := s.values[p.key]; ok {
			s.judge(p.key, k, v)
		}
	}
	for _, k := range table() {
		// The registry's address can come from elsewhere; see registrySettings.
		if !k.Required || k.Scope&s.scope == 0 || k.Name == "schema.registry.url" {
			continue
		}
		if !s.tree.has(k.Name) {
			s.violate(k.Name, s.line, "", "", "missing: "+lowerFirst(strings.TrimSuffix(k.Meaning, ".")))
		}
	}
}

// take resolves the references of one pair and keeps its value.
func (s *section) take(r resolver, p pair) {
	v := value{line: p.line}
	var err error
	if strings.HasPrefix(p.key, hashPrefix) {
		if v.name, _, err = r.resolve(p.key); err != nil {
			s.violate(p.key, p.line, "", "", err.Error())
			return
		}
	}
	switch p.value.kind {
	case scalar:
		v.text, v.referenced, err = r.resolve(p.value.text)
		if v.referenced {
			v.again = func() (string, error) {
				text, _, err := r.resolve(p.value.text)
				return text, err
			}
		}
	case list:
		v.isList = true
		for _, item := range p.value.items {
			text, referenced, itemErr := r.resolve(item.text)
			if item.kind != scalar {
				s.violate(p.key, p.line, "", "a list of plain values", "")
				return
			}
			if itemErr != nil {
				err = itemErr
			}
			v.items = append(v.items, strings.TrimSpace(text))
			v.referenced = v.referenced || referenced
		}
	case null:
		if p.value.implied {
			s.violate(p.key, p.line, "no value", "",
				`remove the key, or write "" for an empty value`)
		} else {
			s.warn(p.key, p.line, "null counts as not there")
		}
		return
	case mapping:
		s.violate(p.key, p.line, "a map", "a plain value", "keys are written with dots: a.b.c")
		return
	}
	// A key without effect stops nobody, whatever it refers to.
	if k, _ := lookup(p.key, s.scope); err != nil && k.Class != Ignored {
		s.violate(p.key, p.line, "", "", err.Error())
		return
	}
	s.values[p.key] = v
}

// pluginNames returns the names that converters and post.processors introduce: keys that begin
// with one of them belong to the refused list and are not reported one by one.
func (s *section) pluginNames() []string {
	var names []string
	for _, key := range []string{"converters", "post.processors"} {
		if v, ok := s.values[key]; ok {
			names = append(names, v.entries()...)
		}
	}
	return names
}

func hasNamePrefix(key string, names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(key, n+".") })
}

// unknown says what to do about a key that the table does not have in this scope.
func (s *section) unknown(key string) string {
	other, place := InWorker, "worker"
	if s.scope == InWorker {
		other, place = InConnector, "a connector"
	}
	if k, ok := lookup(key, other); ok && k.Name == key {
		return "unknown here: the key belongs into " + place
	}
	if near := nearest(key, s.scope); near != "" {
		return "unknown key: did you mean " + near + "?"
	}
	return "unknown key: `tidemark config keys` lists all"
}

// judge applies the class of a key to a value.
func (s *section) judge(name string, k Key, v value) {
	same := slices.ContainsFunc(k.Same, func(same string) bool {
		return strings.EqualFold(same, strings.TrimSpace(v.text))
	})
	switch k.Class {
	case Ignored:
		if !same {
			s.warn(name, v.line, "without effect: "+k.Why)
		}
	case Refused:
		empty := !v.isList && strings.TrimSpace(v.text) == "" || v.isList && len(v.items) == 0
		if !same && !empty && !s.repeatsWorker(name, k, v) {
			s.violate(name, v.line, v.found(k), "", "refused: "+k.Why)
		}
	case Supported:
		if k.Type == SecretText && !v.referenced && v.text != "" && s.file != "" {
			s.warn(name, v.line,
				"the secret stands in the file: write ${env:NAME} or ${file:PATH:KEY}")
		}
		s.check(name, k, v)
	}
}

// repeatsWorker reports whether a producer's security key has the value that all clients have.
func (s *section) repeatsWorker(name string, k Key, v value) bool {
	if k.Why != oneIdentity {
		return false
	}
	name = strings.TrimPrefix(strings.TrimPrefix(name, "producer."), "override.")
	worker := s
	if s.worker != nil {
		worker = s.worker
	}
	shared, ok := worker.values[name]
	if name == "sasl.jaas.config" || strings.Contains(name, "password") {
		return ok && shared.text == v.text
	}
	return strings.EqualFold(worker.text(name), strings.TrimSpace(v.text))
}

// raw returns what the file gives for a key.
func (s *section) raw(name string) (value, bool) {
	v, ok := s.values[name]
	return v, ok
}

func (s *section) has(name string) bool {
	_, ok := s.values[name]
	return ok
}

// text returns a key's value without white space around it, or its default.
func (s *section) text(name string) string {
	if v, ok := s.values[name]; ok {
		if v.isList {
			return strings.Join(v.items, ",")
		}
		return strings.TrimSpace(v.text)
	}
	k, _ := lookup(name, s.scope)
	return k.Default
}

// enum returns a key's value in the spelling of the table.
func (s *section) enum(name string) string {
	k, _ := lookup(name, s.scope)
	text := s.text(name)
	for _, e := range k.Enum {
		if strings.EqualFold(e, text) {
			return e
		}
	}
	return k.Default
}

// secret returns a key's value to the last byte.
func (s *section) secret(name string) Secret { return NewSecret(s.values[name].text) }

func (s *section) boolean(name string) bool { return strings.EqualFold(s.text(name), "true") }

func (s *section) integer(name string) int64 {
	k, _ := lookup(name, s.scope)
	n, err := strconv.ParseInt(s.text(name), 10, 64)
	if err != nil || k.Bounds != nil && (n < k.Bounds.Min || n > k.Bounds.Max) {
		n, _ = strconv.ParseInt(k.Default, 10, 64)
	}
	return n
}

func (s *section) duration(name string) time.Duration {
	return time.Duration(s.integer(name)) * time.Millisecond
}

// list returns the entries of a list, or those of its default.
func (s *section) list(name string) []string {
	if v, ok := s.values[name]; ok {
		return v.entries()
	}
	return splitList(s.text(name))
}

func lowerFirst(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToLower(text[:1]) + text[1:]
}
