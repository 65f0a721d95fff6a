// Command stockade is an LLM agent and tool runtime whose tools are
// WebAssembly modules. `stockade help` says what it does; the map of the code
// is in host/doc.go.
package main

import (
	"os"

	"github.com/stockade-dev/stockade/host/jail/probe"
	"github.com/stockade-dev/stockade/host/sandbox"
)

func main() { os.Exit(program(os.Args[1:])) }

// program is the program that a person starts, or a child of it that compiles a
// module or attacks the jail: those have to start quickly, and to look at nothing.
func program(args []string) int {
	if len(args) > 0 && args[0] == sandbox.ChildCommand {
		return sandbox.CompileChild(args[1:])
	}
	if len(args) > 0 && args[0] == probe.Command {
		return probe.Main(args[1:])
	}
	return Main(args, osStdio())
}
