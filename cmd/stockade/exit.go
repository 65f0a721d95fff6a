package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/session/sqlite"
)

// exitCode is what the program ends with.
type exitCode int

// The exit codes. They are a documented contract.
const (
	exitOK          exitCode = 0
	exitError       exitCode = 1
	exitUsage       exitCode = 2
	exitDenied      exitCode = 3
	exitToolFailed  exitCode = 4
	exitProvider    exitCode = 5
	exitLimit       exitCode = 6
	exitUnasked     exitCode = 7
	exitInterrupted exitCode = 130
	exitUnread      exitCode = 141 // what shells report of a program that SIGPIPE has ended
)

const exitHelp = `Exit codes: 0 done, 1 error, 2 usage, 3 denied, 4 the tool failed, 5 the
provider failed, 6 a limit, 7 nobody could be asked, 130 interrupted, 141 the
reader of stdout left. ` + "`stockade help output`" + ` says more.`

// exitErr ends the program with a code. An empty message prints nothing: what
// there was to say has been said.
type exitErr struct {
	code    exitCode
	message string
	hint    string
}

func (e *exitErr) Error() string { return e.message }

func usageError(hint, format string, args ...any) error {
	return &exitErr{code: exitUsage, message: fmt.Sprintf(format, args...), hint: hint}
}

// errInterrupted is the cause of a context that a signal ended.
var errInterrupted = errors.New("interrupted")

// report says what went wrong and returns the exit code for it. It is the
// only place that maps errors to exit codes.
func report(s *stdio, ctx context.Context, err error) exitCode {
	if err == nil {
		return exitOK
	}
	if lost, ok := errors.AsType[*outputError](err); ok {
		if errors.Is(lost, syscall.EPIPE) {
			return exitUnread // without a word, as other programs
		}
		s.note("%v", lost)
		return exitError
	}
	var exit *exitErr
	if errors.As(err, &exit) {
		if exit.message != "" {
			s.note("%s", exit.message)
		}
		if exit.hint != "" {
			s.hint("%s", exit.hint)
		}
		return exit.code
	}
	if errors.Is(context.Cause(ctx), errInterrupted) {
		s.note("interrupted")
		return exitInterrupted
	}
	s.note("%v", err)
	if e, ok := errors.AsType[*sqlite.OpenError](err); ok && e.Hint != "" {
		s.hint("%s", e.Hint)
	}
	if hint := refusedHint(err); hint != "" {
		s.hint("%s", hint)
	}
	switch {
	case errors.Is(err, session.ErrNoSession), errors.Is(err, session.ErrAmbiguous):
		s.hint("`stockade session list` shows the sessions")
	case errors.Is(err, session.ErrNewer):
		s.hint("update stockade, or set XDG_DATA_HOME to keep another store")
	}
	return exitError
}
