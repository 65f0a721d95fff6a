package sandbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/stockade-dev/stockade/host/sandbox/admit"
	"github.com/stockade-dev/stockade/host/sandbox/codecache"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
)

// Inspection describes a file of WebAssembly, without running it.
type Inspection struct {
	Shape         wasm.Shape
	Module        *wasm.Module    // nil: the file is a component
	Component     *wasm.Component // nil: the file is a core module
	LargestModule *wasm.Module    // largest core module of a component; nil: there is none
	Missing       []string        // names of WASI imports of a core module that the host lacks, each once
	Manifest      *tool.Manifest  // manifest in a core module's custom section; nil: none, or it cannot be parsed
	// Refusal is the reason why the file does not run, an [admit.RefusedError]; nil: none.
	// Options.Permit is not asked.
	Refusal error
}

// Inspect describes a module without compiling or running any code. If the file is too large
// or not WebAssembly, the error is an [admit.RefusedError].
func (s *Sandbox) Inspect(ctx context.Context, mod *tool.Module) (Inspection, error) {
	i, err := identify(mod)
	if err != nil {
		return i, err
	}
	a, err := s.admit(ctx, mod)
	if i.Refusal = err; err == nil && !s.isCached(mod) {
		i.Refusal = s.mayCompile(mod)
	}
	if _, ok := errors.AsType[*admit.RefusedError](i.Refusal); i.Refusal != nil && !ok {
		return i, i.Refusal
	}
	if i.Module == nil {
		return i, nil
	}
	_, missing, _ := admit.WASIImports(i.Module) // admission has reported the error already
	i.Missing = names(missing)
	text, ok := wasm.CustomSection(i.Module, wasm.ManifestSection)
	if !ok {
		return i, nil
	}
	if m, err := tool.ParseManifest(text); err == nil {
		i.Manifest = &m
	}
	if i.Refusal == nil {
		_, i.Refusal = sectionManifest(mod, a, text)
	}
	return i, nil
}

func (s *Sandbox) isCached(mod *tool.Module) bool {
	place, err := codecache.Open(s.opts.CacheDir, cacheKey(mod.Digest, s.opts.Build))
	if err != nil || place == nil {
		return false
	}
	defer place.Close()
	return place.Exists()
}

// identify reads and decodes the file of mod. It returns the Shape, and the Module or the
// Component with its LargestModule; the other fields stay zero. The error is an
// [admit.RefusedError] if the file is too large or not WebAssembly.
func identify(mod *tool.Module) (i Inspection, _ error) {
	if mod.Bytes > admit.MaxBytes {
		return i, admit.Refuse(mod, "%d bytes, more than the limit of %d", mod.Bytes, admit.MaxBytes)
	}
	code, err := mod.Read()
	if err != nil {
		return i, fmt.Errorf("read module %s: %w", mod.Name, err)
	}
	i.Module, err = wasm.Decode(code)
	switch {
	case err == nil:
		i.Shape = wasm.Classify(i.Module)
	case errors.Is(err, wasm.ErrComponent):
		if i.Component, err = wasm.DecodeComponent(code); err == nil {
			i.Shape = wasm.ClassifyComponent(i.Component)
			i.LargestModule, _ = i.Component.LargestModule()
		}
	}
	if err != nil {
		return i, admit.Refuse(mod, "%v", err)
	}
	return i, nil
}
