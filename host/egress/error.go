package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/stockade-dev/stockade/host/effect"
)

func fail(kind effect.Kind, err error) *effect.Error { return &effect.Error{Kind: kind, Err: err} }

func failf(kind effect.Kind, format string, args ...any) *effect.Error {
	return &effect.Error{Kind: kind, Err: fmt.Errorf(format, args...)}
}

// phase makes the error of a phase: of this kind, unless it ran out of time or
// has a kind already.
func phase(kind effect.Kind, what string, err error) error {
	if e, ok := errors.AsType[*effect.Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok && !e.IsTimeout {
		return fail(kind, &nameError{what, e})
	}
	if timedOut(err) {
		return failf(effect.Timeout, "%s: no answer in time (%w)", what, err)
	}
	return failf(kind, "%s: %w", what, err)
}

// nameError says once what a resolver says: not of which server it has asked.
type nameError struct {
	what string
	*net.DNSError
}

func (e *nameError) Error() string {
	if e.IsNotFound {
		return "no such host: " + strings.TrimSuffix(e.Name, ".")
	}
	return e.what + ": " + e.Err
}

func (e *nameError) Unwrap() error { return e.DNSError }

func timedOut(err error) bool {
	var t interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &t) && t.Timeout()
}
