package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/sdk/go/exec"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

func TestBashAsksForExactlyTheCommand(t *testing.T) {
	const command = "echo 'a b'; exit 3 # \n$(x)"
	var got exec.Command
	_, err := run(t.Context(), bashArgs{Command: command, Timeout: 7}, func(_ context.Context, cmd exec.Command) (exec.Outcome, error) {
		got = cmd
		return exec.Outcome{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"bash", "-c", command}; !slices.Equal(got.Argv, want) {
		t.Errorf("argv is %q, want %q", got.Argv, want)
	}
	if got.Timeout != 7*time.Second || !got.MergeStderr || got.Dir != "" {
		t.Errorf("command is %+v", got)
	}
}

func TestBashTellsTheOutputsApartIfAsked(t *testing.T) {
	got, err := run(t.Context(), bashArgs{Command: "x", Separate: true}, func(_ context.Context, cmd exec.Command) (exec.Outcome, error) {
		if cmd.MergeStderr {
			t.Error("the host was asked for one stream")
		}
		return exec.Outcome{Stdout: []byte("out"), Stderr: []byte("err"), ExitCode: 1}, nil
	})
	if want := (bashResult{Output: "out", Stderr: "err", ExitCode: 1}); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

func TestBashResults(t *testing.T) {
	tests := map[string]struct {
		outcome exec.Outcome
		want    bashResult
	}{
		"success":          {exec.Outcome{Stdout: []byte("hi\n")}, bashResult{Output: "hi\n"}},
		"failure":          {exec.Outcome{Stdout: []byte("no"), ExitCode: 3}, bashResult{Output: "no", ExitCode: 3}},
		"killed":           {exec.Outcome{ExitCode: -1, Signal: 9}, bashResult{ExitCode: 137, Signal: 9}},
		"too much output":  {exec.Outcome{Stdout: []byte("x"), Truncated: true}, bashResult{Output: "x" + truncatedNote, Truncated: true}},
		"nothing to say":   {exec.Outcome{}, bashResult{}},
		"output not UTF-8": {exec.Outcome{Stdout: []byte("\xff")}, bashResult{Output: "\xff"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := run(t.Context(), bashArgs{Command: "x", Timeout: 30}, func(context.Context, exec.Command) (exec.Outcome, error) {
				return tt.outcome, nil
			})
			if err != nil || got != tt.want {
				t.Errorf("got %+v, %v; want %+v", got, err, tt.want)
			}
		})
	}
}

func TestBashTellsOfAToolThatIsNoCommand(t *testing.T) {
	got, err := run(t.Context(), bashArgs{Command: "apply_patch <<'EOF'\nEOF"}, func(context.Context, exec.Command) (exec.Outcome, error) {
		return exec.Outcome{Stdout: []byte("command not found"), ExitCode: 127}, nil
	})
	if err != nil || !strings.HasSuffix(got.Output, "\n[apply_patch is no command but a tool: call that, with the patch as its argument]") {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestBashErrors(t *testing.T) {
	denied := fmt.Errorf("%w: not this one", exec.ErrDenied)
	tests := map[string]struct {
		args    bashArgs
		outcome exec.Outcome
		err     error
		code    tool.Code
		text    string
	}{
		"empty command":    {args: bashArgs{Timeout: 30}, code: tool.CodeInvalidInput, text: "command is empty"},
		"timeout too long": {args: bashArgs{Command: "x", Timeout: 301}, code: tool.CodeInvalidInput, text: "1 to 300"},
		"timed out":        {args: bashArgs{Command: "x", Timeout: 5}, outcome: exec.Outcome{TimedOut: true, Signal: 9}, code: tool.CodeFailed, text: "timed out"},
		"denied":           {args: bashArgs{Command: "x", Timeout: 5}, err: denied, code: tool.CodeDenied, text: "not this one"},
		"no bash":          {args: bashArgs{Command: "x", Timeout: 5}, err: exec.ErrNotFound, code: tool.CodeNotFound, text: "command not found"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := run(t.Context(), tt.args, func(context.Context, exec.Command) (exec.Outcome, error) { return tt.outcome, tt.err })
			if err == nil {
				t.Fatal("no error")
			}
			if got := tool.AsError(err); got.Code != tt.code || !strings.Contains(got.Error(), tt.text) {
				t.Errorf("got %v: %v", got.Code, got)
			}
		})
	}
	if !errors.Is(denied, fs.ErrPermission) {
		t.Error("a denial is not fs.ErrPermission")
	}
}
