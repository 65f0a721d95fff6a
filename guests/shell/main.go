// Command shell is the guest module that offers bash. It starts nothing
// itself: it hands the command to the host, which runs it if it was approved.
package main

import (
	"context"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/sdk/go/exec"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

func init() {
	tool.Module("shell", "0.1.0")
	tool.Register("bash", "Run a bash command on the host and return its output and exit code. "+
		"It is confined: it sees the workspace and the programs of the system, and no other files. "+
		"What it writes in the workspace is kept when the person agrees; its home and its temporary directory are its own and vanish. "+
		"It has no network unless network is true. There is no stdin, so it cannot ask questions, "+
		"and what it leaves in the background is ended. Standard output and standard error are returned together in order, unless separate_stderr is true. "+
		"Prefer the file tools for listing, searching, reading and writing files.",
		bash, tool.RunsCommand("command", "timeout_seconds"), tool.CommandNetwork("network"),
		tool.Errors("INVALID_ARGUMENTS: command is empty",
			"NOT_FOUND: there is no bash on this machine",
			"TOOL_FAILED: the process could not be started or watched; the text says why"),
		tool.Limits("300 seconds; without timeout_seconds a call has the setting bash.timeout",
			"256 KiB of each output are kept, its beginning and its end (bash.max_output)",
			"a command that ends with another exit code than 0 is a result, and no error of the tool: look at exit_code",
			"a command that is out of time is ended with all its children, and nothing of what it has changed is kept"),
		tool.Example(`{"command":"go test ./..."}`, "runs the tests of a project"),
		tool.Example(`{"command":"make","timeout_seconds":300,"separate_stderr":true}`, "builds, and tells the warnings from the rest"))
}

func main() {}

type bashArgs struct {
	Command     string `json:"command" desc:"The command, as for bash -c."`
	Timeout     int    `json:"timeout_seconds,omitempty" desc:"Seconds after which the command is killed; the default is the user's setting, 30 unless changed." min:"1" max:"300"`
	Network     bool   `json:"network,omitempty" desc:"The command needs the network; a person is asked, and it reaches the hosts that are allowed."`
	Separate    bool   `json:"separate_stderr,omitempty" desc:"Return standard error apart, as stderr; the order of the two outputs is lost then."`
	Description string `json:"description,omitempty" desc:"What the command does, in a few words, for the person who is asked."`
}

type bashResult struct {
	Output    string `json:"output"`
	Stderr    string `json:"stderr,omitempty"` // standard error with separate_stderr; else it is a part of Output
	ExitCode  int    `json:"exit_code"`        // 128 and the signal's number when a signal ended bash
	Signal    int    `json:"signal,omitempty"`
	Truncated bool   `json:"truncated,omitempty"`
}

// truncatedNote is added to an output that the host has cut.
const truncatedNote = "\n[output truncated: the command wrote more than is kept; narrow it, for instance with head, tail or grep]"

func bash(ctx context.Context, in bashArgs) (bashResult, error) {
	return run(ctx, in, exec.Run)
}

// run is the tool bash. start is the host's function that runs a command.
func run(ctx context.Context, in bashArgs, start func(context.Context, exec.Command) (exec.Outcome, error)) (bashResult, error) {
	if in.Command == "" {
		return bashResult{}, tool.InvalidInput("command is empty")
	}
	if in.Timeout < 0 || in.Timeout > 300 {
		return bashResult{}, tool.InvalidInput("timeout_seconds is %d; it can be 1 to 300", in.Timeout)
	}
	out, err := start(ctx, exec.Command{
		Argv:        []string{"bash", "-c", in.Command},
		Timeout:     time.Duration(in.Timeout) * time.Second,
		MergeStderr: !in.Separate,
	})
	if err != nil {
		return bashResult{}, err
	}
	if out.TimedOut {
		return bashResult{}, tool.Failed("the command timed out")
	}
	result := bashResult{Output: string(out.Stdout), Stderr: string(out.Stderr), ExitCode: out.ExitCode, Signal: out.Signal, Truncated: out.Truncated}
	if out.Signal != 0 {
		result.ExitCode = 128 + out.Signal
	}
	if out.Truncated {
		result.Output += truncatedNote
	}
	if fields := strings.Fields(in.Command); out.ExitCode == 127 && len(fields) > 0 && fields[0] == "apply_patch" {
		result.Output = strings.TrimPrefix(result.Output+"\n[apply_patch is no command but a tool: call that, with the patch as its argument]", "\n")
	}
	return result, nil
}
