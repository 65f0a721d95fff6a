// Package registry finds the modules that hold tools: modules that are built into the program,
// modules that a person names by a path, and modules that people have added from elsewhere.
//
// [Builtin] lists the built-in tools without touching WebAssembly: their manifests are
// in an index that the build made. [ReadModule] reads a module by its path, and
// [Catalog] asks it for its tools.
//
// A stranger's module goes through the [Reviewer], which checks all that can be
// checked and stores nothing. After a yes, [Save] or [SaveProject] puts it into the
// store. The modules of a workspace are a [Project]; [WriteLock] writes its lockfile,
// and [CheckLocked] compares a fetched module with its entry there.
// [Reviewer.SyncSystem] takes over the modules in the administrator's folder. [Modules]
// then decides which added modules are offered, [ResolveNames] decides between tools
// with the same name, and [OfferedTools] is the catalog of a run.
//
// Nothing here runs a tool, or grants anything: the sandbox admits modules, and the policy
// grants what the person has allowed. Each package below has one subject: store holds the
// records; lock, the format of lockfiles; source and oci, fetching; sign and trust,
// signatures; description, people's texts about foreign modules; author, building modules.
package registry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/guests"
	"github.com/stockade-dev/stockade/host/internal/regular"
	"github.com/stockade-dev/stockade/host/sandbox/admit"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
)

// ErrNoBuiltin is returned by a program that was built without its tools.
var ErrNoBuiltin = errors.New("this stockade was built without its tools")

// Builtin lists the tools of the modules that are built into the program. The catalog is made
// once and shared by all callers.
var Builtin = sync.OnceValues(func() (*tool.Catalog, error) {
	var index []struct { // read at every start, so in one go
		guests.Module
		Manifest tool.Manifest `json:"manifest"` // checked when it was packed
	}
	err := guests.ReadIndex(&index)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoBuiltin
	}
	if err != nil {
		return nil, fmt.Errorf("built-in tools: %w", err)
	}
	modules := map[*tool.Module]tool.Manifest{}
	for _, g := range index {
		modules[&tool.Module{Name: g.Manifest.Name, Digest: g.Digest, Bytes: g.Bytes, Origin: tool.OriginBuiltin, Read: g.Read}] = g.Manifest
	}
	return tool.NewCatalog(modules)
})

// SplitPath reports whether name is a path of a module, FILE.wasm or FILE.wasm:TOOL, and
// not the name of a tool. inner is TOOL; empty: the path names none.
func SplitPath(name string) (file, inner string, ok bool) {
	file, inner, _ = strings.Cut(name, ".wasm:")
	if inner != "" {
		return file + ".wasm", inner, true
	}
	return name, "", strings.HasSuffix(name, ".wasm") || strings.ContainsAny(name, `/\`)
}

// ReadModule reads a module from a file. The bytes that are hashed are the bytes that run: the
// file is not read again.
func ReadModule(name string) (*tool.Module, error) {
	if st, err := os.Stat(name); err == nil && st.IsDir() {
		return nil, fmt.Errorf("%s is a folder; name the file in it", name)
	}
	f, st, err := regular.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st.Size() > admit.MaxBytes {
		head := make([]byte, 512)
		if _, err := f.ReadAt(head, 0); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		if _, err := wasm.Decode(head); errors.Is(err, wasm.ErrNotWasm) {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return nil, fmt.Errorf("%s has %d bytes, more than the limit of %d", name, st.Size(), admit.MaxBytes)
	}
	code := make([]byte, st.Size())
	if _, err := f.ReadAt(code, 0); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return tool.NewModule(strings.TrimSuffix(filepath.Base(name), ".wasm"), tool.OriginFile, name, code), nil
}

type Describer interface {
	Describe(ctx context.Context, mod *tool.Module) (tool.Manifest, error)
}

// Catalog lists the tools of one module, which d describes.
func Catalog(ctx context.Context, d Describer, mod *tool.Module) (*tool.Catalog, error) {
	manifest, err := d.Describe(ctx, mod)
	if err != nil {
		return nil, err
	}
	return tool.NewCatalog(map[*tool.Module]tool.Manifest{mod: manifest})
}
