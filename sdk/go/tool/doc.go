// Package tool offers the tools of a WebAssembly module to Stockade.
//
// A module is a Go program with an empty main. It names itself and registers
// functions; the arguments' JSON Schema comes from the fields of a struct:
//
//	package main
//
//	import (
//		"context"
//		"strings"
//
//		"github.com/stockade-dev/stockade/sdk/go/tool"
//	)
//
//	func init() {
//		tool.Module("greeting", "0.1.0")
//		tool.Register("greet", "Greet somebody.", greet)
//	}
//
//	type Args struct {
//		Name  string `json:"name" desc:"Who is greeted."`
//		Times int    `json:"times,omitempty" desc:"How often." min:"1" max:"10" default:"1"`
//	}
//
//	func greet(ctx context.Context, in Args) (string, error) {
//		if in.Name == "" {
//			return "", tool.InvalidInput("name is empty")
//		}
//		return strings.Repeat("hello "+in.Name+"\n", in.Times), nil
//	}
//
//	func main() {}
//
// It is built as a reactor:
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -trimpath -ldflags="-s -w" -o greeting.wasm
//
// A tool is an ordinary function, so that it can be tested natively; this
// package and the wrappers of the host's functions beside it compile there
// too. [WithCall] gives a test the context of a call.
//
// # Files
//
// A tool that asked for files with [ReadsFiles] or [WritesFiles] uses package os. It
// sees only the directories that were granted, by their names on the host. Relative
// paths start at the caller's working directory.
//
// # Secrets
//
// A tool that asked for a secret with [UsesSecret] gets a placeholder from package secrets and
// puts the placeholder into a header, such as "Bearer "+placeholder. It never sees the value.
//
// # Stored data
//
// No memory stays from one call to the next. A tool that asked for a store with
// [KeepsData] stores data for later calls of the same session with package kv.
//
// # Results and errors
//
// A result that is a JSON object goes to the caller as it is; any other value v becomes
// {"output": v}. [AsError] gives errors their codes. The text of an error is for the model, so
// it should say what to do next. [Coded] gives an error a code of the tool's own, for models
// and scripts. A result that implements [Pictured] has images, which the model sees.
//
// A panic in a tool is an error of that call and the module stays usable. A
// panic in another goroutine ends the module, as it ends any Go program; so
// does running out of memory or stack.
//
// # Concurrency
//
// The host makes one call at a time. Goroutines work, but they run only while
// a call is in progress: wait for them before the tool returns.
package tool
