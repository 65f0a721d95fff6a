package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/sandbox/admit"
	"github.com/stockade-dev/stockade/host/sandbox/hostmod"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
)

// describeTimeout is what an unknown module gets to say what it is.
const describeTimeout = time.Second

// interpretedTimeout is the same for the interpreter, which is twenty times
// slower, and runs only what its author builds on a machine that may be busy.
const interpretedTimeout = 20 * time.Second

// Describe returns a module's manifest: from its custom section without
// running anything or, where there is none, from its describe function, run
// with nothing mounted, no host function and one second. It needs no grant
// because it gives the module nothing.
func (s *Sandbox) Describe(ctx context.Context, mod *tool.Module) (tool.Manifest, error) {
	a, err := s.admit(ctx, mod)
	if err != nil {
		return tool.Manifest{}, err
	}
	if section, ok := wasm.CustomSection(a.Facts, wasm.ManifestSection); ok {
		return checkManifest(mod, a, section)
	}
	text, err := s.AskManifest(ctx, mod)
	if err != nil {
		return tool.Manifest{}, err
	}
	return checkManifest(mod, a, text)
}

// AskManifest runs a module's describe function and returns its answer as it
// is. It is what the packer puts into the custom section.
func (s *Sandbox) AskManifest(ctx context.Context, mod *tool.Module) ([]byte, error) {
	c, err := s.load(ctx, mod)
	if err != nil {
		return nil, err
	}
	outer := ctx
	timeout := describeTimeout
	if s.opts.Interpreter {
		timeout = interpretedTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	inst, err := s.open(ctx, c, policy.Grant{}, policy.DefaultLimits(), nil)
	defer inst.close()
	var text []byte
	if err == nil {
		text, err = c.dialect.Describe(inst.context(ctx), inst.guest(nil), mod)
	}
	var hostErr *hostError
	fault, broken := errors.AsType[*abi.Fault](err)
	switch {
	case err == nil:
	case outer.Err() != nil:
		return nil, context.Cause(outer)
	case errors.As(err, &hostErr), errors.Is(err, hostmod.ErrPanic):
		return nil, fmt.Errorf("ask %s for its manifest: %w", mod.Name, err)
	case ctx.Err() != nil, late(err):
		return nil, admit.Refuse(mod, "its describe function did not end within %s", timeout)
	case broken:
		return nil, admit.Refuse(mod, "%v", fault)
	default:
		return nil, admit.Refuse(mod, "its describe function failed: %s", firstLine(err.Error()))
	}
	return text, nil
}

// means are the host modules that give a module more than computing, and who asks
// for what they give. The others give nothing: log, progress, and kv, which has no
// store.
//
// Files are not among them. A module opens them with functions of WASI, such as
// path_open, which the standard library of Go imports into every module: imports
// cannot tell who uses files. A call that was granted none finds none there.
var means = []struct {
	host string
	asks func(tool.Capabilities) bool
}{
	{"exec", func(c tool.Capabilities) bool { return c.Exec != "" }},
	{"http", func(c tool.Capabilities) bool { return c.Network != tool.NetworkNone }},
	{"search", func(c tool.Capabilities) bool { return c.Files != tool.FilesNone }},
	{"secrets", func(c tool.Capabilities) bool { return len(c.Secrets) > 0 }},
}

// checkManifest parses a manifest and holds it against the code: a module may
// import the means to do something only if one of its tools asks for it, so that
// what a person is shown is all that the module can do. Packing, adding
// and the calls of a module by its path all ask [Sandbox.Describe].
func checkManifest(mod *tool.Module, a *admit.Module, text []byte) (tool.Manifest, error) {
	m, err := tool.ParseManifest(text)
	if err != nil {
		return m, admit.Refuse(mod, "%v", err)
	}
	if m.ABI != abi.ManifestABI {
		return m, admit.Refuse(mod, "its manifest is for the ABI %.80q; this host speaks %q", m.ABI, abi.ManifestABI)
	}
	for _, means := range means {
		imports := slices.ContainsFunc(a.Facts.Imports, func(i wasm.Import) bool { return i.Module == abi.ImportModule(means.host) })
		if imports && !slices.ContainsFunc(m.Tools, func(s tool.Spec) bool { return means.asks(s.Capabilities) }) {
			return m, admit.Refuse(mod, "it imports %s, which none of its tools asks for in the manifest", means.host)
		}
	}
	return m, nil
}
