package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/stockade-dev/stockade/host/door"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/session/export"
	"github.com/stockade-dev/stockade/host/session/sqlite"
	"github.com/stockade-dev/stockade/host/settings"
)

type exitCode int

// Exit codes. They are a documented contract.
const (
	exitOK          exitCode = 0
	exitError       exitCode = 1
	exitUsage       exitCode = 2
	exitDenied      exitCode = 3
	exitToolFailed  exitCode = 4
	exitProvider    exitCode = 5
	exitLimit       exitCode = 6
	exitNobodyToAsk exitCode = 7
	exitInterrupted exitCode = 130
	exitBrokenPipe  exitCode = 141 // the code that shells report for a program that SIGPIPE has ended
)

const exitHelp = `Exit codes: 0 done, 1 error, 2 usage, 3 denied, 4 the tool failed, 5 the
provider failed, 6 a limit, 7 nobody could be asked, 130 interrupted, 141 the
reader of stdout left. ` + "`stockade help output`" + ` says more.`

// exitErr is an error with an exit code. An empty message is not printed: everything was
// printed before.
type exitErr struct {
	code    exitCode
	message string
	hint    string
}

func (e *exitErr) Error() string { return e.message }

func usageError(hint, format string, args ...any) error {
	return &exitErr{code: exitUsage, message: fmt.Sprintf(format, args...), hint: hint}
}

// explainError adds an exit code to an error of another package, and for most a hint with
// flags and commands of this program. It returns errors that it does not know unchanged.
func explainError(err error) error {
	if _, ok := errors.AsType[*exitErr](err); ok {
		return err
	}
	if e, ok := errors.AsType[*door.StoreDirError](err); ok {
		return &exitErr{code: exitError, message: e.Error(),
			hint: "sessions need a place to be kept: set HOME, or XDG_DATA_HOME and XDG_STATE_HOME, to a directory that can be written to"}
	}
	if e, ok := errors.AsType[*export.Error](err); ok {
		return &exitErr{code: exitError, message: e.Error(),
			hint: "no tool runs without the export; an administrator makes the directory and lets you make files in it"}
	}
	if errors.Is(err, registry.ErrNoBuiltin) {
		return &exitErr{code: exitError, message: err.Error(), hint: "build it with `make build`"}
	}
	if e, ok := errors.AsType[*policy.AnswerError](err); ok {
		if e.Fault == policy.FaultNeverCounts {
			return usageError(answerHint(e), "--allow %s: %s", e.Rule, hintText(e.Lint))
		}
		return usageError(answerHint(e), "--allow: %s", e.What)
	}
	if e, ok := errors.AsType[*settings.Error](err); ok {
		return &exitErr{code: exitUsage, message: e.What, hint: e.Hint}
	}
	if e, ok := errors.AsType[*policy.ModuleError](err); ok {
		return &exitErr{code: exitDenied, message: "nothing of the module is run: " + e.Error()}
	}
	if e, ok := errors.AsType[*settings.NoPlaceError](err); ok {
		return &exitErr{code: exitError, message: e.Error(), hint: "set HOME"}
	}
	return err
}

// answerHint returns a hint that shows the correct use of --allow; empty: there is none.
func answerHint(e *policy.AnswerError) string {
	switch {
	case e.Fault == policy.FaultTool:
		return "`stockade tool list` shows the tools"
	case e.Fault == policy.FaultArgument:
		return fmt.Sprintf("`stockade tool info %s` shows its arguments", e.Tool)
	case e.Fault == policy.FaultAllCommands:
		return fmt.Sprintf("name the command: --allow '%s'", e.Instead)
	case e.Fault == policy.FaultNeverCounts:
		return "`stockade help policy` shows the conditions"
	case e.Instead != "":
		return fmt.Sprintf("to allow it with its secrets: --allow '%s'", e.Instead)
	}
	return ""
}

// errInterrupted is the cause of a context that a signal or Ctrl-C has cancelled.
var errInterrupted = errors.New("interrupted")

// reportError prints an error and returns its exit code; nil is exitOK. If the reader of
// stdout has left, it prints nothing.
func reportError(s *stdio, ctx context.Context, err error) exitCode {
	if err == nil {
		return exitOK
	}
	if lost, ok := errors.AsType[*outputError](err); ok {
		if errors.Is(lost, syscall.EPIPE) {
			return exitBrokenPipe // silently, like other programs
		}
		s.note("%v", lost)
		return exitError
	}
	var exit *exitErr
	if errors.As(explainError(err), &exit) {
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
	case errors.Is(err, session.ErrInUse):
		s.hint("end it there first (Ctrl-D in a chat)")
	case errors.Is(err, session.ErrNewer):
		s.hint("update stockade, or set XDG_DATA_HOME to keep another store")
	}
	return exitError
}
