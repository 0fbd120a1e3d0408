package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// Load reads the YAML file at path and any number of Kafka Connect-style JSON files, each
// {"name": ..., "config": {...}} or a flat map with "name". It resolves references, and returns
// the settings with warnings, or a *fault.Error with code config_invalid whose cause is the
// Violations: all of them at once. The warnings are returned in both cases. An empty path stands
// for an empty file.
func Load(path string, jsonFiles []string) (*File, []Warning, error) {
	l := loader{resolver: resolver{os.LookupEnv}}
	if path != "" {
		root, ok := l.read(path)
		if !ok {
			return nil, nil, l.err() // what is missing without it is no violation of its own
		}
		l.addFile(path, root)
	}
	for _, name := range jsonFiles {
		if root, ok := l.read(name); ok {
			l.addConnectJSON(name, root)
		}
	}
	return l.finish(path)
}

// FromMaps is Load for settings that are no file's: worker's keys, and connectors by name.
func FromMaps(
	worker map[string]string, connectors map[string]map[string]string,
) (*File, []Warning, error) {
	l := loader{resolver: resolver{os.LookupEnv}}
	l.addWorker("", pair{value: nodeOf(worker)})
	for _, name := range slices.Sorted(maps.Keys(connectors)) {
		l.addConnector("", name, 0, nodeOf(connectors[name]))
	}
	return l.finish("")
}

func nodeOf(settings map[string]string) node {
	n := node{kind: mapping}
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		n.pairs = append(n.pairs, pair{key: key, value: node{kind: scalar, text: settings[key]}})
	}
	return n
}

// loader gathers the sections of all files; finish makes settings of them.
type loader struct {
	report
	resolver   resolver
	worker     *section
	connectors []*section
}

// read reads and parses one file; what is wrong with it is a violation.
func (l *loader) read(path string) (node, bool) {
	l.files = append(l.files, path)
	data, err := readSmall(path)
	if err != nil {
		l.violate(Violation{File: path, Fix: "the file " + err.Error()})
		return node{}, false
	}
	root, err := parse(data)
	if err != nil {
		v := Violation{File: path, Fix: err.Error()}
		var syntax *syntaxError
		if errors.As(err, &syntax) {
			v.Line = syntax.line
		}
		l.violate(v)
		return node{}, false
	}
	return root, true
}

// addFile takes {worker: {...}, connectors: {NAME: {...}}}.
func (l *loader) addFile(file string, root node) {
	if root.kind == null {
		return
	}
	if root.kind != mapping {
		l.violate(Violation{
			File: file, Line: root.line, Wanted: "a map with the keys worker and connectors",
		})
		return
	}
	for _, p := range l.unique(file, "", root) {
		switch p.key {
		case "worker":
			l.addWorker(file, p)
		case "connectors":
			if !l.wantMap(file, "", p) {
				continue
			}
			for _, c := range l.unique(file, "connectors", p.value) {
				if l.wantMap(file, "connectors", c) {
					l.addConnector(file, c.key, c.line, c.value)
				}
			}
		default:
			l.violate(Violation{
				File: file, Line: p.line, Key: show(p.key), Fix: topLevelFix(p.key),
			})
		}
	}
}

func topLevelFix(key string) string {
	if _, ok := lookup(key, InConnector); ok {
		return "unknown here: a connector's keys stand in connectors, under the connector's name"
	}
	if _, ok := lookup(key, InWorker); ok {
		return "unknown here: a worker's keys stand in worker"
	}
	return "unknown: the file holds worker and connectors"
}

// addConnectJSON takes a connector as Connect's REST interface does.
func (l *loader) addConnectJSON(file string, root node) {
	if root.kind != mapping {
		l.violate(Violation{
			File: file, Line: root.line,
			Wanted: `a map with "name" and "config", or a connector's keys with "name"`,
		})
		return
	}
	name, ok := root.get("name")
	if !ok || name.value.kind != scalar {
		fix := `the connector has no "name"`
		if root.has("connectors") || root.has("worker") {
			fix = "a file with worker and connectors is given with -c; this one must be a connector"
		}
		l.violate(Violation{File: file, Line: root.line, Fix: fix})
		return
	}
	config, nested := root.get("config")
	if !nested {
		l.addConnector(file, name.value.text, root.line, root)
		return
	}
	for _, p := range l.unique(file, "", root) {
		// Connect's own answers hold these beside name and config.
		if !slices.Contains(
			[]string{"name", "config", "tasks", "type", "initial_state"}, p.key,
		) {
			l.violate(Violation{
				File: file, Line: p.line, Key: show(p.key), Fix: `unknown beside "config"`,
			})
		}
	}
	if l.wantMap(file, "", config) {
		l.addConnector(file, name.value.text, config.line, config.value)
	}
}

func (l *loader) wantMap(file, where string, p pair) bool {
	if p.value.kind == mapping {
		return true
	}
	l.violate(Violation{
		File: file, Line: p.line, Where: where, Key: p.key, Wanted: "a map of keys and values",
	})
	return false
}

// unique returns the pairs of a map; a key that comes twice is a violation, and its first value
// stays.
func (r *report) unique(file, where string, n node) []pair {
	first := make(map[string]int, len(n.pairs))
	pairs := make([]pair, 0, len(n.pairs))
	for _, p := range n.pairs {
		if line, ok := first[p.key]; ok {
			r.violate(Violation{
				File: file, Line: p.line, Where: where, Key: p.key,
				Fix: fmt.Sprintf("given twice, first in line %d: remove one", line),
			})
			continue
		}
		first[p.key] = p.line
		pairs = append(pairs, p)
	}
	return pairs
}

func (l *loader) addWorker(file string, p pair) {
	if p.value.kind == null {
		return
	}
	if l.wantMap(file, "", p) {
		l.worker = &section{
			report: &l.report, where: "worker", scope: InWorker, file: file, line: p.line,
			tree: p.value,
		}
	}
}

func (l *loader) addConnector(file, name string, line int, tree node) {
	for _, c := range l.connectors {
		if c.name == name {
			l.violate(Violation{
				File: file, Line: line, Where: "connectors." + name,
				Fix: fmt.Sprintf("a connector of this name is there already (%s): rename one",
					strings.TrimSuffix(position(c.file, c.line, "", ""), ": ")),
			})
			return
		}
	}
	l.connectors = append(l.connectors, &section{
		report: &l.report, where: "connectors." + name, name: name, scope: InConnector,
		file: file, line: line, tree: tree,
	})
}

// finish checks all sections and makes the settings.
func (l *loader) finish(path string) (*File, []Warning, error) {
	if len(l.connectors) == 0 && len(l.violations) == 0 {
		l.violate(Violation{File: path, Where: "connectors", Fix: "there is no connector"})
	}
	if l.worker == nil {
		l.worker = &section{report: &l.report, where: "worker", scope: InWorker, file: path}
	}
	l.worker.settle(l.resolver, nil)
	slices.SortFunc(l.connectors, func(a, b *section) int { return strings.Compare(a.name, b.name) })
	file := &File{}
	for _, c := range l.connectors {
		c.settle(l.resolver, l.worker)
	}
	file.Worker = buildWorker(l.worker, l.connectors)
	for _, c := range l.connectors {
		file.Connectors = append(file.Connectors, buildConnector(c, l.worker, &file.Worker))
	}
	crossCheck(l.connectors, file.Connectors)
	l.sort()
	if err := l.err(); err != nil {
		return nil, l.warnings, err
	}
	return file, l.warnings, nil
}
