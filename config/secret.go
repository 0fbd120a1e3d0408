package config

import (
	"fmt"
	"io"
	"log/slog"
)

// Secret prints as **** wherever it is formatted, logged or marshalled. The value is behind a
// pointer, so that even a formatter that looks into unexported fields, where fmt may call no
// method, prints an address.
type Secret struct{ value *string }

// NewSecret wraps a value; Reveal is the only way back.
func NewSecret(s string) Secret {
	if s == "" {
		return Secret{}
	}
	return Secret{&s}
}

// Reveal returns the secret itself.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// IsZero reports whether no secret was given.
func (s Secret) IsZero() bool { return s.value == nil }

// String returns "****", or the empty string for an empty secret.
func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return "****"
}

// GoString returns the same as String.
func (s Secret) GoString() string { return s.String() }

// Format writes the same as String under every verb.
func (s Secret) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, s.String()) // fmt.State has nowhere to report an error to
}

// MarshalText returns the same as String.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue returns the same as String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
