// Command stockade is an LLM agent and tool runtime whose tools are
// WebAssembly modules. `stockade help` says what it does; the map of the code
// is in host/doc.go.
package main

import "os"

func main() { os.Exit(Main(os.Args[1:], osStdio())) }
