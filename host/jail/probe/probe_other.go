//go:build !linux

// Package probe attacks the jail from inside, where there is one.
package probe

import (
	"fmt"
	"os"
)

// Command is the first argument of a process that probes.
const Command = "jail-probe"

// Attacks are the names of what must not succeed: none.
func Attacks() []string { return nil }

// Main does nothing, and returns the code with which the process ends.
func Main([]string) int {
	fmt.Fprintln(os.Stderr, "there is no jail on this system")
	return 1
}
