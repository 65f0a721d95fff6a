//go:build !linux

package terminal

import "os"

// FlushInput has no counterpart here; lines that were read before a question
// are dropped all the same.
func FlushInput(*os.File) {}

// NoEcho is left to what reads: what is typed between the prompt and that shows.
func NoEcho(*os.File) error { return nil }
