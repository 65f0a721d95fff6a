// Package dialect says what the sandbox has to know of a kind of module: which
// imports and exports it may have, how it is initialised, how it says what it is,
// and how it is called. Each kind is a package below this one.
//
// A dialect never decides what a module may do: its guest has what the sandbox has
// put into its worlds, and no more.
package dialect

import (
	"context"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/sandbox/meter"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
)

// Dialect is how modules of one kind are admitted, initialised, asked and called. Its
// methods are called from several goroutines.
type Dialect interface {
	// Check says what is wrong with the exports of a module, if something is.
	Check(m *wasm.Module) error
	// Import returns the type of a function that the host has for these modules,
	// beside those of WASI preview 1.
	Import(module, name string) (abi.Signature, bool)
	// Provide gives an engine those functions.
	Provide(ctx context.Context, rt wazero.Runtime) error
	// Starts are the exports that initialise an instance, as far as it has them.
	Starts() []string
	// Describe asks a guest, to which nothing was granted, what it is: the JSON of
	// a tool.Manifest that nobody has checked.
	Describe(ctx context.Context, g *Guest, mod *tool.Module) ([]byte, error)
	// Call calls a tool. Exactly one of its results is not nil.
	Call(ctx context.Context, g *Guest, call tool.Call) (*abi.Output, *abi.ToolError, error)
}

// Guest is an instance of a module, for one call or for one question. Contexts for
// calls into it carry its worlds already.
type Guest struct {
	api.Module
	Account *meter.Account
	Redact  *redact.Redactor // nil: there are no secrets
}

// Invoke calls an export. What the guest has used is settled with that.
func (g *Guest) Invoke(ctx context.Context, export string, params ...uint64) ([]uint64, error) {
	f := g.ExportedFunction(export)
	if f == nil {
		return nil, &abi.Fault{What: fmt.Sprintf("%s is not exported", export)}
	}
	defer g.Account.Rest() // what comes now is the host's
	out, err := f.Call(ctx, params...)
	if err == nil {
		err = g.Account.Settle()
	}
	return out, err
}
