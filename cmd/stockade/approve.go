package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/stockade-dev/stockade/host/dispatch"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/secret"
	"github.com/stockade-dev/stockade/host/tool"
)

// noTerminal answers no: nobody is there to be asked.
type noTerminal struct{}

// Approve implements dispatch.Approver.
func (noTerminal) Approve(context.Context, policy.Question) (policy.Answer, error) {
	return policy.Answer{By: "no terminal to ask on"}, nil
}

// terminal asks on the terminal, one question at a time.
type terminal struct {
	lines  *lineReader
	out    io.Writer
	color  bool
	width  int // columns
	screen *screen
	known  *secret.Redactor

	mu sync.Mutex // one prompt at a time
}

// screen keeps what is shown in order: while a question is open nothing else
// is printed, so that no output can push it away or look like part of it.
type screen struct {
	mu     sync.Mutex
	asking bool
	held   []func()
}

// show prints, now or when the question that is open has been answered.
func (s *screen) show(print func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asking {
		s.held = append(s.held, print)
		return
	}
	print()
}

// ask holds everything back until the returned function is called.
func (s *screen) ask() (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asking = false
		for _, print := range s.held {
			print()
		}
		s.held = nil
	}
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
		return &terminal{lines: lines, out: a.s.err, color: a.s.color, width: 80, screen: &a.screen, known: a.known} // a system without /dev/tty
	}
	a.onClose(tty.Close)
	if !a.s.inTTY {
		lines = newLineReader(tty)
	}
	width, _, err := term.GetSize(int(tty.Fd()))
	if err != nil || width < 40 {
		width = 80
	}
	return &terminal{lines: lines, out: messages{a.known.Writer(tty)}, color: a.s.colors(), width: width, screen: &a.screen, known: a.known}
}

// Approve implements dispatch.Approver.
func (t *terminal) Approve(ctx context.Context, q policy.Question) (policy.Answer, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if ctx.Err() != nil {
		return policy.Answer{}, context.Cause(ctx)
	}
	defer t.screen.ask()()
	q = redactQuestion(t.known, q)
	moment := t.lines.discard()
	folded := t.ask(q, false)
	for {
		// Once more what this is about: the lines above may have scrolled away.
		fmt.Fprint(t.out, style(t.color, styleBold, fmt.Sprintf("%s (risk %s): Allow? %s ", q.Tool, q.Risk, choices(q.Scopes, folded))))
		line, err := t.lines.after(ctx, moment)
		if err != nil {
			return policy.Answer{}, err
		}
		switch answer := strings.ToLower(strings.TrimSpace(line)); {
		case answer == "y" || answer == "yes" || answer == "1" || answer == "once":
			return policy.Answer{Question: q.ID, Allow: true, Scope: policy.ScopeOnce, By: "terminal"}, nil
		case scopeOf(answer) != "":
			if scope := scopeOf(answer); slices.Contains(q.Scopes, scope) {
				return policy.Answer{Question: q.ID, Allow: true, Scope: scope, By: "terminal"}, nil
			}
		case answer == "v" && folded:
			t.ask(q, true)
		case answer == "n" || answer == "no" || answer == "d" || answer == "deny":
			return policy.Answer{By: "terminal"}, nil
		}
		// Anything else, an empty line too, is asked again: no key pressed by
		// chance allows or denies.
	}
}

// ask shows the question, all of it or with long text folded, and reports
// whether something was folded.
func (t *terminal) ask(q policy.Question, all bool) (folded bool) {
	w := t.out
	show := func(title, text string) {
		rows, cut := gutter(text, t.width, all)
		fmt.Fprintf(w, "  %s\n%s", title, rows)
		folded = folded || cut
	}
	wants := "wants to run"
	if q.Changes != "" {
		wants = "wants to keep what it did"
	}
	fmt.Fprintf(w, "\n%s %s %s: %s\n", style(t.color, styleWarn, "[risk "+q.Risk.String()+"]"), q.Tool, wants, q.Reason)
	if q.Command != "" {
		show("command:", q.Command)
		if q.Says != "" {
			show("what it says that this does:", q.Says)
		}
		show("in the directory:", q.Dir)
	} else if q.Changes != "" {
		rows, cut := gutter(strings.TrimSuffix(q.Changes, "\n"), t.width, all)
		if t.color {
			rows = paint(rows)
		}
		fmt.Fprintf(w, "  changes:\n%s", rows)
		// What they have led to is above: of long arguments the beginning is enough.
		args := string(q.Call.Args)
		if len(args) > maxShownArgs && !all {
			args, cut = strings.ToValidUTF8(args[:maxShownArgs], "")+" ...", true
		}
		folded = cut
		show("arguments:", args)
	} else {
		show("arguments:", string(q.Call.Args))
	}
	for _, s := range q.Secrets {
		fmt.Fprintf(w, "  secret: %s\n", oneLine(secretWords(s)))
	}
	if q.Warning != "" {
		fmt.Fprintf(w, "  %s\n", style(t.color, styleRed, "warning: "+q.Warning))
	}
	for _, scope := range q.Scopes {
		if words := q.Rules[scope]; words != "" {
			kept := ""
			if scope == policy.ScopeAlways || scope == policy.ScopeProject {
				kept = "; kept, until `stockade policy revoke`"
			}
			fmt.Fprintf(w, "  %s: %s%s\n", scope, oneLine(words), kept)
		}
	}
	for _, change := range q.Changed {
		for _, line := range change.InWords() {
			show("changed:", line)
		}
	}
	return folded
}

// scopeOf is the scope that an answer of more than once names.
func scopeOf(answer string) policy.Scope {
	for _, scope := range []policy.Scope{policy.ScopeTurn, policy.ScopeSession, policy.ScopeProject, policy.ScopeAlways} {
		if answer == string(scope) || answer == string(scope[:1]) {
			return scope
		}
	}
	return ""
}

// secretWords says what a tool gets of a secret.
func secretWords(s tool.Secret) string {
	header, hosts := s.Header, strings.Join(s.Hosts, ", ")
	if header == "" {
		header = "the header that it is bound to, or " + secret.DefaultHeader
	}
	if hosts == "" {
		hosts = "the hosts that it is bound to"
	}
	return fmt.Sprintf("%s, as a placeholder; the value goes to %s, in %s", s.Name, hosts, header)
}

// paint gives the rows of a diff behind bars the colours of one. What they
// hold has been made visible before, so no row brings a colour of its own; one
// that goes on has the colour of the row that it belongs to.
func paint(rows string) string {
	styles := map[byte]string{'+': styleGreen, '-': styleRed, '@': styleDim}
	lines := strings.SplitAfter(rows, "\n")
	st := ""
	for i, line := range lines {
		before, row := bar, ""
		if rest, ok := strings.CutPrefix(line, bar); ok {
			row, st = rest, ""
			if row != "" {
				st = styles[row[0]]
			}
		} else if rest, ok := strings.CutPrefix(line, goesOn); ok {
			before, row = goesOn, rest
		}
		if st != "" && row != "" {
			lines[i] = before + style(true, st, strings.TrimSuffix(row, "\n")) + "\n"
		}
	}
	return strings.Join(lines, "")
}

// maxShownArgs is how many bytes of arguments are shown beside a diff.
const maxShownArgs = 200

// What stands before each row that is not ours: a bar, or dots where a line
// that is too long for a row goes on, which must not look like a line.
const (
	bar    = "    | "
	goesOn = "    : "
)

const (
	foldRows = 24 // of one text; more is folded
	keepRows = 9  // at each end of a folded text
)

var (
	blanks = regexp.MustCompile(` {9,}|\t{3,}`)
	ours   = regexp.MustCompile(`<(tab>|\d+ blanks>|U\+)`) // what we write for what does not show
)

// gutter shows exactly what would run, each row behind a bar, so that nothing
// in it can look like a line of the question. Long runs of blanks are counted
// instead of shown, and of many rows the middle is folded with its length and
// the digest of the whole.
func gutter(text string, width int, all bool) (shown string, folded bool) {
	var rows []string
	room := max(width-len(bar)-1, 20)
	for line := range strings.SplitSeq(text, "\n") {
		line = ours.ReplaceAllString(line, "<U+003C>$1")
		line = blanks.ReplaceAllStringFunc(line, func(run string) string { return fmt.Sprintf("<%d blanks>", len(run)) })
		row, used := bar, 0
		for _, r := range strings.ReplaceAll(visible(line), "\t", "<tab>") {
			columns := 1
			if r >= 0x1100 { // from here on there are characters two columns wide
				columns = 2
			}
			if used+columns > room {
				rows, row, used = append(rows, row), goesOn, 0
			}
			row += string(r)
			used += columns
		}
		rows = append(rows, row)
	}
	if len(rows) > foldRows && !all {
		note := fmt.Sprintf(bar+"<%d of %d rows folded; %d bytes in all, sha256 %.12x>", len(rows)-2*keepRows, len(rows), len(text), sha256.Sum256([]byte(text)))
		rows = slices.Concat(rows[:keepRows], []string{note}, rows[len(rows)-keepRows:])
		folded = true
	}
	return strings.Join(rows, "\n") + "\n", folded
}

func choices(scopes []policy.Scope, folded bool) string {
	out := "[y]es once"
	for _, scope := range scopes {
		if scope != policy.ScopeOnce {
			out += fmt.Sprintf(", [%s]%s", scope[:1], scope[1:])
		}
	}
	if folded {
		out += ", [v]iew all"
	}
	return out + ", [n]o:"
}

// lineReader reads lines from a terminal or a pipe for whoever asks next: the
// prompt of a chat, or a question in the middle of a turn. A read that nobody
// waits for any more is handed to the next one who asks.
type lineReader struct {
	in    *os.File
	lines chan readLine
	start sync.Once
}

type readLine struct {
	text string
	at   time.Time // when it was read
	err  error
}

func newLineReader(in *os.File) *lineReader {
	return &lineReader{in: in, lines: make(chan readLine)}
}

// next returns the next line.
func (l *lineReader) next(ctx context.Context) (string, error) {
	return l.after(ctx, time.Time{})
}

// discard drops what has been typed so far, and returns the moment from which
// lines count: an answer must not be given before its question is seen.
func (l *lineReader) discard() time.Time {
	flushInput(l.in)
	return time.Now()
}

// after returns the next line that was read at that moment or later.
func (l *lineReader) after(ctx context.Context, moment time.Time) (string, error) {
	l.start.Do(func() { go l.read() }) // ends with the program: a read from a terminal cannot be cancelled
	for {
		select {
		case line := <-l.lines:
			if line.err == nil && line.at.Before(moment) {
				continue
			}
			return line.text, line.err
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

func (l *lineReader) read() {
	r := bufio.NewReaderSize(l.in, 64<<10)
	for {
		// Lines that arrived together count as read when the first of them was.
		at := time.Now()
		if r.Buffered() == 0 {
			_, _ = r.Peek(1) // waits; an error comes back below
			at = time.Now()
		}
		for more := true; more; more = r.Buffered() > 0 {
			text, err := r.ReadString('\n')
			if text != "" {
				l.lines <- readLine{text: strings.TrimRight(text, "\r\n"), at: at}
			}
			for err != nil {
				l.lines <- readLine{err: err}
			}
		}
	}
}
