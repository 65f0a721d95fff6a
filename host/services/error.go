package services

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"unicode"
)

// Kind says what went wrong. What a guest gets for it is a case of the error in
// the WIT file of the host function.
type Kind int

// The kinds. The zero value is none of them.
const (
	_        Kind = iota
	Denied        // by policy, or by a budget of the call
	NotFound      // what the guest asks for is not there
	Invalid       // the request makes no sense
	DNS           // the name could not be resolved
	Connect       // nobody answers at the address, or the proxy refuses
	TLS           // the server could not be authenticated
	Timeout       // of a phase, or of the whole
	TooLarge      // the answer is larger than the limit
	Protocol      // the answer is not HTTP, or broke off
)

// Error is why there is no answer.
type Error struct {
	Kind  Kind
	Limit int64 // bytes; of TooLarge
	Err   error
	Hint  string // tells a person what to do; may be empty
	Final bool   // the same request would fail again
}

// Remedy returns Hint and Final, for packages that do not import this one.
func (e *Error) Remedy() (hint string, final bool) { return e.Hint, e.Final }

// Error is one line of at most 600 characters: guests and other machines have a
// say in what is wrapped.
func (e *Error) Error() string { return oneLine(e.Err.Error()) }

func (e *Error) Unwrap() error { return e.Err }

// Is makes a refusal fs.ErrPermission, and a server that is not reached
// syscall.EHOSTUNREACH, for packages that do not import this one.
func (e *Error) Is(target error) bool {
	return e.Kind == Denied && target == fs.ErrPermission || e.Kind == Connect && target == syscall.EHOSTUNREACH
}

// Timeout is what net.Error has.
func (e *Error) Timeout() bool { return e.Kind == Timeout }

// KindOf returns the kind of an error, or 0 if it has none.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return 0
}

func oneLine(s string) string {
	const most = 600
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(s, " "))
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return s
}
