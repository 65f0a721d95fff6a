package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"golang.org/x/term"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/prompt"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/dispatch"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/settings"
	"github.com/stockade-dev/stockade/host/shellword"
)

// denyAll is an approver that answers no, for runs in which nobody can be asked. It records the
// calls that it denied, equal ones once. It is safe for concurrent use.
type denyAll struct {
	by    string // who has answered, for the record; empty: no terminal
	mu    sync.Mutex
	calls []deniedCall
}

type deniedCall struct {
	tool      string
	allowRule string // rule that would have allowed the call; empty: no rule would have
}

// maxFlagBytes limits a flag or command that is printed for copying, in bytes. Instead of a
// longer one, a field of the --json output is named.
const maxFlagBytes = 500

// howToAllow returns a text with the flag that would allow the call, for copying.
func (c deniedCall) howToAllow() string {
	flag := allowFlag(c.allowRule)
	switch {
	case c.allowRule == "":
		return "no flag answers this question: run it where a person can answer"
	case len(flag) > maxFlagBytes:
		return fmt.Sprintf("to allow it: a flag of %d characters, in the field `allow` of what --json prints", len(flag))
	case !shellword.IsPOSIX(flag):
		return "to allow it: " + terminal.Line(flag) + " (for bash or zsh)"
	}
	return "to allow it: " + terminal.Line(flag)
}

// Approve implements dispatch.Approver.
func (u *denyAll) Approve(_ context.Context, q policy.Question) func() (policy.Answer, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if c := (deniedCall{q.Tool, q.AllowRule}); !slices.Contains(u.calls, c) {
		u.calls = append(u.calls, c)
	}
	return func() (policy.Answer, error) { return policy.Answer{By: cmp.Or(u.by, "no terminal to ask on")}, nil }
}

// takeDenied returns the calls that were denied since it was last called.
func (u *denyAll) takeDenied() []deniedCall {
	u.mu.Lock()
	defer u.mu.Unlock()
	calls := u.calls
	u.calls = nil
	return calls
}

// approver returns an approver that asks on the redrawn terminal if there is one, or else on
// the controlling terminal, even if standard input is a pipe or stderr is a file. Without a
// terminal, with --json, or in a run with auto, it answers no; with --ask it asks the program at
// the other end of standard input. Nothing but lines may read standard input.
func (a *app) approver(lines *terminal.Lines) dispatch.Approver {
	if a.flags.ask {
		a.denyAll.by = "the end of standard input"
		return &programAsker{a: a, lines: lines}
	}
	if a.unattended {
		a.denyAll.by = "nobody is asked with auto"
	} else if asker := a.asker(lines); asker != nil {
		return prompt.NewQueue(asker, a.prepare)
	}
	return &a.denyAll
}

// asker returns what asks a person, as [app.approver] does; nil: nobody can be asked.
func (a *app) asker(lines *terminal.Lines) prompt.Asker {
	if a.flags.json {
		return nil
	}
	switch {
	case a.ui != nil:
		return a.ui
	case a.onTTY != nil:
		return a.onTTY
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		if !a.s.interactive() {
			return nil
		}
		return a.asksOn(lines, a.s.err, a.s.in, a.s.color) // a system without /dev/tty
	}
	a.onClose(tty.Close)
	if !a.s.inTTY {
		lines = terminal.NewLines(tty)
	}
	a.onTTY = a.asksOn(lines, messageWriter{a.redactor.Writer(tty)}, tty, a.s.colors())
	return a.onTTY
}

func (a *app) asksOn(lines *terminal.Lines, out io.Writer, tty *os.File, color bool) *prompt.Terminal {
	return &prompt.Terminal{
		Lines: lines, Out: out, Color: color, Screen: &a.screen, Interrupt: errInterrupted,
		Size: func() (columns, rows int) {
			columns, rows, _ = term.GetSize(int(tty.Fd())) // 0 after an error
			return columns, rows
		},
	}
}

// prepare removes secrets from a question, and adds the targets of those paths that lead
// through symbolic links.
func (a *app) prepare(q policy.Question) prompt.Question {
	out := prompt.Question{Question: q.Redacted(a.redactor), LeadsTo: map[string]string{}}
	for i, path := range q.Paths {
		if to := settings.Resolve(path); to != path {
			out.LeadsTo[out.Paths[i]] = a.redactor.Text(to)
		}
	}
	return out
}
