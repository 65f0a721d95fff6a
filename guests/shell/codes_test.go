package main

import (
	"context"
	"testing"

	"github.com/stockade-dev/stockade/guests/internal/codetest"
	"github.com/stockade-dev/stockade/sdk/go/exec"
)

// TestCodes: a model or a script tells these failures apart without reading them.
func TestCodes(t *testing.T) {
	ending := func(in bashArgs, outcome exec.Outcome, err error) func() error {
		return func() error {
			_, err := run(t.Context(), in, func(context.Context, exec.Command) (exec.Outcome, error) { return outcome, err })
			return err
		}
	}
	codetest.Run(t, []codetest.Case{
		{Name: "no command", Tool: "bash", Code: "INVALID_ARGUMENTS", Call: ending(bashArgs{}, exec.Outcome{}, nil)},
		{Name: "no bash", Tool: "bash", Code: "NOT_FOUND", Call: ending(bashArgs{Command: "x"}, exec.Outcome{}, exec.ErrNotFound)},
		{Name: "a process that does not start", Tool: "bash", Code: "TOOL_FAILED", Call: ending(bashArgs{Command: "x"}, exec.Outcome{}, exec.ErrFailed)},
		{Name: "no time", Tool: "bash", Code: "TOOL_FAILED", Call: ending(bashArgs{Command: "x"}, exec.Outcome{TimedOut: true}, nil)}, // the host makes TOOL_TIMEOUT of it
		{Name: "not permitted", Tool: "bash", Code: "DENIED", Call: ending(bashArgs{Command: "x"}, exec.Outcome{}, exec.ErrDenied)},
	})
}
