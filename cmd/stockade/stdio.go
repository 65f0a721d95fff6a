package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/table"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/visible"
)

// stdio holds the streams of the program, and facts about the terminal. Results go to out,
// everything else goes to err.
type stdio struct {
	in    *os.File
	out   io.Writer
	err   io.Writer
	flush func() error // writes text that out holds back; nil: out holds nothing back
	// redactor removes secrets from messages before they are laid out, because a line break
	// could hide a secret. Nil: no secrets are known.
	redactor *redact.Redactor

	inTTY, outTTY, errTTY bool
	color                 bool // colours on stderr
	// columns and outColumns return the present width of the terminal of stderr, and of stdout;
	// 0, or a nil function: it is no terminal.
	columns, outColumns func() int
	env                 func(string) string
}

func osStdio() *stdio {
	s := &stdio{
		in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.Getenv,
		inTTY: term.IsTerminal(int(os.Stdin.Fd())), outTTY: term.IsTerminal(int(os.Stdout.Fd())),
		errTTY: term.IsTerminal(int(os.Stderr.Fd())),
	}
	if stdoutClosed() {
		s.out = closedOutput{}
	}
	s.color = s.errTTY && s.colors()
	s.columns, s.outColumns = columnsNow(os.Stderr, s.errTTY), columnsNow(os.Stdout, s.outTTY)
	return s
}

// columnsNow returns a function that returns the present width of a file: 0 if the file is no
// terminal, and 80 for a terminal that does not report its width.
func columnsNow(f *os.File, tty bool) func() int {
	return func() int {
		columns, _, err := term.GetSize(int(f.Fd()))
		if tty && (err != nil || columns <= 0) {
			return 80
		}
		return columns
	}
}

// width returns the width for a list on stdout. It is 80 if stdout is no terminal, or one of
// less than 60 columns.
func (s *stdio) width() int {
	const least, small = 60, 80
	if s.outColumns == nil || s.outColumns() < least {
		return small
	}
	return s.outColumns()
}

// outColor reports whether output on stdout has colours.
func (s *stdio) outColor() bool { return s.outTTY && s.colors() }

// table prints a table in the width of the terminal; without one, no cell is shortened.
func (s *stdio) table(t *table.Table) error {
	columns := 0
	if s.outTTY && s.outColumns != nil {
		columns = s.outColumns()
	}
	return t.Write(s.out, columns)
}

// colors reports whether output to a terminal has colours.
func (s *stdio) colors() bool { return s.env("NO_COLOR") == "" && s.env("TERM") != "dumb" }

// flushOut writes text that out holds back because it may be the beginning of a secret.
func (s *stdio) flushOut() error {
	if s.flush == nil {
		return nil
	}
	return s.flush()
}

func (s *stdio) interactive() bool { return s.inTTY && s.errTTY }

// piped reports whether standard input is a pipe or a file that is not empty.
func (s *stdio) piped() bool {
	st, err := s.in.Stat()
	return err == nil && (st.Mode().IsRegular() && st.Size() > 0 || st.Mode()&fs.ModeNamedPipe != 0)
}

// note prints a message to the person that is not part of the result.
func (s *stdio) note(format string, args ...any) {
	s.message("stockade: ", format, args...)
}

func (s *stdio) hint(format string, args ...any) {
	s.message("hint: ", format, args...)
}

func (s *stdio) message(before, format string, args ...any) {
	columns := 0
	if s.columns != nil {
		columns = s.columns()
	}
	for _, line := range terminal.Fold(s.redactor.Text(fmt.Sprintf(format, args...)), before, hanging, 0) {
		fmt.Fprintln(s.err, strings.Join(wrapMessage(line, columns-1), "\n"))
	}
}

// quotedCommand matches a command in a message. clauses matches clauses, which end with a
// semicolon. messageWords matches words, each with the blanks before it.
var (
	quotedCommand = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("`[^`]*`") })
	clauses       = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("(?:`[^`]*`|[^;`]|`)+;?|;") })
	messageWords  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(" *(?:`[^`]*`|[^ `]|`)+| +$") })
)

// wrapMessage breaks a line of a message between words. A quoted command stays whole, because
// a person may copy it, even if it is longer than a row: a terminal joins the rows that it has
// broken itself. A clause that has a command without quotation marks stays whole, too.
func wrapMessage(line string, columns int) (rows []string) {
	if columns < 20 || terminal.Width(line) <= columns {
		return []string{line}
	}
	var parts []string
	for _, clause := range clauses().FindAllString(line, -1) {
		prose := quotedCommand().ReplaceAllString(clause, "")
		if strings.Contains(prose, " --") || strings.Contains(prose, ": stockade ") || strings.Contains(prose, ": export ") {
			parts = append(parts, clause)
		} else {
			parts = append(parts, messageWords().FindAllString(clause, -1)...)
		}
	}
	row := ""
	for i, part := range parts {
		if i > 1 && terminal.Width(row)+terminal.Width(part) > columns { // not right behind the first word
			rows, row = append(rows, row), hanging+strings.TrimLeft(part, " ")
		} else {
			row += part
		}
	}
	return append(rows, row)
}

// hanging stands before each line of a message after the first. Without it, the line could
// look like another message.
const hanging = "     "

// printedList prints a list for --json, or the note none for an empty one. done is false if it has
// printed nothing.
func printedList[T any](a *app, list []T, none string) (done bool, err error) {
	if a.flags.json {
		return true, printJSON(a.s, append([]T{}, list...)) // never null
	}
	if len(list) == 0 {
		a.s.note("%s", none)
	}
	return len(list) == 0, nil
}

func printJSON(s *stdio, v any) error {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := s.out.Write(visible.EscapeJSON(out.Bytes()))
	return err
}
