package author

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/stockade-dev/stockade/host/registry/author/toolchain"
	"github.com/stockade-dev/stockade/host/tool"
)

// Build compiles the Go package in b.Dir and packs it. It writes the module into b.Dir under
// the name in its manifest, over an earlier build, and returns the path of that file. Build
// sets b.Out itself. A failed compilation is a *toolchain.Error.
func Build(ctx context.Context, box Sandbox, b toolchain.Build) (p PackedModule, file string, err error) {
	tmp, err := os.MkdirTemp("", "stockade-build-")
	if err != nil {
		return p, "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	b.Out = filepath.Join(tmp, "module.wasm")
	if err := b.Run(ctx); err != nil {
		return p, "", err
	}
	code, err := os.ReadFile(b.Out)
	if err != nil {
		return p, "", err
	}
	p, err = Pack(ctx, box, tool.NewModule(filepath.Base(b.Dir), tool.OriginFile, b.Dir, code))
	if err != nil {
		return p, "", err
	}
	file = filepath.Join(b.Dir, p.Manifest.Name+".wasm")
	p.Module = tool.NewModule(p.Manifest.Name, tool.OriginFile, file, p.Code)
	return p, file, WriteModule(file, p.Code)
}

// WriteModule writes a module to a file; a reader sees the old file or the new one.
func WriteModule(file string, code []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(file), ".stockade-*.wasm")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(code)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}
