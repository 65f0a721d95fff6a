package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/redact"
)

// stdio is what the program reads and writes, and all that it knows of the
// terminal: stdout is the result, stderr is everything else.
type stdio struct {
	in  *os.File
	out io.Writer
	err io.Writer
	// flush writes what out holds back; nil: it holds back nothing.
	flush func() error
	// known takes secrets out of messages before they are laid out, which would
	// hide one that holds a line end. Nil: none are known.
	known *redact.Redactor

	inTTY, outTTY, errTTY bool
	color                 bool // on stderr
	// columns is how wide the terminal of stderr is now; 0: it is none.
	columns func() int
	env     func(string) string
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
	s.columns = func() int {
		columns, _, err := term.GetSize(int(os.Stderr.Fd()))
		if s.errTTY && (err != nil || columns <= 0) {
			return 80
		}
		return columns
	}
	return s
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

// message is not broken into rows: it may hold a command to copy.
func (s *stdio) message(before, format string, args ...any) {
	fmt.Fprintln(s.err, strings.Join(terminal.Fold(s.known.Text(fmt.Sprintf(format, args...)), before, hanging, 0), "\n"))
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
	_, err := s.out.Write(terminal.JSON(out.Bytes()))
	return err
}
