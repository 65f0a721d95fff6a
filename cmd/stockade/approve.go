package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/host/dispatch"
	"github.com/stockade-dev/stockade/host/policy"
)

// noTerminal answers no: nobody is there to be asked.
type noTerminal struct{}

// Approve implements dispatch.Approver.
func (noTerminal) Approve(context.Context, policy.Question) (policy.Answer, error) {
	return policy.Answer{By: "no terminal to ask on"}, nil
}

// terminal asks on the terminal, one question at a time.
type terminal struct {
	lines *lineReader
	out   io.Writer
	color bool

	mu sync.Mutex // one prompt at a time
}

// approver asks on the controlling terminal, also while standard input is a
// pipe or stderr a file; where there is none, the answer is no. lines reads
// standard input, which two readers must not share.
func (a *app) approver(lines *lineReader) dispatch.Approver {
	if a.flags.json {
		return noTerminal{}
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		if !a.s.interactive() {
			return noTerminal{}
		}
		return &terminal{lines: lines, out: a.s.err, color: a.s.color} // a system without /dev/tty
	}
	a.onClose(tty.Close)
	if !a.s.inTTY {
		lines = newLineReader(tty)
	}
	return &terminal{lines: lines, out: tty, color: a.s.colors()}
}

// Approve implements dispatch.Approver.
func (t *terminal) Approve(ctx context.Context, q policy.Question) (policy.Answer, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if ctx.Err() != nil {
		return policy.Answer{}, context.Cause(ctx)
	}
	t.ask(q)
	for {
		fmt.Fprint(t.out, style(t.color, styleBold, "Allow? "+choices(q.Scopes)+" "))
		line, err := t.lines.next(ctx)
		if err != nil {
			return policy.Answer{}, err
		}
		switch answer := strings.ToLower(strings.TrimSpace(line)); {
		case answer == "y" || answer == "yes" || answer == "1" || answer == "once":
			return policy.Answer{Allow: true, Scope: policy.ScopeOnce, By: "terminal"}, nil
		case answer == "s" || answer == "session":
			if slices.Contains(q.Scopes, policy.ScopeSession) {
				return policy.Answer{Allow: true, Scope: policy.ScopeSession, By: "terminal"}, nil
			}
		case answer == "a" || answer == "always":
			if slices.Contains(q.Scopes, policy.ScopeAlways) {
				return policy.Answer{Allow: true, Scope: policy.ScopeAlways, By: "terminal"}, nil
			}
		case answer == "n" || answer == "no" || answer == "d" || answer == "deny":
			return policy.Answer{By: "terminal"}, nil
		}
		// Anything else, an empty line too, is asked again: no key pressed by
		// chance allows or denies.
	}
}

func (t *terminal) ask(q policy.Question) {
	w := t.out
	fmt.Fprintf(w, "\n%s %s wants to run: %s\n", style(t.color, styleWarn, "[risk "+q.Risk.String()+"]"), q.Tool, q.Reason)
	if q.Command != "" {
		fmt.Fprintf(w, "  command:   %s\n", literal(q.Command))
		fmt.Fprintf(w, "  directory: %s\n", oneLine(q.Dir))
	} else {
		fmt.Fprintf(w, "  arguments: %s\n", literal(string(q.Call.Args)))
	}
	if q.Warning != "" {
		fmt.Fprintf(w, "  %s\n", style(t.color, styleRed, "warning: "+q.Warning))
	}
	if q.Rule != "" && len(q.Scopes) > 1 {
		fmt.Fprintf(w, "  session and always allow: %s\n", oneLine(q.Rule))
	}
}

// maxLiteral is how much of an argument a prompt shows before it is folded.
const maxLiteral = 2000

// literal shows exactly what would run. What is too long is folded with its
// length said and its end visible: a command must not hide what it does behind
// a screen of blanks.
func literal(s string) string {
	shown := oneLine(s)
	if len(shown) <= maxLiteral {
		return shown
	}
	half := maxLiteral / 2
	return fmt.Sprintf("%s\n    ... %d of %d characters folded; the end is: ...\n    %s",
		strings.ToValidUTF8(shown[:half], ""), len(shown)-2*half, len(shown), strings.ToValidUTF8(shown[len(shown)-half:], ""))
}

func choices(scopes []policy.Scope) string {
	out := "[y]es once"
	if slices.Contains(scopes, policy.ScopeSession) {
		out += ", [s]ession"
	}
	if slices.Contains(scopes, policy.ScopeAlways) {
		out += ", [a]lways"
	}
	return out + ", [n]o:"
}

// lineReader reads lines from the terminal for whoever asks next: the prompt
// of a chat, or a question in the middle of a turn. A read that nobody waits
// for any more is handed to the next one who asks.
type lineReader struct {
	lines chan readLine
	start sync.Once
	in    io.Reader
}

type readLine struct {
	text string
	err  error
}

func newLineReader(in io.Reader) *lineReader {
	return &lineReader{in: in, lines: make(chan readLine)}
}

func (l *lineReader) next(ctx context.Context) (string, error) {
	l.start.Do(func() {
		go func() { // ends with the program: a read from a terminal cannot be cancelled
			r := bufio.NewReaderSize(l.in, 64<<10)
			for {
				text, err := r.ReadString('\n')
				if text != "" {
					l.lines <- readLine{text: strings.TrimRight(text, "\r\n")}
				}
				if err != nil {
					for {
						l.lines <- readLine{err: err}
					}
				}
			}
		}()
	})
	select {
	case line := <-l.lines:
		return line.text, line.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
