package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/toolpage"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/transcript"
	"github.com/stockade-dev/stockade/host/door"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/host/sandbox/admit"
	"github.com/stockade-dev/stockade/host/shellword"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/visible"
)

func newCallCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "call TOOL|MODULE.wasm [JSON | NAME=VALUE...]",
		Short: "Run one tool, through the same policy, sandbox and log as the agent",
		Long: `Run one tool and print its result. The arguments are one JSON object, or
NAME=VALUE pairs, which get the types of the tool's schema.

MODULE.wasm is the path of a module. The module sees only the directories of
--mount. If it holds several tools, name one: MODULE.wasm:TOOL. The steps of a
call are in ` + "`stockade help calls`" + `.

` + exitHelp,
		Example: `  stockade call ls
  stockade call grep pattern=TODO file_filter='*.go'
  stockade call file_read '{"path":"README.md","limit":20}'
  stockade call --allow file_write file_write path=notes.txt content=hello
  stockade call ./greet.wasm name=Ada
  stockade call --mount "$PWD:ro" ./count.wasm:words path=README.md`,
		Args: cobra.MinimumNArgs(1), Annotations: trustAsk.annotation(),
		RunE: func(cmd *cobra.Command, args []string) error { return runCall(cmd.Context(), a, args[0], args[1:]) },
	}
	cmd.Flags().BoolVar(&a.flags.json, "json", false, "print the whole envelope as JSON; nobody is asked")
	addLockedFlag(cmd, a)
	addGrantFlags(cmd, a)
	return cmd
}

func runCall(ctx context.Context, a *app, name string, args []string) error {
	typed := name
	catalog, mounts, name, err := a.callTarget(ctx, name)
	if err != nil {
		return errors.Join(err, a.refusedJSON(err))
	}
	call := tool.Call{ID: "call_1", Tool: name, Caller: tool.CallerPerson, Cwd: a.Workspace}
	entry, ok := catalog.Find(name)
	if ok {
		a.loadAhead(ctx, entry.Module)
	}
	if call.Args, err = parseArgs(entry, args); err != nil {
		return err
	}
	s, err := a.openSession(ctx, catalog, mounts, terminal.NewLines(a.s.in), door.SessionOptions{})
	if err != nil {
		return err
	}
	o := a.transcriptOptions()
	o.CallTyped = true // showResult prints the result
	defer s.Log.Observe(newPrinter(a.s, o).show)()
	result, err := s.Call(ctx, call)
	if err != nil {
		return err
	}
	if entry != nil && entry.Capabilities.Store && result.Err == nil && !a.flags.json && !a.flags.quiet {
		defer a.s.note("%s stores data in its session, and each stockade call is a session of its own: only a chat or a run keeps the data", entry.Name)
	}
	return a.showResult(request{typed, args, call}, result)
}

// refusedJSON prints an error as a result for --json, if a module was not admitted or may not
// run. Otherwise it prints nothing. The result is an error of printing.
func (a *app) refusedJSON(err error) error {
	var r tool.Result
	if refused, ok := errors.AsType[*admit.RefusedError](err); ok {
		r = tool.Failed(tool.CodeNotAdmitted, tool.ValidationFailed, "%v", refused)
		r.Err.Hint = tool.Advise("%s", refusedHint(err))
	} else if denied, ok := errors.AsType[*policy.ModuleError](err); ok {
		r = tool.Failed(tool.CodeDenied, tool.PermissionDenied, "%v", denied)
	}
	if !a.flags.json || r.Err == nil {
		return nil
	}
	r.Usage.Start = time.Now()
	_, err = fmt.Fprintf(a.s.out, "%s\n", visible.EscapeJSON(r.Envelope()))
	return err
}

// request is a call from the command line, as messages about its result need it.
type request struct {
	name string // name of the tool, or path of the module
	args []string
	call tool.Call
}

// callTarget returns the catalog for a call, the mounts, and the name of the tool, which the
// catalog may not have. A module named by its path only sees the directories of --mount; for
// other tools, the workspace is mounted, too.
func (a *app) callTarget(ctx context.Context, name string) (*tool.Catalog, []policy.Mount, string, error) {
	file, inner, isFile := registry.SplitPath(name)
	if !isFile {
		found, err := a.findTools(ctx)
		if err != nil {
			return nil, nil, "", err
		}
		if _, ok := found.Find(name); !ok {
			if m, ok := found.module(name); ok {
				return nil, nil, "", usageError("for example: stockade call "+m.Tools[0].Name, "%s is a module; its tools are: %s", name, strings.Join(m.Names(), ", "))
			}
		}
		mounts, err := a.workspaceMounts()
		return found.Catalog, mounts, name, err
	}
	mod, err := readModule(file)
	if err != nil {
		return nil, nil, "", err
	}
	catalog, err := registry.Catalog(ctx, a.door().Sandbox(), mod)
	if err != nil {
		return nil, nil, "", err
	}
	names := catalog.Names()
	if inner == "" {
		if len(names) > 1 {
			return nil, nil, "", usageError(fmt.Sprintf("for example: stockade call %s:%s", file, names[0]),
				"%s holds %d tools: %s", file, len(names), strings.Join(names, ", "))
		}
		inner = names[0]
	}
	mounts, err := a.flagMounts()
	return catalog, a.warnMounts(mounts), inner, err
}

func readModule(file string) (*tool.Module, error) {
	mod, err := registry.ReadModule(file)
	if err != nil {
		return nil, usageError("name a tool (`stockade tool list`) or the path of a module", "%v", err)
	}
	return mod, nil
}

// parseArgs converts arguments of a command line to JSON. A single argument that begins with {
// is returned as it is, and may be invalid. entry is nil if the tool does not exist.
func parseArgs(entry *tool.Entry, args []string) (json.RawMessage, error) {
	if len(args) == 1 && strings.HasPrefix(strings.TrimSpace(args[0]), "{") {
		return json.RawMessage(args[0]), nil
	}
	fields := map[string]json.RawMessage{}
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok || name == "" {
			return nil, usageError(namedHint(entry, args, arg), "argument %q is neither NAME=VALUE nor a JSON object", arg)
		}
		if _, twice := fields[name]; twice {
			return nil, usageError("", "argument %q is given twice", name)
		}
		fields[name] = typedValue(entry, name, value)
	}
	return json.Marshal(fields)
}

// namedHint returns a hint for a value without a name. It shows the value with the name of an
// argument that is missing, a required one if there is any, or refers to another command.
func namedHint(entry *tool.Entry, args []string, value string) string {
	if entry == nil {
		return "`stockade tool list` shows the tools"
	}
	known, _ := toolpage.Arguments(entry.Parameters)
	known = slices.DeleteFunc(known, func(k toolpage.Argument) bool {
		return slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, k.Name+"=") })
	})
	needs := slices.IndexFunc(known, func(k toolpage.Argument) bool { return k.Required })
	word, ok := shellword.Quote(value)
	if len(known) == 0 || len(value) > maxShownName || !ok {
		return "`stockade tool info " + entry.Name + "` shows the arguments"
	}
	return fmt.Sprintf("for example: stockade call %s %s=%s", entry.Name, known[max(needs, 0)].Name, word)
}

// typedValue returns the value of the argument name as JSON. A value that is no JSON becomes a
// string, and so does any value if the tool's schema takes only a string, or entry is nil.
func typedValue(entry *tool.Entry, name, value string) json.RawMessage {
	if entry != nil && !entry.Schema.IsString(name) && json.Valid([]byte(value)) {
		return json.RawMessage(value)
	}
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // a string always encodes
	}
	return text
}

// showResult prints a result, and returns the error with which the program ends; nil: success.
func (a *app) showResult(req request, r tool.Result) error {
	var end error
	out := transcript.ResultOf(r.Output)
	aside := out.Hint
	if r.Err != nil {
		end = a.resultError(req, r)
	} else if out.ExitCode != 0 {
		end, aside = &exitErr{code: exitToolFailed}, fmt.Sprintf("the command ended with exit code %d", out.ExitCode)
	}
	if a.flags.json {
		if r.Err != nil {
			shownErr := *r.Err
			shownErr.Hint, shownErr.Allow = tool.Advise("%s", hintText(r.Err.Hint)), allowFlag(r.Err.Allow)
			if r.Err.AllowHint != nil {
				shownErr.AllowHint = tool.Advise("%s", hintText(r.Err.AllowHint))
			}
			r.Err = &shownErr
		}
		if _, err := fmt.Fprintf(a.s.out, "%s\n", visible.EscapeJSON(r.Envelope())); err != nil {
			return err
		}
		return end
	}
	if r.Err != nil {
		for _, text := range []string{r.Err.Stdout, r.Err.Stderr} {
			if text = strings.TrimRight(text, "\n"); text != "" {
				fmt.Fprintln(a.s.err, terminal.Visible(a.lastLines(text)))
			}
		}
		a.printNotes(r.Note)
		return end
	}
	text := strings.TrimRight(out.Text, "\n")
	switch {
	case a.s.outTTY:
		text = terminal.Visible(text)
	case !isRaw(req.call.Args):
		text = terminal.EscapeControls(text)
	}
	if _, err := fmt.Fprintln(a.s.out, text); err != nil {
		return err
	}
	if text := strings.TrimRight(out.Stderr, "\n"); text != "" {
		fmt.Fprintln(a.s.err, terminal.Visible(text))
	}
	if aside != "" {
		a.s.note("%s", aside)
	}
	a.printNotes(r.Note)
	if a.flags.verbose {
		a.s.note("%s, %s fuel, peak memory %s", r.Summary(), humanize.Count(r.Usage.FuelUsed), humanize.Bytes(int64(r.Usage.PeakMemoryBytes)))
	}
	return end
}

// isRaw reports whether the arguments ask for raw data, as file_read and http_fetch permit.
func isRaw(args json.RawMessage) bool {
	var asks struct {
		Raw    any `json:"raw"`
		Format any `json:"format"`
	}
	return json.Unmarshal(args, &asks) == nil && (asks.Raw == true || asks.Format == "raw")
}

// printNotes prints the notes of the host about a result, one per line.
func (a *app) printNotes(text string) {
	for note := range strings.Lines(text) {
		a.s.note("%s", strings.TrimSuffix(note, "\n"))
	}
}

// maxErrorLines limits the lines of stdout, and those of stderr, that are shown of a failed
// tool; the last ones are shown.
const maxErrorLines = 12

// lastLines returns the last maxErrorLines lines of a text, below the number of the others, or
// with --verbose all of it: the crash of a guest can print hundreds of lines.
func (a *app) lastLines(text string) string {
	lines := strings.Split(text, "\n")
	if a.flags.verbose || len(lines) <= maxErrorLines {
		return text
	}
	return fmt.Sprintf("... %d lines, all of them with --verbose ...\n%s", len(lines)-maxErrorLines,
		strings.Join(lines[len(lines)-maxErrorLines:], "\n"))
}

// resultError converts a failed result to the error with which the program ends.
func (a *app) resultError(req request, r tool.Result) error {
	e := r.Err
	end := &exitErr{code: exitToolFailed, message: fmt.Sprintf("%s%s (%s)", e.Message, prefixIfSet("; ", hintText(e.AllowHint)), e.Code), hint: hintText(e.Hint)}
	switch e.Code {
	case tool.CodeDenied:
		end.code = exitDenied
		if e.Denial != nil {
			end.hint = a.explainHint(req)
		}
		if calls := a.denyAll.takeDenied(); calls != nil { // a person who said no needs no flag
			end.code, end.hint = exitNobodyToAsk, calls[len(calls)-1].howToAllow()
		}
	case tool.CodeUnknownTool:
		end.code = exitUsage
	case tool.CodeInvalidArgs:
		if !r.Ran() { // otherwise the tool itself refused them
			end.code, end.hint = exitUsage, "`stockade tool info "+req.name+"` shows the arguments"
		}
	case tool.CodeTimeout, tool.CodeMemory, tool.CodeFuel:
		end.code = exitLimit
	case tool.CodeCancelled:
		end.code = exitInterrupted
	}
	return end
}

// explainHint returns a hint with the command that explains the decision about exactly this
// call, or with a field of --json for a long command; empty: the command cannot be copied.
func (a *app) explainHint(req request) string {
	argv := []string{"stockade", "policy", "explain", "--caller", string(req.call.Caller)}
	for _, f := range []struct {
		flag   string
		values []string
	}{
		{"--mount", a.flags.mounts}, {"--allow", a.flags.allow}, {"--allow-net", a.flags.allowNet}, {"--deny", a.flags.deny},
	} {
		for _, v := range f.values {
			argv = append(argv, f.flag, v)
		}
	}
	if a.flags.dir != "" {
		argv = append(argv, "-C", a.flags.dir)
	}
	argv = append(append(argv, req.name), req.args...)
	for i, w := range argv {
		quoted, ok := shellword.Quote(w)
		if !ok {
			return ""
		}
		argv[i] = quoted
	}
	line := strings.Join(argv, " ")
	if len(line) > maxFlagBytes {
		return "the field `denial` of the --json output names the rule and the layer that decide"
	}
	return "`" + line + "` names the rule and the layer that decide"
}
