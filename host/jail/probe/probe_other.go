//go:build !linux

// Package probe attacks the jail from inside; this system has no jail.
package probe

import (
	"fmt"
	"os"
)

// Command is the first argument of a process that probes.
const Command = "jail-probe"

// Attacks returns the names of the probes that must not succeed: none.
func Attacks() []string { return nil }

// Main does nothing, and returns the exit code 1.
func Main([]string) int {
	fmt.Fprintln(os.Stderr, "there is no jail on this system")
	return 1
}
