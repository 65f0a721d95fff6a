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
	"io"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/sandbox/hostmod"
	"github.com/stockade-dev/stockade/host/sandbox/meter"
	"github.com/stockade-dev/stockade/host/sandbox/wasi/preview1"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
)

// Dialect is how modules of one kind are admitted, initialised, asked and called. Its
// methods are called from several goroutines.
type Dialect interface {
	// ABI is what the manifest of such a module calls it.
	ABI() string
	// CheckExports says what is wrong with the exports of a module, if something is.
	CheckExports(m *wasm.Module) error
	// ImportSignature returns the type of a function that the host has for these modules,
	// beside those of WASI preview 1.
	ImportSignature(module, name string) (abi.Signature, bool)
	// AllowsMissingWASI reports whether more of WASI may be imported than preview 1 has:
	// functions that there are not, which answer that they are not supported, and what
	// came before it, wasi_unstable.
	AllowsMissingWASI() bool
	// Provide gives an engine those functions that Import knows.
	Provide(ctx context.Context, rt wazero.Runtime) error
	// Starts are the exports that initialise an instance, in their order. One that it
	// does not have is passed over.
	Starts(mod api.Module) []Start
	// Describe asks a guest, to which nothing was granted, what it is: the JSON of
	// a tool.Manifest that nobody has checked, and what else a person should know, such
	// as a tool that is left out. Name is what the module is called where it does not
	// say so itself.
	Describe(ctx context.Context, g *Guest, name string, m *wasm.Module) (manifest []byte, notes []string, err error)
	// CheckManifest holds a manifest against the code: what is wrong is an error.
	CheckManifest(manifest tool.Manifest, m *wasm.Module) error
	// Call calls a tool, by the module's own name of it. Exactly one of its results is
	// not nil.
	Call(ctx context.Context, g *Guest, call tool.Call) (*abi.Output, *abi.ToolError, error)
}

// Start is an export that is called to initialise an instance, for no call. What it
// returns nobody looks at.
type Start struct {
	Export string
	Params []uint64
}

// Guest is an instance of a module, for one call or for one question. Contexts for
// calls into it carry its worlds already.
type Guest struct {
	api.Module
	// Manifest is the manifest in the module's custom section; nil for a native one, and
	// where there is none.
	Manifest *tool.Manifest
	WASI     *preview1.World // what it reaches through WASI; it has not run yet
	Host     *hostmod.World  // what it reaches otherwise; nil while it is asked
	Account  *meter.Account
	Limits   policy.Limits
	// ReserveHostBytes asks for so many bytes more that the host keeps for it until it ends, beside
	// its own memory and under the same limits. Its error is a *MemoryError.
	ReserveHostBytes func(more uint64) error
	Redact           *redact.Redactor // nil: there are no secrets
	Log              io.Writer        // what it writes to stdout and stderr, for people
	Printed          string           // by a command whose result cannot be used, or which was ended before its end; set by the dialect, without secrets
}

// UndescribedError says why a module is not known well enough to be called, and what a
// person can do about it.
type UndescribedError struct {
	Why string
	Err error // what came between, if something did
}

func (e *UndescribedError) Error() string { return e.Why }
func (e *UndescribedError) Unwrap() error { return e.Err }

// Invoke calls an export. What the guest has used is settled with that.
func (g *Guest) Invoke(ctx context.Context, export string, params ...uint64) ([]uint64, error) {
	f := g.ExportedFunction(export)
	if f == nil {
		return nil, &abi.Fault{What: fmt.Sprintf("%s is not exported", export)}
	}
	defer g.Account.ReleaseTurn() // what comes now is the host's
	out, err := f.Call(ctx, params...)
	if err == nil {
		err = g.Account.Settle()
	}
	return out, err
}
