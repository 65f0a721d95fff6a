package main

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"

	"github.com/stockade-dev/stockade/host/secret"
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
	known *secret.Redactor

	inTTY, outTTY, errTTY bool
	color                 bool // on stderr
	env                   func(string) string
}

func osStdio() *stdio {
	s := &stdio{
		in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.Getenv,
		inTTY: term.IsTerminal(int(os.Stdin.Fd())), outTTY: term.IsTerminal(int(os.Stdout.Fd())),
		errTTY: term.IsTerminal(int(os.Stderr.Fd())),
	}
	s.color = s.errTTY && s.colors()
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
	fmt.Fprintf(s.err, "stockade: %s\n", s.message(format, args))
}

func (s *stdio) hint(format string, args ...any) {
	fmt.Fprintf(s.err, "hint: %s\n", s.message(format, args))
}

func (s *stdio) message(format string, args []any) string {
	return indent(visible(s.known.Text(fmt.Sprintf(format, args...))))
}

// The styles.
const (
	styleBold  = "1"
	styleDim   = "2"
	styleRed   = "31"
	styleGreen = "32"
	styleWarn  = "33"
)

func style(color bool, style, text string) string {
	if !color {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// visible makes text harmless on a terminal: characters that move the cursor,
// change colours, reorder text or do not show at all are replaced by their
// code. Line ends and tabs stay.
func visible(text string) string {
	if strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if hidden(r) {
			fmt.Fprintf(&b, "<U+%04X>", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// hidden reports whether a character does not show as what it is.
func hidden(r rune) bool {
	switch r {
	case '\n', '\t':
		return false
	case 0x2800, 0x3164, 0xFFA0, 0x115F, 0x1160, unicode.ReplacementChar: // blank, though called printable
		return true
	}
	return !unicode.IsPrint(r)
}

// indent keeps the lines of a text behind its first one from looking like
// lines of ours.
func indent(text string) string { return strings.ReplaceAll(text, "\n", "\n     ") }

// oneLine is visible text without line ends.
func oneLine(text string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(visible(text))
}

// printJSON prints a value for programs and for people.
func printJSON(s *stdio, v any) error {
	enc := json.NewEncoder(s.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
