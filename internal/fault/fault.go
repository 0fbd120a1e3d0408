// Package fault holds the error that ends or delays a connector: one stable code, what was found,
// what was wanted and what to do. It lies below every other package and imports none of them.
//
// A fault never holds a row's value or a secret. The table of codes in codes.go decides the exit
// status; the reference in the documentation is generated from it.
package fault

import (
	"errors"
	"strings"
)

// Error is an error with a stable code. Text says what happened; Found, Wanted and Fix are
// optional sentences (Fix is a command or SQL statement that an operator can paste).
type Error struct {
	Code   Code
	Text   string
	Found  string
	Wanted string
	Fix    string
	Err    error
}

// New returns a fault with a code and a sentence.
func New(code Code, text string) *Error { return &Error{Code: code, Text: text} }

// Wrap returns a fault with a code and a sentence around err.
func Wrap(code Code, text string, err error) *Error {
	return &Error{Code: code, Text: text, Err: err}
}

// With adds what was found, what was wanted and what to do; empty strings are left out.
func (e *Error) With(found, wanted, fix string) *Error {
	e.Found, e.Wanted, e.Fix = found, wanted, fix
	return e
}

// Error renders "code: text: cause (found ..., wanted ...); fix".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(string(e.Code))
	b.WriteString(": ")
	b.WriteString(e.Text)
	if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(e.Err.Error())
	}
	switch {
	case e.Found != "" && e.Wanted != "":
		b.WriteString(" (found " + e.Found + ", wanted " + e.Wanted + ")")
	case e.Found != "":
		b.WriteString(" (found " + e.Found + ")")
	case e.Wanted != "":
		b.WriteString(" (wanted " + e.Wanted + ")")
	}
	if e.Fix != "" {
		b.WriteString("; " + e.Fix)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// CodeOf returns the code of the outermost fault in err's chain, or Internal when there is none.
func CodeOf(err error) Code {
	var f *Error
	if errors.As(err, &f) {
		return f.Code
	}
	return Internal
}

// Has reports whether err's chain holds a fault with this code.
func Has(err error, code Code) bool {
	for err != nil {
		var f *Error
		if !errors.As(err, &f) {
			return false
		}
		if f.Code == code {
			return true
		}
		err = f.Err
	}
	return false
}
