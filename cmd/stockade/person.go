package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/transcript"
	"github.com/stockade-dev/stockade/host/agent"
	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/visible"
)

const (
	maxCommandOutput = 8 << 10 // bytes of a command's output in the next prompt: its end
	maxRanCommands   = 8       // number of the person's commands in the next prompt; older ones are dropped
)

// call makes a call of the person in the session and yields its events as they happen; the
// last event is the result. An error means that the host or the log failed. If the consumer
// stops early, the call is cancelled.
func (t *conversation) call(ctx context.Context, name string, args map[string]any) iter.Seq2[session.Event, error] {
	return t.callWithResult(ctx, new(tool.Result), name, args)
}

// callWithResult is call for a caller that needs the whole result; the event holds only a part
// of it. result is set after the last event.
func (t *conversation) callWithResult(ctx context.Context, result *tool.Result, name string, args map[string]any) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		call := tool.Call{ID: "person_" + rand.Text(), Tool: name, Args: tool.Marshal(args), Caller: tool.CallerPerson, Cwd: t.a.Workspace}
		for e, err := range t.Log.During(ctx, func(ctx context.Context) error {
			var err error
			*result, err = t.Call(ctx, call)
			return err
		}) {
			if err == nil && e.Call != call.ID {
				continue
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// shell runs a command that the person typed after an exclamation mark: a call of the tool
// bash under its usual rules. The next prompt tells the model the command and its output.
func (t *conversation) shell(ctx context.Context, command string) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		command = strings.TrimSpace(command)
		if command == "" {
			yield(session.Event{}, usageError("for example: !git status", "a command follows the !; it runs by the rules of the tool bash, see stockade help bash"))
			return
		}
		wrote := "" // first 64 KiB of the output while the command ran: the result of a cancelled command has no output
		for e, err := range t.call(ctx, "bash", map[string]any{"command": command}) {
			switch e.Type {
			case session.TypeProgress:
				var p tool.Progress
				_ = json.Unmarshal(e.Body, &p) // this program wrote it
				wrote += p.Output
			case session.TypeToolResult:
				if m, ok := e.Message(); ok {
					t.recordCommand(command, wrote, m)
				}
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// recordCommand adds a command of the person, with its result, to the next prompt.
func (t *conversation) recordCommand(command, wrote string, result llm.Message) {
	t.ranCommands = append(t.ranCommands, agent.Attachment{Text: commandText(command, wrote, result)})
	t.ranCommands = t.ranCommands[max(len(t.ranCommands)-maxRanCommands, 0):]
}

// restoreCommands records the commands that the person ran before leaving the session.
func (t *conversation) restoreCommands(asides []agent.PersonCall) {
	for _, a := range asides {
		var args struct {
			Command string `json:"command"`
		}
		if a.Call.Function.Name == "bash" && json.Unmarshal([]byte(a.Call.Function.Arguments), &args) == nil {
			t.recordCommand(args.Command, "", a.Result)
		}
	}
}

// commandText describes a command of the person and its result for the model. wrote is the
// output that the command wrote while it ran.
func commandText(command, wrote string, result llm.Message) string {
	_, env, _ := transcript.EnvelopeOf(result)
	parts := []string{cmp.Or(env.Stdout, visible.RenderTerminal(wrote)), env.Stderr}
	end := env.Error
	if env.Success {
		var out struct {
			Output   string `json:"output"`
			ExitCode int    `json:"exit_code"`
		}
		_ = json.Unmarshal(env.Result, &out) // a result in another form leaves the fields zero
		parts = []string{out.Output}
		end = fmt.Sprintf("it ended with exit code %d", out.ExitCode)
	}
	if env.Note != "" {
		end += "; " + strings.ReplaceAll(env.Note, "\n", "; ")
	}
	output := strings.Trim(strings.Join(parts, "\n"), "\n")
	if over := len(output) - maxCommandOutput; over > 0 { // the end matters most
		output = fmt.Sprintf("[%d bytes left out]\n%s", over, strings.ToValidUTF8(output[over:], ""))
	}
	return "A command that the person ran, and what it wrote:\n" +
		"$ " + strings.ReplaceAll(command, "\n", "\n> ") + "\n" + quoteLines(output) + "\n[" + end + "]"
}

// ask runs one turn. The prompt also gets the files that typed mentions, and the commands that
// the person has run since the last turn. typed is the part of the prompt that the person
// typed.
func (t *conversation) ask(ctx context.Context, prompt, typed string) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		var files []agent.Attachment
		for e, err := range t.attach(ctx, typed, &files) {
			if !yield(e, err) || err != nil {
				return
			}
		}
		for e, err := range t.Run(ctx, prompt, slices.Concat(t.ranCommands, files)...) {
			if e.Type == session.TypeTurnStarted {
				t.ranCommands = nil
			}
			if !yield(e, err) {
				return
			}
		}
	}
}
