//go:build !linux

package terminal

import (
	"os"

	"golang.org/x/term"
)

// FlushInput does nothing on this platform. Lines read before a question are dropped even so.
func FlushInput(*os.File) {}

// NoEcho does nothing on this platform: [ReadHidden] turns the echo off, and text that is
// typed earlier is shown.
func NoEcho(*os.File) error { return nil }

// Cbreak does nothing on this platform: a terminal delivers whole lines.
func Cbreak(*os.File) (restore func()) { return func() {} }

// ReadHidden reads one line from a terminal with the echo turned off.
func ReadHidden(tty *os.File) (string, error) {
	text, err := term.ReadPassword(int(tty.Fd()))
	return string(text), err
}
