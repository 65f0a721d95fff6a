package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
)

func newChatCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "chat",
		Short: "Talk to the model in the terminal",
		Long:  "Talk to the model, a line at a time.\n\n" + chatHelp(),
		Example: `  stockade chat
  stockade chat --provider offline -C ~/src/project`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runChat(cmd.Context(), a, "") },
	}
	addTurnFlags(cmd, a)
	return cmd
}

const chatRules = `A line is a prompt, unless it begins with one of these words. Another word that
begins with a slash is a mistake, unless it has a second slash: then it is a path.
A line that begins with a space is always a prompt.

`

// chatCommand is a command of the chat itself.
type chatCommand struct {
	name, args, what string                                                // as /help shows it
	run              func(t *turns, ctx context.Context, arg string) error // nil: the loop does it
}

// chatCommands are the commands of the chat but /help, in the order of /help.
var chatCommands = []chatCommand{
	{"/tool", "", "list the tools", (*turns).tool},
	{"/tool", "NAME", "show a tool with its full schema", (*turns).tool},
	{"/undo", "", "put back what the last turn has changed; again goes one turn further back", (*turns).undo},
	{"/redo", "", "make again what was undone last", (*turns).redo},
	{"/fuel", "", "show how much fuel the session and its tools have used, and have left", (*turns).fuel},
	{"/refresh", "", "look for tools again", (*turns).refresh},
	{"/quit", "", "leave (so does the end of input)", nil},
}

// chatHelp lists the commands of the chat.
func chatHelp() string {
	var b strings.Builder
	b.WriteString(chatRules)
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	for _, c := range chatCommands {
		if c.run == nil {
			fmt.Fprintf(w, "  /help\tshow this\n")
		}
		fmt.Fprintf(w, "  %s\t%s\n", strings.TrimSpace(c.name+" "+c.args), c.what)
	}
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}

// runChat talks in a session, a new one where id is empty.
func runChat(ctx context.Context, a *app, id string) error {
	t, err := openTurns(ctx, a, id)
	if err != nil {
		return err
	}
	t.chat = true
	a.trust = trustWarn // from here on the chat reads what is typed, and /refresh must not
	if !a.flags.quiet {
		a.s.note("session %s in %s; /help shows the commands", t.Log.ID(), a.Work)
	}
	for {
		if a.s.inTTY {
			fmt.Fprint(a.s.err, terminal.Style(a.s.color, terminal.Bold, "> "))
		}
		line, err := t.lines.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		command := isCommand(line)
		line = strings.TrimSpace(line)
		switch {
		case line == "":
		case command && (line == "/quit" || line == "/exit"):
			return nil
		case command:
			if err := t.slash(ctx, line); err != nil {
				a.s.note("%v", err)
			}
		default:
			turn, cancel := context.WithCancelCause(ctx)
			a.turn.Store(&cancel)
			err := t.show(turn, line)
			a.turn.Store(nil)
			cancel(nil)
			if ctx.Err() != nil {
				return err
			}
			report(a.s, ctx, err)
		}
	}
}

// isCommand tells a command of the chat, or a mistyped one, from a prompt.
func isCommand(line string) bool {
	word, _, _ := strings.Cut(line, " ")
	return strings.HasPrefix(word, "/") && strings.Count(word, "/") == 1
}

// slash carries out a command of the chat itself.
func (t *turns) slash(ctx context.Context, line string) error {
	name, arg, _ := strings.Cut(line, " ")
	switch name {
	case "/help":
		fmt.Fprintln(t.a.s.out, chatHelp())
		return nil
	case "/tools":
		name = "/tool"
	}
	for _, c := range chatCommands {
		if c.name == name && c.run != nil {
			return c.run(t, ctx, strings.TrimSpace(arg))
		}
	}
	return fmt.Errorf("unknown command %s; /help shows the commands, and a space before a line makes it a prompt", name)
}

// tool lists the tools, or shows one.
func (t *turns) tool(ctx context.Context, name string) error {
	if name == "" {
		return t.tools.list(t.a.s)
	}
	if err := t.tools.info(ctx, t.a, name); err != nil {
		return fmt.Errorf("%w; /tool lists the tools", err)
	}
	return nil
}

// refresh looks for tools again.
func (t *turns) refresh(ctx context.Context, _ string) error {
	fmt.Fprintln(t.a.s.out, "Refreshing tools...")
	found, err := t.a.tools(ctx)
	if err != nil {
		return err
	}
	catalog, err := t.a.offered(found.Catalog)
	if err != nil {
		return err
	}
	t.Tools.SetCatalog(catalog)
	t.tools = toolset{here: here{catalog, found.added}, ceiling: t.a.Ceiling}
	t.a.offNotes(found)
	fmt.Fprintf(t.a.s.out, "Tools refreshed. %s available.\n", plural(len(t.tools.on()), "tool"))
	return nil
}

// fuel shows how far the budgets of the session are used up.
func (t *turns) fuel(context.Context, string) error {
	w := tabwriter.NewWriter(t.a.s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FUEL\tUSED\tLEFT\tLIMIT")
	for _, u := range t.Tools.Fuel() {
		name := u.Tool
		if name == "" {
			name = "session"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", terminal.Line(name), humanCount(u.Used), humanCount(u.Limit-min(u.Used, u.Limit)), humanCount(u.Limit))
	}
	return w.Flush()
}
