package description

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
)

// Describer reads the manifest of a module. The sandbox is a Describer.
type Describer interface {
	Describe(ctx context.Context, mod *tool.Module) (tool.Manifest, error)
}

// abis maps each kind of module that a person can describe to the ABI in its manifest.
var abis = map[wasm.ShapeKind]string{
	wasm.Command: tool.ABICommand, wasm.Extism: tool.ABIExtism, wasm.HyperMCPv1: tool.ABIServlet, wasm.HyperMCPv2: tool.ABIHyperMCP,
}

// decodeDescribable decodes a module. It is an error if the module cannot be described.
func decodeDescribable(mod *tool.Module) (code []byte, m *wasm.Module, abi string, err error) {
	if code, err = mod.Read(); err != nil {
		return nil, nil, "", err
	}
	if m, err = wasm.Decode(code); err != nil {
		return nil, nil, "", fmt.Errorf("describe %s: %w", mod.Name, err)
	}
	shape := wasm.Classify(m)
	switch abi = abis[shape.Kind]; {
	case shape.Kind == wasm.Native:
		return nil, nil, "", fmt.Errorf("%s is %s: it describes itself, and nothing else is said of it", mod.Name, shape)
	case abi == "":
		return nil, nil, "", fmt.Errorf("%s is %s, which no description makes run", mod.Name, shape)
	}
	return code, m, abi, nil
}

// Add puts a description into a module, in the place of an earlier one. If the description
// names no tools, box asks the module for them. Add does not check the module against its
// description; the sandbox does.
func (d *Description) Add(ctx context.Context, box Describer, mod *tool.Module) (*tool.Module, error) {
	code, facts, abi, err := decodeDescribable(mod)
	if err != nil {
		return nil, err
	}
	if len(d.config) > 0 && abi == tool.ABICommand {
		return nil, d.errorAt(d.settings["config"], errors.New("only plugins are configured; what a command reads is its env, below [tools.NAME]"))
	}
	m := tool.Manifest{ABI: abi, Name: tool.NameOf(mod.Name)}
	for _, t := range d.tools {
		s, err := d.spec(t, abi)
		if err != nil {
			return nil, err
		}
		m.Tools = append(m.Tools, s)
	}
	if d.tools == nil {
		plain := tool.NewModule(mod.Name, mod.Origin, mod.Path, wasm.WithoutCustom(facts, wasm.ManifestSection))
		plain.Signer, plain.Namespace, plain.AdminKnowsSigner = mod.Signer, mod.Namespace, mod.AdminKnowsSigner // the signature covers the whole module
		if m, err = box.Describe(ctx, plain); err != nil {
			return nil, fmt.Errorf("%s names no tools, and the module does not say which it has: %w", d.path, err)
		}
		m.Inferred, m.Notes = false, nil
		for i := range m.Tools {
			m.Tools[i].Capabilities = d.needs
		}
	}
	m.Name, m.Version = cmp.Or(d.name, m.Name), cmp.Or(d.version, m.Version)
	if len(d.config) > 0 {
		m.Config = d.config
	}
	section := tool.Marshal(m)
	if _, err := tool.ParseManifest(section); err != nil {
		return nil, fmt.Errorf("%s: %w", d.path, err)
	}
	if code, err = wasm.AppendCustom(code, wasm.ManifestSection, section); err != nil {
		return nil, err
	}
	return tool.NewModule(mod.Name, mod.Origin, mod.Path, code), nil
}

// Copy copies the description in the module from into the module to, a newer version of it.
func Copy(from []byte, to *tool.Module) (*tool.Module, error) {
	was, err := wasm.Decode(from)
	if err != nil {
		return nil, err
	}
	section, ok := wasm.CustomSection(was, wasm.ManifestSection)
	if !ok {
		return nil, errors.New("the module that is there has no description")
	}
	code, _, _, err := decodeDescribable(to)
	if err != nil {
		return nil, err
	}
	if code, err = wasm.AppendCustom(code, wasm.ManifestSection, section); err != nil {
		return nil, err
	}
	return tool.NewModule(to.Name, to.Origin, to.Path, code), nil
}
