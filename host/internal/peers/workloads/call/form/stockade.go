//go:build wasip1 && !extism

package form

import (
	"context"

	"github.com/stockade-dev/stockade/sdk/go/tool"
)

// Offer makes a job a tool that may read files.
func Offer[In, Out any](name, description string, job func(In) (Out, error)) {
	tool.Module(name, "0.1.0")
	tool.Register(name, description, func(_ context.Context, in In) (Out, error) { return job(in) }, tool.ReadsFiles())
}

// Warm calls fn once before the snapshot of the memory is taken with which each call
// begins.
func Warm(fn func()) { tool.Warm(fn) }

// Main is never called: the module is a library.
func Main() {}
