// Package guests holds the built tool modules that ship inside the binary.
//
// The sources are the directories beside this file; each is a Go program that
// the build turns into wasm/<name>.wasm with
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -trimpath -ldflags="-s -w"
//
// The program embeds the modules, compressed, and their native code for the
// platform on which the build ran:
//
//	dist/<name>.wasm.zst
//	native/<GOOS>_<GOARCH>/<digest of the module>/...
//
// The built files are not committed. The package compiles without them; such a binary has
// no built-in tools. A binary for another platform has no native code, and compiles its
// tools when they are first called.
package guests

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"runtime"

	"github.com/klauspost/compress/zstd"
)

//go:embed all:dist
var dist embed.FS

// Names in dist.
const (
	IndexFile    = "index.json" // lists the modules: a JSON array of [Module]
	ModuleSuffix = ".zst"       // follows [Module.File] in the name of a module, compressed with Zstandard
)

// Module is one entry of the index. The index lists the tools without loading WebAssembly.
type Module struct {
	File     string          `json:"file"`
	Digest   string          `json:"digest"` // sha256 in hex
	Bytes    int64           `json:"bytes"`
	Manifest json.RawMessage `json:"manifest"`
}

// Read returns the bytes of the module.
func (m Module) Read() ([]byte, error) {
	packed, err := dist.ReadFile("dist/" + m.File + ModuleSuffix)
	if err != nil {
		return nil, err
	}
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	code, err := d.DecodeAll(packed, make([]byte, 0, m.Bytes))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.File, err)
	}
	return code, nil
}

// Built reports whether the modules were built before the program.
func Built() bool {
	_, err := fs.Stat(dist, "dist/"+IndexFile)
	return err == nil
}

// ReadIndex reads the index into list, a pointer to a slice of [Module] or of a type that
// also decodes the manifests. The error is fs.ErrNotExist if no modules were built.
func ReadIndex(list any) error {
	data, err := dist.ReadFile("dist/" + IndexFile)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, list)
}

// NativeDir returns the directory with native code for this program's platform. The directory
// does not exist if no such code is embedded.
func NativeDir() string { return "native/" + runtime.GOOS + "_" + runtime.GOARCH }

// Native returns the directory with the native code of a module; nil: there is none.
func Native(digest string) fs.FS {
	dir := path.Join(NativeDir(), digest)
	if _, err := fs.Stat(native, dir); err != nil {
		return nil
	}
	sub, err := fs.Sub(native, dir)
	if err != nil {
		return nil
	}
	return sub
}
