package services

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"unicode"
)

// Kind is the kind of a failure. The WIT file of the host function has a case for each kind.
type Kind int

// The kinds of failures. The zero value is not a kind.
const (
	_        Kind = iota
	Denied        // policy, or a budget of the call, forbids it
	NotFound      // the named program or secret does not exist
	Invalid       // the request is malformed
	DNS           // the name of the host could not be resolved
	Connect       // nobody answers at the address, or the proxy refuses
	TLS           // the server could not be authenticated
	Timeout       // a phase of a request, or the whole request, took too long
	TooLarge      // the answer is larger than the limit
	Protocol      // the answer is not HTTP, or broke off
)

// Error is the error of a service of this package.
type Error struct {
	Kind  Kind
	Limit int64 // limit of a TooLarge, in bytes; otherwise 0
	Err   error
	Hint  string // advice for a person; empty: none
	Final bool   // set if the same request would fail again
}

// Remedy returns Hint and Final, for packages that do not import this one.
func (e *Error) Remedy() (hint string, final bool) { return e.Hint, e.Final }

// Error returns the text as one line of at most 600 characters, because guests and other machines
// can influence the wrapped text. A longer text is cut.
func (e *Error) Error() string { return Line(e.Err.Error(), 600) }

func (e *Error) Unwrap() error { return e.Err }

// Is makes the kind Denied match fs.ErrPermission, and the kind Connect syscall.EHOSTUNREACH, for
// packages that do not import this one.
func (e *Error) Is(target error) bool {
	return e.Kind == Denied && target == fs.ErrPermission || e.Kind == Connect && target == syscall.EHOSTUNREACH
}

// Timeout reports whether the kind is Timeout. It implements net.Error in part.
func (e *Error) Timeout() bool { return e.Kind == Timeout }

// KindOf returns the kind of an error; 0 if it wraps no [Error].
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return 0
}

// Line returns a text as one printable line of at most maxRunes characters.
func Line(s string, maxRunes int) string {
	s = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(s, " ")))
	if runes := []rune(s); len(runes) > maxRunes {
		return string(runes[:maxRunes-1]) + "…"
	}
	return s
}
