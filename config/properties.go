package config

import (
	"strconv"
	"strings"
)

// parseProperties reads Java's properties format (java.util.Properties.load), which Connect's
// FileConfigProvider reads:
//
//	line    = blank | comment | key separator value
//	comment = ("#" | "!") text
//	separator: the first unescaped "=", ":" or white space, with white space around it
//
// A backslash at the end of a line joins the next one; \t \n \r \f and \uXXXX are what they are in
// Java; before any other character a backslash vanishes. A key that comes twice has its last value.
func parseProperties(text string) map[string]string {
	properties := map[string]string{}
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	for i := 0; i < len(lines); i++ {
		line := strings.TrimLeft(lines[i], " \t\f")
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		for continues(line) {
			line = line[:len(line)-1]
			if i++; i == len(lines) {
				break
			}
			line += strings.TrimLeft(lines[i], " \t\f")
		}
		key, value := splitProperty(line)
		properties[unescape(key)] = unescape(value)
	}
	return properties
}

// continues reports whether a line ends with an odd number of backslashes.
func continues(line string) bool {
	n := len(line) - len(strings.TrimRight(line, `\`))
	return n%2 == 1
}

func splitProperty(line string) (key, value string) {
	end := 0
	for end < len(line) && !strings.ContainsRune("=: \t\f", rune(line[end])) {
		if line[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(line) {
		return line, ""
	}
	value = strings.TrimLeft(line[end:], " \t\f")
	if value != "" && (value[0] == '=' || value[0] == ':') {
		value = strings.TrimLeft(value[1:], " \t\f")
	}
	return line[:end], value
}

func unescape(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		i++
		switch text[i] {
		case 't':
			b.WriteByte('\t')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 'f':
			b.WriteByte('\f')
		case 'u':
			if i+4 < len(text) {
				if code, err := strconv.ParseUint(text[i+1:i+5], 16, 16); err == nil {
					b.WriteRune(rune(code))
					i += 4
					continue
				}
			}
			b.WriteByte('u')
		default:
			b.WriteByte(text[i])
		}
	}
	return b.String()
}
