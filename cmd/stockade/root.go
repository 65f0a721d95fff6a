package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/guests"
	"github.com/stockade-dev/stockade/host/jail"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/visible"
)

// Main runs the program and returns its exit code.
func Main(args []string, s *stdio) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // a reader that has left is a write error, and does not end the program
	defer close(signals)
	defer signal.Stop(signals)
	// The program keeps little memory for long, and a search makes a lot of garbage:
	// collecting it more often would take an eighth of the time.
	if s.env("GOGC") == "" {
		sandbox.LimitGarbage(400)
	}
	limitMemory(s, sandbox.DefaultMemoryBytes)
	a := &app{s: s, redactor: new(redact.Redactor), signals: signals}
	out := &output{w: s.out, cancel: cancel}
	s.out, a.stdout = out, out
	s.redact(a.redactor)
	go func() {
		for s := range signals {
			if turn := a.cancelTurn.Swap(nil); turn != nil && s == os.Interrupt {
				(*turn)(errInterrupted)
				continue
			}
			signal.Stop(signals) // another signal ends the program at once
			cancel(errInterrupted)
			return
		}
	}()
	if parts := missingParts(guests.Built(), jail.HasHelper()); parts != "" {
		s.note("this program was built without %s. Run `make build` in its source directory", parts)
	}
	root := newRootCmd(a, standaloneCommand(args))
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	a.close()
	err = errors.Join(err, s.flushOut())
	if a.flags.json && !out.used {
		err = errors.Join(err, jsonError(s, err), s.flushOut())
	}
	code := reportError(s, ctx, err)
	if out.err != nil && !errors.Is(err, out.err) { // the writer did not check the error
		code = reportError(s, ctx, out.err)
	}
	return int(code)
}

// missingParts names the parts that the program lacks, as the end of "built without". Other
// commands than `go build` make them. tools and helper are set if the program has the part.
// Empty: nothing is missing.
func missingParts(tools, helper bool) string {
	switch {
	case !tools && !helper:
		return "its tools, and without the helper that confines bash"
	case !tools:
		return "its tools"
	case !helper:
		return "the helper that confines bash"
	}
	return ""
}

// output is standard output. The first failed write ends the program, because nobody would get
// the rest of the output.
type output struct {
	w      io.Writer
	cancel context.CancelCauseFunc
	used   bool // a write was tried, even if it failed
	err    error
}

func (o *output) Write(p []byte) (int, error) {
	o.used = true
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(p)
	if err != nil {
		o.err = &outputError{err}
		o.cancel(o.err)
	}
	return n, o.err
}

type outputError struct{ error }

func (e *outputError) Unwrap() error { return e.error }

// closedOutput replaces a standard output that was closed before the start. Its writes fail.
type closedOutput struct{}

func (closedOutput) Write([]byte) (int, error) { return 0, errors.New("standard output is closed") }

// jsonError prints the error of a command that has printed nothing, as JSON: a program that
// reads JSON also needs errors as JSON.
func jsonError(s *stdio, err error) error {
	if err == nil {
		return nil
	}
	line := struct {
		Error string `json:"error"`
		Hint  string `json:"hint,omitempty"`
	}{Error: err.Error()}
	if exit, ok := errors.AsType[*exitErr](explainError(err)); ok {
		line.Error, line.Hint = exit.message, exit.hint
	}
	data, err := json.Marshal(line)
	if err != nil {
		return err
	}
	_, err = s.out.Write(append(visible.EscapeJSON(data), '\n'))
	return err
}

// standalone are the commands that the program can create without all others: they are started
// most often, and their mistakes need no list of commands. Creating all commands takes a
// twentieth of the start time.
var standalone = map[string]func(*app) *cobra.Command{"run": newRunCmd, "chat": newChatCmd, "call": newCallCmd, "version": newVersionCmd}

// standaloneCommand returns the name of the standalone command in args, which flags of all
// commands may precede. It is empty for other commands, and for --help, which lists all
// commands.
func standaloneCommand(args []string) string {
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "-C", "--directory":
			i++
		case "-q", "--quiet", "-v", "--verbose", "--plain":
		default:
			wantsHelp := func(arg string) bool {
				return strings.HasPrefix(arg, "--help") || strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--") && strings.Contains(arg, "h")
			}
			if standalone[args[i]] == nil || slices.ContainsFunc(args[i:], wantsHelp) {
				return ""
			}
			return args[i]
		}
	}
	return ""
}

// newRootCmd returns the root command with the standalone command only, or with all commands
// if only is empty.
func newRootCmd(a *app, only string) *cobra.Command {
	root := &cobra.Command{
		Use:   `stockade ["PROMPT"]`,
		Short: "An LLM agent whose tools are sandboxed WebAssembly modules",
		Long: `Stockade runs an LLM agent whose tools are WebAssembly modules. Each runs in a
sandbox that shows it only the directories you mounted, under limits on time,
instructions and memory, and every call is in a log that can be verified.

Without arguments on a terminal it starts a chat. Without a provider it uses a
small offline model, so that you can try it without a key.

` + exitHelp,
		Example: `  stockade "list files then read README.md"
  stockade chat
  stockade call grep pattern=TODO
  stockade session show last`,
		Version:       strings.TrimPrefix(version(), "stockade "),
		Args:          cobra.ArbitraryArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, args []string) error { return runRoot(cmd, a, args) },
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Name() == "version" || cmd.Name() == "doctor" || cmd.Name() == cobra.ShellCompRequestCmd || cmd.HasParent() && cmd.Parent().Name() == "completion" ||
				cmd.Name() == "check" && cmd.Parent().Name() == "policy" { // also the file that stops everything else
				return nil
			}
			if f := cmd.Flag("defaults"); f != nil && f.Value.String() == "true" { // the defaults do not depend on the settings
				return nil
			}
			if f := cmd.Flag("directory"); f.Changed && f.Value.String() == "" {
				return usageError("-C names the directory to work in", "-C names no directory")
			}
			if cmd != cmd.Root() || len(args) == 0 || isPrompt(args) { // otherwise it is a mistake, and nothing will run
				a.trust = trustMode(cmd.Annotations[trustAnnotation])
			}
			return a.open(cmd.Context())
		},
	}
	root.SetOut(a.s.out)
	root.SetErr(a.s.err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError(fmt.Sprintf("`%s --help` shows the flags", cmd.CommandPath()), "%v", err)
	})
	f := root.PersistentFlags()
	f.StringVarP(&a.flags.dir, "directory", "C", "", "the workspace (default: the current directory)")
	f.BoolVar(&a.flags.plain, "plain", false, "lines only, nothing that moves: for screen readers (default: ui.plain of the configuration)")
	f.BoolVarP(&a.flags.quiet, "quiet", "q", false, "print results and errors only")
	f.BoolVarP(&a.flags.verbose, "verbose", "v", false, "print more: whole results, decisions, hints")
	addTurnFlags(root, a)
	if only != "" {
		root.AddCommand(standalone[only](a))
		root.CompletionOptions.DisableDefaultCmd = true
	} else {
		root.AddCommand(
			newInitCmd(a), newRunCmd(a), newChatCmd(a), newCallCmd(a), newToolCmd(a), newSecretCmd(a), newSessionCmd(a), newAuditCmd(a), newModelCmd(a), newConfigCmd(a), newPolicyCmd(a), newSelftestCmd(a), newDoctorCmd(a),
			newVersionCmd(a),
		)
		help := newHelpCmd(a, root)
		root.SetHelpCommand(help)
		root.AddCommand(help)
	}
	a.pageOutput(root)
	for _, cmd := range append(commands(root), root) {
		cmd.SuggestionsMinimumDistance = 2
		usageArgs(cmd)
	}
	return root
}

func commands(root *cobra.Command) []*cobra.Command {
	var out []*cobra.Command
	for _, c := range root.Commands() {
		out = append(append(out, c), commands(c)...)
	}
	return out
}

// usageArgs makes wrong arguments a usage error. A command that only groups others shows its
// help without arguments, and otherwise ends with an error that names a similar command, or
// all of them.
func usageArgs(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			if _, isUsage := errors.AsType[*exitErr](err); err == nil || isUsage {
				return err
			}
			hint := "usage: " + cmd.UseLine()
			minArgs, maxArgs := argLimits(cmd, check)
			switch {
			case len(args) < minArgs:
				if example, _, _ := strings.Cut(strings.TrimSpace(cmd.Example), "\n"); example != "" {
					hint = "for example: " + example
				}
				return usageError(hint, "%s: %s is missing", cmd.Name(), strings.Join(strings.Fields(cmd.Use)[1+len(args):1+minArgs], " "))
			case len(args) > maxArgs && maxArgs == 0:
				return usageError(hint, "%s: it takes no arguments, and %q is one", cmd.Name(), humanize.Clip(args[0], maxShownName))
			case len(args) > maxArgs:
				return usageError(hint, "%s: %q is one argument too many", cmd.Name(), humanize.Clip(args[maxArgs], maxShownName))
			}
			return usageError(hint, "%s: %v", cmd.Name(), err)
		}
	}
	if cmd.HasParent() && cmd.HasSubCommands() && cmd.RunE == nil {
		cmd.Args = cobra.ArbitraryArgs
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return unknownCommand(cmd, args[0])
		}
	}
}

// argLimits returns the smallest and the largest number of arguments that a command accepts; 8
// stands for any number. It finds them by calling check, because the error texts of check come
// from a library.
func argLimits(cmd *cobra.Command, check cobra.PositionalArgs) (minArgs, maxArgs int) {
	const many = 8 // commands that accept so many arguments accept any number
	for minArgs < many && check(cmd, make([]string, minArgs)) != nil {
		minArgs++
	}
	for maxArgs = many; maxArgs > minArgs && check(cmd, make([]string, maxArgs)) != nil; {
		maxArgs--
	}
	return minArgs, maxArgs
}

func unknownCommand(cmd *cobra.Command, word string) error {
	var names []string
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	slices.Sort(names)
	hint := "the commands are: " + strings.Join(names, ", ")
	if near := cmd.SuggestionsFor(word); word != "" && len(near) > 0 {
		hint = fmt.Sprintf("did you mean `%s %s`?", cmd.CommandPath(), near[0])
	} else if word != "" && !cmd.HasParent() {
		hint = "a prompt is one argument of several words: stockade \"list files\"; or use: stockade run " + word
	}
	return usageError(hint, "unknown command %q", word)
}

// isPrompt reports whether the arguments are a prompt for which run was left out. A single
// word is none: it is probably a mistyped command, and a prompt would leave this machine. "-"
// stands for standard input.
func isPrompt(args []string) bool {
	return len(args) == 1 && (args[0] == "-" || len(strings.Fields(args[0])) > 1)
}

func runRoot(cmd *cobra.Command, a *app, args []string) error {
	switch {
	case len(args) > 0 && !isPrompt(args):
		return unknownCommand(cmd, args[0])
	case len(args) == 0 && a.s.interactive():
		return runChat(cmd.Context(), a, "", "")
	case len(args) == 0 && !a.s.piped():
		cmd.SetOut(io.Writer(a.s.err))
		_ = cmd.Usage()
		return &exitErr{code: exitUsage, message: "no prompt, and no terminal for a chat"}
	}
	return runTurn(cmd.Context(), a, "", args)
}
