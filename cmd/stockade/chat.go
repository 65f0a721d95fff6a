package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/editor"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/table"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/sdk/go/nearest"
)

func newChatCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   `chat ["PROMPT"]`,
		Short: "Talk to the model in the terminal",
		Long:  "Talk to the model, a line at a time. A prompt is the first line.\n\n" + chatHelp(),
		Example: `  stockade chat
  stockade chat "what does this project do?"
  stockade chat --provider offline -C ~/src/project`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runChat(cmd.Context(), a, "", strings.Join(args, ""))
		},
	}
	addTurnFlags(cmd, a)
	return cmd
}

const chatRules = `A line is a prompt, unless it begins with one of these words. Another word
that begins with a slash is a mistake, unless it has a second slash: then it is
a path. A line that begins with a space is always a prompt.

  !COMMAND    run a command, by the rules of bash; the next prompt tells the
              model
  @FILE       in a prompt: the model gets the file, or what a directory holds,
              with it; @"FILE" where its name has blanks

`

// chatCommand is a command of the chat, with its entry in /help.
type chatCommand struct {
	name, args, help string                                                       // texts for /help
	run              func(t *conversation, ctx context.Context, arg string) error // nil: [conversation.do] does it
}

// chatCommands are the commands of the chat except /help, in the order of /help.
var chatCommands = []chatCommand{
	{"/tool", "", "list the tools", (*conversation).tool},
	{"/tool", "NAME", "show a tool, with its arguments and errors", (*conversation).tool},
	{"/model", "", "list the profiles, and mark the one in use", (*conversation).model},
	{"/model", "NAME", "ask that profile from now on, or that model of the same provider; also PROFILE MODEL", (*conversation).model},
	{"/context", "", "show the contents of the model's context, and the usage of the session", (*conversation).context},
	{"/compact", "[TEXT]", "let the model summarize its earlier work, to make room; TEXT says what matters", (*conversation).compact},
	{"/stats", "", "show the calls of the session by tool, its tokens and their cost by model", (*conversation).stats},
	{"/tasks", "", "show the list of tasks that the model keeps", (*conversation).tasks},
	{"/permissions", "", "show what is allowed without a question, and by what", (*conversation).permissions},
	{"/permissions", "revoke", "take back the answers of this session, and auto", (*conversation).permissions},
	{"/mode", "[ask|auto|plan]", "change what is asked about, as Shift-Tab does", (*conversation).mode},
	{"/undo", "", "undo the changes of the last turn; again, those of the turn before", (*conversation).undo},
	{"/redo", "", "redo the changes that were undone last", (*conversation).redo},
	{"/rewind", "[N]", "list the turns; with N, take back the conversation, the files or both to before turn N", (*conversation).rewind},
	{"/fuel", "", "show the fuel that the session and its tools have used and have left", (*conversation).fuel},
	{"/show", "[N]", "show everything about a call, by its number; without N, about the last", (*conversation).showCall},
	{"/show", "summary", "show the newest summary of earlier work, which the model has in place of it", (*conversation).showCall},
	{"/init", "", "write a first AGENTS.md, which the model gets in each session", (*conversation).initProject},
	{"/init", "again", "check whether AGENTS.md is still right", (*conversation).initProject},
	{"/refresh", "", "look for tools again", (*conversation).refresh},
	{"/new", "", "begin a new session; so does /clear", (*conversation).begin},
	{"/resume", "[WORDS]", "choose an earlier session of this workspace, and go on with it", (*conversation).resume},
	{"/quit", "", "leave (so does the end of input)", nil},
}

func chatHelp() string {
	var b strings.Builder
	b.WriteString(chatRules)
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	for _, c := range chatCommands {
		if c.run == nil {
			fmt.Fprintf(w, "  /help\tshow this\n")
		}
		fmt.Fprintf(w, "  %s\t%s\n", strings.TrimSpace(c.name+" "+c.args), c.help)
	}
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}

// runChat runs the chat in the session with an id, or in a new one if id is empty. first is
// the first line; it may be empty.
func runChat(ctx context.Context, a *app, id, first string) error {
	t, err := openConversation(ctx, a, id, finalAnswer{}, nil)
	if err != nil {
		return err
	}
	t.chat = true
	a.trust = trustWarn // the chat reads input from here on; a trust question of /refresh would take it
	t.greet()
	if a.ui != nil {
		return t.runUI(ctx, editor.New(t.editorOptions()), first, func(ctx context.Context, typed string) (leave, failed bool) {
			leave, err := t.do(ctx, typed)
			if ctx.Err() == nil {
				code := reportError(a.s, ctx, err)
				failed = code != exitOK && code != exitInterrupted
			}
			return leave, failed
		})
	}
	warned := false // the notice that Ctrl-C leaves was shown
	for {
		line := first
		err := t.interruptible(ctx, func(ctx context.Context) (err error) {
			if first, line = "", first; line != "" {
				return nil
			}
			if a.s.inTTY {
				fmt.Fprint(a.s.err, terminal.Style(a.s.color, terminal.Bold, "> "))
			}
			line, err = t.lines.Next(ctx)
			return err
		})
		switch {
		case errors.Is(err, errInterrupted) && !a.s.inTTY:
			return &exitErr{code: exitInterrupted, message: "interrupted"}
		case errors.Is(err, errInterrupted) && ctx.Err() == nil:
			fmt.Fprintln(a.s.err)
			if warned {
				return nil
			}
			warned = true
			fmt.Fprintln(a.s.err, "Ctrl-C again leaves. "+t.resumeHint())
			continue
		case errors.Is(err, io.EOF):
			if a.s.inTTY && !a.flags.quiet {
				fmt.Fprintln(a.s.err, "\n"+t.resumeHint())
			}
			return nil
		case err != nil:
			return err
		}
		warned = false
		leave, err := t.do(ctx, line)
		if leave || ctx.Err() != nil {
			return err
		}
		reportError(a.s, ctx, err)
	}
}

// resumeHint returns a text that tells a leaving person how to come back.
func (t *conversation) resumeHint() string {
	return "`stockade session resume " + t.a.session.Load().Log.ID() + "` goes on with it."
}

// do carries out a line that was typed in a chat. leave is set if the person wants to leave.
func (t *conversation) do(ctx context.Context, typed string) (leave bool, err error) {
	command, spaced := isCommand(typed), strings.HasPrefix(typed, " ")
	typed = strings.TrimSpace(typed)
	switch {
	case typed == "":
		return false, nil
	case command && (typed == "/quit" || typed == "/exit"):
		return true, nil
	}
	return false, t.interruptible(ctx, func(ctx context.Context) error {
		shell, isShell := strings.CutPrefix(typed, "!")
		switch {
		case command:
			err := t.slash(ctx, typed)
			if err == nil || errors.Is(err, context.Canceled) {
				return err
			}
			t.a.s.note("%v", err) // its hints name commands of the shell
			return nil
		case isShell && !spaced:
			return t.showCalls(t.shell(ctx, shell))
		}
		return t.show(ctx, typed, typed)
	})
}

// interruptible calls run. Meanwhile, the first Ctrl-C cancels its context and does not end the
// program.
func (t *conversation) interruptible(ctx context.Context, run func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t.a.cancelTurn.Store(&cancel)
	defer t.a.cancelTurn.Store(nil)
	err := run(ctx)
	if errors.Is(err, context.Canceled) {
		return context.Cause(ctx) // the cause names the reason
	}
	return err
}

// isCommand reports whether a line is a command of the chat, perhaps mistyped, and no prompt.
func isCommand(line string) bool {
	word, _, _ := strings.Cut(line, " ")
	return strings.HasPrefix(word, "/") && strings.Count(word, "/") == 1
}

// slash carries out a command of the chat, such as /help.
func (t *conversation) slash(ctx context.Context, line string) error {
	word, arg, _ := strings.Cut(line, " ")
	if word == "/help" {
		fmt.Fprintln(t.a.s.out, wrapHanging(chatHelp(), t.a.s.width()))
		return nil
	}
	name := cmp.Or(otherNames[word], word)
	arg = strings.TrimSpace(arg)
	fault, names := "", []string{"/help"}
	for _, c := range chatCommands {
		names = append(names, c.name)
		switch {
		case c.name != name:
		case c.args != "" || arg == "":
			return c.run(t, ctx, arg)
		default:
			fault = " takes no argument"
		}
	}
	if fault == "" {
		fault = " is not a command" + nearest.Hint(name, names)
	}
	return fmt.Errorf("%s%s; /help shows the commands, and a space before a line makes it a prompt", word, fault)
}

// otherNames are names that other programs have for commands of the chat.
var otherNames = map[string]string{"/tools": "/tool", "/exit": "/quit", "/clear": "/new", "/reset": "/new", "/compress": "/compact"}

// tool lists the tools, or shows one tool.
func (t *conversation) tool(ctx context.Context, name string) error {
	if name == "" {
		return t.tools.list(t.a.s)
	}
	if err := t.tools.info(ctx, t.a, name); err != nil {
		return fmt.Errorf("%w; /tool lists the tools", err)
	}
	return nil
}

func (t *conversation) refresh(ctx context.Context, _ string) error {
	fmt.Fprintln(t.a.s.out, "Refreshing tools...")
	found, err := t.a.findTools(ctx)
	if err != nil {
		return err
	}
	catalog, err := t.a.applyToolsFlag(found.Catalog)
	if err != nil {
		return err
	}
	t.Tools.SetCatalog(catalog)
	t.tools = toolset{availableTools: availableTools{catalog, found.added}, ceiling: t.a.Ceiling}
	t.a.noteSwitchedOff(found)
	fmt.Fprintf(t.a.s.out, "Tools refreshed. %s available.\n", humanize.Plural(len(t.tools.enabled()), "tool"))
	return nil
}

// fuel shows the fuel budgets of the session, with the fuel used and the fuel that remains.
func (t *conversation) fuel(context.Context, string) error {
	w := table.New(table.Text("FUEL"), table.Fixed("USED"), table.Fixed("LEFT"), table.Fixed("LIMIT"))
	for _, u := range t.Tools.Fuel() {
		name := u.Tool
		if name == "" {
			name = "session"
		}
		w.Row(name, humanize.Count(u.Used), humanize.Count(u.Limit-min(u.Used, u.Limit)), humanize.Count(u.Limit))
	}
	return t.a.s.table(w)
}
