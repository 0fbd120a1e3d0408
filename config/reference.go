package config

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// A reference stands in a value for something that is kept elsewhere:
//
//	reference = "${" provider ":" rest "}"
//	${env:NAME}          the environment variable NAME, which must be set
//	${file:PATH:KEY}     the value of KEY in a Java properties file
//	${file:PATH:}        the whole file without the line break at its end; the last colon
//	${file:PATH}         may be left out
//
// As in Kafka Connect, what does not have this shape is text, there is no escape, and what a
// reference brings in is not looked at again.

// unresolved is a reference that could not be resolved. It names the reference, never content.
type unresolved struct{ reference, why string }

func (u *unresolved) Error() string { return u.reference + ": " + u.why }

// resolver resolves references. The environment is a function, so that tests have their own.
type resolver struct {
	lookupEnv func(string) (string, bool)
}

// resolve replaces the references in text; found reports whether there were some.
func (r resolver) resolve(text string) (out string, found bool, err error) {
	var b strings.Builder
	for {
		start := strings.Index(text, "${")
		if start < 0 {
			break
		}
		length := strings.IndexByte(text[start:], '}')
		if length < 0 {
			break
		}
		body := text[start+2 : start+length]
		provider, rest, ok := strings.Cut(body, ":")
		if !ok || !isProvider(provider) {
			// No reference: text up to here stays, and the search goes on behind "${".
			b.WriteString(text[:start+2])
			text = text[start+2:]
			continue
		}
		value, err := r.fetch(provider, rest)
		if err != nil {
			return "", true, &unresolved{"${" + body + "}", err.Error()}
		}
		b.WriteString(text[:start])
		b.WriteString(value)
		text, found = text[start+length+1:], true
	}
	b.WriteString(text)
	return b.String(), found, nil
}

// isProvider reports whether a name can be a provider's: letters, digits, hyphen, underscore.
func isProvider(name string) bool {
	for i := range len(name) {
		c := name[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' &&
			c != '_' {
			return false
		}
	}
	return name != ""
}

func (r resolver) fetch(provider, rest string) (string, error) {
	switch provider {
	case "env":
		value, ok := r.lookupEnv(rest)
		if !ok {
			return "", fmt.Errorf("the environment variable is not set")
		}
		return value, nil
	case "file":
		return fetchFile(rest)
	default:
		return "", fmt.Errorf("there is no provider of this name: use env or file")
	}
}

// fetchFile resolves what stands behind "file:".
func fetchFile(rest string) (string, error) {
	path, key := rest, ""
	if i := strings.LastIndexByte(rest, ':'); i >= 0 {
		path, key = rest[:i], rest[i+1:]
	}
	data, err := readSmall(path)
	if err != nil {
		return "", err
	}
	if key == "" {
		whole := strings.TrimSuffix(string(data), "\n")
		return strings.TrimSuffix(whole, "\r"), nil
	}
	value, ok := parseProperties(string(data))[key]
	if !ok {
		return "", fmt.Errorf("the file has no such key")
	}
	return value, nil
}

// readSmall reads a file of at most maxFileBytes. Its errors name no content.
func readSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", pathless(err))
	}
	defer f.Close() //nolint:errcheck // nothing was written
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", pathless(err))
	}
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("larger than %d bytes", maxFileBytes)
	}
	return data, nil
}

// pathless returns the cause of a file error without the path, which the message has already.
func pathless(err error) error {
	if pe, ok := err.(*os.PathError); ok { //nolint:errorlint // os returns it unwrapped
		return pe.Err
	}
	return err
}
