package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/editor"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/transcript"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/tui"
)

// drawsInPlace reports whether the program redraws moving things on the terminal. If not, it
// only prints lines.
func (a *app) drawsInPlace() bool {
	term := a.s.env("TERM")
	return a.s.interactive() && a.s.outTTY && term != "" && term != "dumb" && !a.flags.json && !a.plain() && !a.flags.quiet
}

// plain reports whether the person wants output in which nothing moves, as a screen reader
// needs.
func (a *app) plain() bool { return a.flags.plain || a.Config.UI.Plain }

// runUI runs the terminal of package tui until the person leaves. If ed is nil, a person can
// type only answers, not prompts, and it ends after do was called with first, the first prompt.
// With ed, first may be empty.
func (t *conversation) runUI(ctx context.Context, ed *editor.Editor, first string, do func(ctx context.Context, typed string) (leave, failed bool)) error {
	a := t.a
	env := a.s.env
	var stopped atomic.Bool // the running command was told to stop
	o := tui.Options{
		// All common terminals reflow, except xterm, GNU screen and the console of Linux.
		Reflows: env("XTERM_VERSION") == "" && env("STY") == "" && env("TERM") != "linux",
		In:      a.s.in, Out: os.Stderr, Env: os.Environ(), Color: a.s.color, Editor: ed,
		Transcript: t.liveTranscript(), NextMode: t.nextMode, Mode: t.modeText,
		LeaveHint: t.resumeHint,
		Steers: func(typed string) bool {
			return len(typed) <= maxSteeringBytes && !isCommand(typed) && !strings.HasPrefix(typed, "!") && len(mentions(typed)) == 0
		},
		Do: func(ctx context.Context, typed string) (leave, failed bool) {
			stopped.Store(false)
			return do(ctx, typed)
		},
		Stop: func() {
			again := stopped.Swap(true)
			switch turn := a.cancelTurn.Swap(nil); {
			case turn != nil:
				(*turn)(errInterrupted)
			case again: // it does not stop; one key must not leave just after it has ended
				select {
				case a.signals <- os.Interrupt:
				default: // an earlier one is still waiting
				}
			}
		},
	}
	if first != "" {
		o.Prompts = []string{first}
	}
	before := *a.s
	rows := messageWriter{a.redactor.Writer(a.ui.Rows())}
	a.s.err, a.s.out, a.s.flush = rows, rows, nil
	err := a.ui.Run(ctx, o)
	*a.s = before
	if ed != nil && ctx.Err() != nil { // the terminal was drawn until the end and has not shown the hint
		fmt.Fprintln(a.s.err, o.LeaveHint())
	}
	return err
}

// maxSteeringBytes limits a text for the running turn; a longer one waits, and is the next prompt.
const maxSteeringBytes = 8 << 10

// steer returns what a person has sent to the running turn, see [agent.Options.Steer].
func (a *app) steer() (says []string) {
	if a.ui != nil {
		for _, typed := range a.ui.TakeQueued() {
			says = append(says, strings.TrimSpace(typed))
		}
	}
	return says
}

// liveTranscript returns the transcript of the session for the redrawn terminal.
func (t *conversation) liveTranscript() *transcript.Transcript {
	o := t.transcriptOptions()
	o.Live, o.QuestionsShown = true, false
	return transcript.New(o)
}

func (t *conversation) editorOptions() editor.Options {
	o := editor.Options{History: t.a.Dirs.PromptHistory(), Color: t.a.s.color, Redact: t.a.redactor.Text}
	for _, c := range append(slices.Clone(chatCommands), chatCommand{name: "/help", help: "show the commands"}) {
		command := editor.Command{Name: c.name, Args: c.args, What: c.help}
		if c.args != "" {
			command.Arg = map[string]editor.Kind{"/tool": editor.Tools, "/model": editor.Profiles}[c.name]
		}
		o.Commands = append(o.Commands, command)
	}
	o.Complete = func(kind editor.Kind, prefix string) (names []string) {
		switch kind {
		case editor.Tools:
			for _, d := range t.a.session.Load().Tools.Definitions() {
				names = append(names, d.Name)
			}
			return names
		case editor.Profiles:
			return t.a.Config.ProfileNames()
		}
		return editor.Files(t.a.Workspace, prefix)
	}
	return o
}
