package config

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	anchorHead = "(?i)^(?:"
	anchorTail = ")$"
)

// compile compiles an expression as Debezium does: it must match the whole name, and case does not
// count. The syntax is RE2's, which has no look-around and no backreferences.
func compile(text string) (*regexp.Regexp, error) {
	if len(text) > 4096 {
		return nil, fmt.Errorf("longer than 4096 bytes")
	}
	if _, err := regexp.Compile(text); err != nil {
		return nil, err // so that the message holds the text as written
	}
	return regexp.Compile(anchorHead + text + anchorTail)
}

// sourceOf returns the text that an expression was compiled from.
func sourceOf(re *regexp.Regexp) string {
	text := re.String()
	if rest, ok := strings.CutPrefix(text, anchorHead); ok {
		return strings.TrimSuffix(rest, anchorTail)
	}
	return text
}

// splitList splits a list at commas. A comma behind a backslash or inside brackets of an
// expression belongs to the entry: \, and t{1,3} and (a,b) and [,;]. Empty entries are dropped.
func splitList(text string) []string {
	var entries []string
	depth, start := 0, 0
	add := func(entry string) {
		if entry = strings.TrimSpace(entry); entry != "" {
			entries = append(entries, entry)
		}
	}
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth = max(0, depth-1)
		case ',':
			if depth == 0 {
				add(text[start:i])
				start = i + 1
			}
		}
	}
	add(text[start:])
	return entries
}

// maxIdentifier is how long a name of PostgreSQL can be, in bytes (NAMEDATALEN - 1).
const maxIdentifier = 63

// plainParts returns the parts of an entry that is a plain name: letters, digits, underscores,
// spaces and hyphens between dots, which may be written \. or quoted out of habit.
func plainParts(entry string) ([]string, bool) {
	parts := strings.Split(strings.ReplaceAll(entry, `\.`, "."), ".")
	for _, part := range parts {
		if part == "" {
			return nil, false
		}
		for _, r := range part {
			if r < utf8.RuneSelf && !isNameRune(r) {
				return nil, false
			}
		}
	}
	return parts, true
}

func isNameRune(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		c == '_' || c == '-' || c == ' '
}

// cutNames cuts the parts of a plain name to the length that PostgreSQL cuts identifiers to when
// it makes them, at the boundary of a character; cut reports whether there was a longer one.
func cutNames(entry string) (out string, cut bool) {
	parts, ok := plainParts(entry)
	if !ok {
		return entry, false
	}
	for i, part := range parts {
		if len(part) > maxIdentifier {
			parts[i], cut = cutAtRune(part, maxIdentifier), true
		}
	}
	if !cut {
		return entry, false
	}
	return strings.Join(parts, `\.`), true
}

// cutAtRune returns the first n bytes of text or less, so that no character is cut in two.
func cutAtRune(text string, n int) string {
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
