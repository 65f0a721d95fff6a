package author

import (
	"context"
	"errors"
	"fmt"

	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
)

// Sandbox reads manifests of modules; a sandbox.Sandbox is one.
type Sandbox interface {
	// AskManifest runs the module's describe function with nothing granted, and returns
	// the manifest as JSON.
	AskManifest(ctx context.Context, mod *tool.Module) ([]byte, error)
	// Describe reads the manifest, and refuses a module that imports more than its
	// tools ask for.
	Describe(ctx context.Context, mod *tool.Module) (tool.Manifest, error)
}

// PackedModule is a module with its manifest in a custom section.
type PackedModule struct {
	Module   *tool.Module
	Code     []byte // bytes of Module
	Section  []byte // the manifest as it is in Code
	Manifest tool.Manifest
}

// ErrForeign is returned for a module that was made for another host: a person has to
// describe the needs of its tools.
var ErrForeign = errors.New("it was not made for this host")

// Pack puts a module's manifest into a custom section, unless the module has one, and
// checks it against the code. The same module always gives the same bytes, and a packed
// module stays as it is. The error of a refused module is an *admit.RefusedError.
func Pack(ctx context.Context, box Sandbox, mod *tool.Module) (PackedModule, error) {
	code, err := mod.Read()
	if err != nil {
		return PackedModule{}, err
	}
	facts, err := wasm.Decode(code)
	if err != nil {
		return PackedModule{}, fmt.Errorf("pack %s: %w", mod.Name, err)
	}
	section, ok := wasm.CustomSection(facts, wasm.ManifestSection)
	if !ok {
		if wasm.Classify(facts).Kind != wasm.Native {
			return PackedModule{}, ErrForeign
		}
		if section, err = box.AskManifest(ctx, mod); err != nil {
			return PackedModule{}, err
		}
		if code, err = wasm.AppendCustom(code, wasm.ManifestSection, section); err != nil {
			return PackedModule{}, err
		}
		mod = tool.NewModule(mod.Name, mod.Origin, mod.Path, code)
	}
	manifest, err := box.Describe(ctx, mod)
	return PackedModule{mod, code, section, manifest}, err
}
