// Package dialect describes the kinds of modules to the sandbox. A dialect knows the imports
// and exports of one kind, and how to initialise, describe and call its modules. Each kind is
// a package below this one.
//
// A dialect never decides what a module may do: a guest reaches only the worlds that the
// sandbox has given to it.
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

// Dialect admits, initialises, describes and calls modules of one kind. Several goroutines
// call its methods.
type Dialect interface {
	// ABI returns the name that manifests of such modules have in their field abi.
	ABI() string
	// CheckExports returns an error if the exports of a module are wrong.
	CheckExports(m *wasm.Module) error
	// ImportSignature returns the type of a host function for these modules; false: there is
	// no such function. Functions of WASI preview 1 do not count.
	ImportSignature(module, name string) (abi.Signature, bool)
	// AllowsMissingWASI reports whether modules may also import wasi_unstable, the predecessor
	// of preview 1, and functions of WASI that the host does not have. These return ENOTSUP.
	AllowsMissingWASI() bool
	// Provide registers the functions of ImportSignature in an engine.
	Provide(ctx context.Context, rt wazero.Runtime) error
	// Starts returns the exports that initialise an instance, in their order. Exports that
	// the instance does not have are skipped.
	Starts(mod api.Module) []Start
	// Describe asks a guest, to which nothing was granted, for its manifest: JSON of a
	// tool.Manifest, unchecked. The notes are for the person, for example about an omitted
	// tool. name is for a module that has no name of its own.
	Describe(ctx context.Context, g *Guest, name string, m *wasm.Module) (manifest []byte, notes []string, err error)
	// CheckManifest returns an error if the manifest does not fit the code.
	CheckManifest(manifest tool.Manifest, m *wasm.Module) error
	// Call calls a tool by its name in the module. Exactly one result is not nil.
	Call(ctx context.Context, g *Guest, call tool.Call) (*abi.Output, *abi.ToolError, error)
}

// Start is a call of an export that initialises an instance, before any call of a tool.
// Results are ignored.
type Start struct {
	Export string
	Params []uint64
}

// Guest is an instance of a module, for one call or for one Describe. Contexts for calls into
// the guest must carry its worlds already.
type Guest struct {
	api.Module
	// Manifest is that of the module's custom section; nil: none, or the module is native.
	Manifest *tool.Manifest
	WASI     *preview1.World // access through WASI; it has not run yet
	Host     *hostmod.World  // access through host functions; nil during Describe
	Account  *meter.Account  // fuel account of the guest
	Limits   policy.Limits
	// ReserveHostBytes counts bytes that the host stores for the guest until it ends. They
	// have the same limits as the guest's memory. The error is a *MemoryError.
	ReserveHostBytes func(more uint64) error
	Redact           *redact.Redactor // removes secrets; nil: there are none
	Log              io.Writer        // stdout and stderr, for people
	// Printed is set by the dialect to the output, without secrets, of a command that was ended
	// or whose result is unusable.
	Printed string
}

// UndescribedError means that a module does not describe its tools. Why is the reason, with
// advice for a person.
type UndescribedError struct {
	Why string
	Err error // error of Describe; nil: there was none
}

func (e *UndescribedError) Error() string { return e.Why }
func (e *UndescribedError) Unwrap() error { return e.Err }

// Invoke calls an export, charges the guest for the call, and ends its turn.
func (g *Guest) Invoke(ctx context.Context, export string, params ...uint64) ([]uint64, error) {
	f := g.ExportedFunction(export)
	if f == nil {
		return nil, &abi.Fault{What: fmt.Sprintf("%s is not exported", export)}
	}
	defer g.Account.ReleaseTurn() // the host continues
	out, err := f.Call(ctx, params...)
	if err == nil {
		err = g.Account.Settle()
	}
	return out, err
}
