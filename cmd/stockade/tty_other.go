//go:build !linux

package main

import "os"

// flushInput has no counterpart here; lines that were read before a question
// are dropped all the same.
func flushInput(*os.File) {}

// noEcho is left to what reads: what is typed between the prompt and that shows.
func noEcho(*os.File) error { return nil }
