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

// stdio is what the program reads and writes, and all that it knows of the
// terminal: stdout is the result, stderr is everything else.
type stdio struct {
	in  *os.File
	out io.Writer
	err io.Writer
	// flush writes what out holds back; nil: it holds back nothing.
	flush func() error
	// redactor takes secrets out of messages before they are laid out, which would
	// hide one that holds a line end. Nil: none are known.
	redactor *redact.Redactor

	inTTY, outTTY, errTTY bool
	color                 bool // on stderr
	// columns is how wide the terminal of stderr is now; 0: it is none.
	columns func() int
	// outColumns is how wide the terminal of stdout is now; nil or 0: it is none.
	outColumns func() int
	env        func(string) string
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

// columnsNow is how wide a file is at a time: 0 if it is no terminal, and 80 if it is one
// that does not say.
func columnsNow(f *os.File, tty bool) func() int {
	return func() int {
		columns, _, err := term.GetSize(int(f.Fd()))
		if tty && (err != nil || columns <= 0) {
			return 80
		}
		return columns
	}
}

// width is how many columns a list on stdout may take. What is no terminal, or a tiny
// one, gets as many as a small one.
func (s *stdio) width() int {
	const least, small = 60, 80
	if s.outColumns == nil || s.outColumns() < least {
		return small
	}
	return s.outColumns()
}

// outColor reports whether standard output is to be coloured.
func (s *stdio) outColor() bool { return s.outTTY && s.colors() }

// table prints a table that fits the terminal. What is no terminal gets all of it.
func (s *stdio) table(t *table.Table) error {
	columns := 0
	if s.outTTY && s.outColumns != nil {
		columns = s.outColumns()
	}
	return t.Write(s.out, columns)
}

// colors reports whether a terminal is to be coloured.
func (s *stdio) colors() bool { return s.env("NO_COLOR") == "" && s.env("TERM") != "dumb" }

// flushOut writes what out holds back because it may be the beginning of a
// secret.
func (s *stdio) flushOut() error {
	if s.flush == nil {
		return nil
	}
	return s.flush()
}

// interactive reports whether a person can be asked.
func (s *stdio) interactive() bool { return s.inTTY && s.errTTY }

// piped reports whether standard input holds something to read.
func (s *stdio) piped() bool {
	st, err := s.in.Stat()
	return err == nil && (st.Mode().IsRegular() && st.Size() > 0 || st.Mode()&fs.ModeNamedPipe != 0)
}

// note tells the person something that is not the result.
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

// marked is a command in a message, clauses end with a semicolon, and messageWords are
// its words with the blanks before them.
var (
	quotedCommand = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("`[^`]*`") })
	clauses       = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("(?:`[^`]*`|[^;`]|`)+;?|;") })
	messageWords  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(" *(?:`[^`]*`|[^ `]|`)+| +$") })
)

// wrapMessage breaks a line of a message between its words. A command in it, which
// may be copied, stays whole, even where it is longer than a row: a terminal joins
// what it has broken itself. So does a clause with a command that has no marks.
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
		if i > 1 && terminal.Width(row)+terminal.Width(part) > columns { // not behind the word before the message
			rows, row = append(rows, row), hanging+strings.TrimLeft(part, " ")
		} else {
			row += part
		}
	}
	return append(rows, row)
}

// hanging stands before each line of a message but the first, which so cannot
// look like a message of its own.
const hanging = "     "

// printJSON prints a value for programs and for people.
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
