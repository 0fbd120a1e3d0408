package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

const (
	maxFileBytes = 1 << 20 // a configuration is a few KiB; the parser's memory is a multiple of it
	maxNodes     = 100_000 // after aliases are expanded, which else could multiply without end
	maxDepth     = 100     // of maps and lists; three are legal, and recursion must end
)

type kind uint8

const (
	scalar kind = iota + 1
	null
	list
	mapping
)

// node is a parsed value of a file. YAML and JSON come to the same tree, so that nothing after it
// knows which one was read.
type node struct {
	kind    kind
	text    string // scalar: as written, without quotes
	implied bool   // null: nothing was written
	line    int
	items   []node // list
	pairs   []pair // mapping, in the order of the file, duplicates included
}

type pair struct {
	key   string
	line  int
	value node
}

// syntaxError is a file that cannot be parsed. It never holds text of the file's values.
type syntaxError struct {
	line int
	text string
}

func (e *syntaxError) Error() string { return e.text }

// parse reads a YAML or JSON document. What begins with { and is JSON is read as JSON, since YAML
// parsers disagree on JSON's escapes.
func parse(data []byte) (node, error) {
	if len(data) > maxFileBytes {
		return node{}, &syntaxError{text: fmt.Sprintf("larger than %d bytes", maxFileBytes)}
	}
	if trimmed := bytes.TrimLeft(data, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '{' &&
		json.Valid(data) {
		return parseJSON(data)
	}
	if line, deep := nesting(data); deep {
		return node{}, &syntaxError{line: line, text: "too deeply nested"}
	}
	return parseYAML(data)
}

// nesting reports a line with more than maxDepth open flow brackets, or with so many "- " and "? "
// at its beginning: the YAML parser recurses for each, and a stack that overflows cannot be
// recovered from. Where brackets stand in text they count too, which no real file comes near.
func nesting(data []byte) (line int, deep bool) {
	brackets, indicators, atStart := 0, 0, true
	line = 1
	for i, c := range data {
		switch c {
		case '\n':
			line, indicators, atStart = line+1, 0, true
			continue
		case ' ', '\t', '\r':
			continue
		case '[', '{':
			brackets++
		case ']', '}':
			brackets = max(0, brackets-1)
		}
		blankNext := i+1 < len(data) && (data[i+1] == ' ' || data[i+1] == '\t')
		if atStart = atStart && blankNext && (c == '-' || c == '?'); atStart {
			indicators++
		}
		if brackets > maxDepth || indicators > maxDepth {
			return line, true
		}
	}
	return 0, false
}

func parseYAML(data []byte) (n node, err error) {
	// The YAML library panics on some malformed documents; that must not end the process.
	defer func() {
		if r := recover(); r != nil {
			n, err = node{}, &syntaxError{text: "not YAML"}
		}
	}()
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		var located interface {
			GetMessage() string
			GetToken() *token.Token
		}
		if errors.As(err, &located) {
			return node{}, &syntaxError{
				line: lineOf(located.GetToken()), text: "not YAML: " + located.GetMessage(),
			}
		}
		return node{}, &syntaxError{text: "not YAML"}
	}
	y := yamlReader{anchors: map[string]ast.Node{}, budget: maxNodes}
	root := node{kind: null, implied: true}
	seen := false
	for _, doc := range file.Docs {
		if doc == nil || doc.Body == nil {
			continue
		}
		if seen {
			return node{}, &syntaxError{
				line: lineOf(doc.Body.GetToken()), text: "a second document in one file",
			}
		}
		seen = true
		if root, err = y.read(doc.Body, 0); err != nil {
			return node{}, err
		}
	}
	return root, nil
}

func lineOf(t *token.Token) int {
	if t == nil || t.Position == nil {
		return 0
	}
	return t.Position.Line
}

type yamlReader struct {
	anchors map[string]ast.Node
	budget  int
}

func (y *yamlReader) read(n ast.Node, depth int) (node, error) {
	if n == nil {
		return node{kind: null, implied: true}, nil
	}
	line := lineOf(n.GetToken())
	if y.budget--; y.budget < 0 || depth > maxDepth {
		return node{}, &syntaxError{line: line, text: "too many or too deeply nested values"}
	}
	switch v := n.(type) {
	case *ast.StringNode:
		return node{kind: scalar, text: v.Value, line: line}, nil
	case *ast.LiteralNode:
		return node{kind: scalar, text: strings.TrimSuffix(v.Value.Value, "\n"), line: line}, nil
	case *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		// As written: a password may look like one of these.
		return node{kind: scalar, text: n.GetToken().Value, line: line}, nil
	case *ast.NullNode:
		implied := v.Token != nil && v.Token.Type == token.ImplicitNullType
		return node{kind: null, implied: implied, line: line}, nil
	case *ast.TagNode:
		return y.read(v.Value, depth+1)
	case *ast.AnchorNode:
		y.anchors[v.Name.String()] = v.Value
		return y.read(v.Value, depth+1)
	case *ast.AliasNode:
		target, ok := y.anchors[v.Value.String()]
		if !ok {
			return node{}, &syntaxError{line: line, text: "an alias of an anchor that is not there"}
		}
		return y.read(target, depth+1)
	case *ast.SequenceNode:
		return y.sequence(v, line, depth)
	case *ast.MappingNode:
		return y.mapping(v.Values, line, depth)
	case *ast.MappingValueNode:
		return y.mapping([]*ast.MappingValueNode{v}, line, depth)
	default:
		return node{}, &syntaxError{line: line, text: "YAML of a kind that is not used here"}
	}
}

func (y *yamlReader) sequence(s *ast.SequenceNode, line, depth int) (node, error) {
	out := node{kind: list, line: line}
	for _, item := range s.Values {
		child, err := y.read(item, depth+1)
		if err != nil {
			return node{}, err
		}
		out.items = append(out.items, child)
	}
	return out, nil
}

func (y *yamlReader) mapping(
	values []*ast.MappingValueNode, line, depth int,
) (node, error) {
	out := node{kind: mapping, line: line}
	var merged []pair
	for _, v := range values {
		child, err := y.read(v.Value, depth+1)
		if err != nil {
			return node{}, err
		}
		if v.Key.IsMergeKey() {
			merged = append(merged, mergedPairs(child)...)
			continue
		}
		key, err := y.read(mapKey(v.Key), depth+1)
		if err != nil {
			return node{}, err
		}
		if key.kind != scalar {
			return node{}, &syntaxError{line: line, text: "a key that is not a name"}
		}
		out.pairs = append(out.pairs, pair{key.text, lineOf(v.Key.GetToken()), child})
	}
	for _, m := range merged {
		if y.budget -= len(out.pairs); y.budget < 0 {
			return node{}, &syntaxError{line: line, text: "too many merged values"}
		}
		if !out.has(m.key) {
			out.pairs = append(out.pairs, m)
		}
	}
	return out, nil
}

// mapKey returns the node of a key, that of "? key" included.
func mapKey(key ast.MapKeyNode) ast.Node {
	if k, ok := key.(*ast.MappingKeyNode); ok {
		return k.Value
	}
	return key
}

// mergedPairs returns what "<<" brings in: a map's pairs, or those of several maps, the first of
// which wins.
func mergedPairs(n node) []pair {
	pairs := n.pairs
	for _, item := range n.items {
		pairs = append(pairs, item.pairs...)
	}
	return pairs
}

func (n *node) has(key string) bool {
	for _, p := range n.pairs {
		if p.key == key {
			return true
		}
	}
	return false
}

// get returns the value of a key.
func (n *node) get(key string) (pair, bool) {
	for _, p := range n.pairs {
		if p.key == key {
			return p, true
		}
	}
	return pair{}, false
}

func parseJSON(data []byte) (node, error) {
	j := jsonReader{dec: json.NewDecoder(bytes.NewReader(data)), data: data, line: 1}
	j.dec.UseNumber()
	n, err := j.read(0)
	if err != nil && !errors.As(err, new(*syntaxError)) {
		return node{}, &syntaxError{line: j.line, text: "not JSON"}
	}
	return n, err
}

// jsonReader reads valid JSON token by token, for the lines of keys and for duplicates.
type jsonReader struct {
	dec  *json.Decoder
	data []byte
	line int // of offset
	off  int64
}

func (j *jsonReader) next() (json.Token, error) {
	t, err := j.dec.Token()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	end := j.dec.InputOffset()
	j.line += bytes.Count(j.data[j.off:end], []byte{'\n'})
	j.off = end
	return t, err
}

func (j *jsonReader) read(depth int) (node, error) {
	t, err := j.next()
	if err != nil {
		return node{}, err
	}
	if depth > maxDepth {
		return node{}, &syntaxError{line: j.line, text: "too deeply nested values"}
	}
	n := node{line: j.line}
	switch v := t.(type) {
	case json.Delim:
		return j.container(n, v, depth)
	case nil:
		n.kind = null
	default:
		n.kind, n.text = scalar, fmt.Sprint(v)
	}
	return n, nil
}

func (j *jsonReader) container(n node, open json.Delim, depth int) (node, error) {
	n.kind = list
	if open == '{' {
		n.kind = mapping
	}
	for j.dec.More() {
		var key string
		line := 0
		if open == '{' {
			t, err := j.next()
			if err != nil {
				return node{}, err
			}
			key, line = fmt.Sprint(t), j.line
		}
		child, err := j.read(depth + 1)
		if err != nil {
			return node{}, err
		}
		if open == '{' {
			n.pairs = append(n.pairs, pair{key, line, child})
		} else {
			n.items = append(n.items, child)
		}
	}
	_, err := j.next() // the closing bracket
	return n, err
}
