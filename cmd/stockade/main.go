// Command stockade is an LLM agent and tool runtime whose tools are WebAssembly modules.
// `stockade help` describes its use; host/doc.go is the map of the code.
package main

import (
	"os"

	"github.com/stockade-dev/stockade/host/jail/probe"
	"github.com/stockade-dev/stockade/host/sandbox"
)

func main() { os.Exit(program(os.Args[1:])) }

// program runs the program for a person, or one of its child processes, which compiles a
// module or attacks the jail. A child has to start quickly, and must not read any settings.
func program(args []string) int {
	if len(args) > 0 && args[0] == sandbox.ChildCommand {
		return sandbox.CompileChild(args[1:])
	}
	if len(args) > 0 && args[0] == probe.Command {
		return probe.Main(args[1:])
	}
	return Main(args, osStdio())
}
