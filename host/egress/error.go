package egress

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"unicode"
)

// Kind says what went wrong; each is a case of the error in wit/http.wit.
type Kind int

// The kinds. The zero value is none of them.
const (
	_        Kind = iota
	Denied        // by policy, or by a budget of the call
	Invalid       // the request makes no sense
	DNS           // the name could not be resolved
	Connect       // nobody answers at the address, or the proxy refuses
	TLS           // the server could not be authenticated
	Timeout       // of a phase, or of the whole
	TooLarge      // the answer is larger than the limit
	Protocol      // the answer is not HTTP, or broke off
)

// Error is why there is no connection or no answer.
type Error struct {
	Kind  Kind
	Limit int64 // bytes; of TooLarge
	Err   error
}

// Error is one line of at most 600 characters: other machines have a say in
// what is wrapped.
func (e *Error) Error() string {
	if e.Kind == TooLarge {
		return fmt.Sprintf("the answer is larger than %d bytes", e.Limit)
	}
	return clean(e.Err.Error())
}

func (e *Error) Unwrap() error { return e.Err }

// Is makes a refusal fs.ErrPermission, for those who do not know this package.
func (e *Error) Is(target error) bool { return e.Kind == Denied && target == fs.ErrPermission }

// Timeout is what net.Error has.
func (e *Error) Timeout() bool { return e.Kind == Timeout }

// KindOf returns the kind of an error of this package, or 0.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return 0
}

func fail(kind Kind, err error) *Error { return &Error{Kind: kind, Err: err} }

func failf(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Err: fmt.Errorf(format, args...)}
}

// phase makes the error of a phase: of this kind, unless it ran out of time or
// has a kind already.
func phase(kind Kind, what string, err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if timedOut(err) {
		return failf(Timeout, "%s: no answer in time (%w)", what, err)
	}
	return failf(kind, "%s: %w", what, err)
}

func timedOut(err error) bool {
	var t interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &t) && t.Timeout()
}

func clean(s string) string {
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
