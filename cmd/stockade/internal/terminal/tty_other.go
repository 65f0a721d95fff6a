//go:build !linux

package terminal

import (
	"os"

	"golang.org/x/term"
)

// FlushInput has no counterpart here; lines that were read before a question
// are dropped all the same.
func FlushInput(*os.File) {}

// NoEcho is left to [ReadHidden]: what is typed between the prompt and that shows.
func NoEcho(*os.File) error { return nil }

// Cbreak has no counterpart here: a terminal gives whole lines.
func Cbreak(*os.File) (restore func()) { return func() {} }

// ReadHidden reads one line from a terminal, which does not show it.
func ReadHidden(tty *os.File) (string, error) {
	text, err := term.ReadPassword(int(tty.Fd()))
	return string(text), err
}
